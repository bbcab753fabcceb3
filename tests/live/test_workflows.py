"""Tests that validate the CI workflows and ``compose.yaml`` with external tools, if the tools are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.cases import with_cases

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))


def run(tool: str, *arguments: str, **variables: str) -> str:
    """Run a tool, and return its output. Skip the test if the tool is not installed."""
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    completed = subprocess.run(
        [path, *arguments], cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def test_workflows_match_their_schema() -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


def test_compose_file_matches_its_schema() -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


def test_actionlint_reports_no_fault_of_workflows() -> None:
    run("actionlint", *WORKFLOWS)


@with_cases
def test_script_starts_servers_on_published_ports(kind: str, started: list[str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    for name in ("mongod", "mongos", "mongosh"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n')
        program.chmod(0o755)
    run("sh", ".ci/mongodb", kind, PATH=f"{tmp_path}:{os.environ['PATH']}")
    lines = [line.split() for line in log.read_text().splitlines()]
    servers = [f"{words[0]} {words[words.index('--port') + 1]}" for words in lines if words[0] != "mongosh"]
    assert sorted(servers) == sorted(started)
