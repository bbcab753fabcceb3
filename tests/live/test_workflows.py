"""The forge's workflows and the deployments of ``compose.yaml`` are well-formed, as far as there are tools to ask."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))


def run(tool: str, *arguments: str, **variables: str) -> str:
    """What a program prints that finds nothing wrong."""
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    done = subprocess.run(
        [found, *arguments], cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_workflows_are_of_their_schema() -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


def test_the_deployments_are_of_their_schema() -> None:
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


def test_the_workflows_have_no_fault_that_actionlint_finds() -> None:
    run("actionlint", *WORKFLOWS)


@pytest.mark.parametrize(
    ("kind", "started"),
    [
        ("standalone", ["mongod 27017"]),
        ("replica-set", ["mongod 27117", "mongod 27118", "mongod 27119"]),
        ("sharded", ["mongod 27300", "mongod 27301", "mongos 27217", "mongos 27218"]),
    ],
)
def test_a_deployment_starts_the_servers_whose_ports_are_published(
    kind: str, started: list[str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    for name in ("mongod", "mongos", "mongosh"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n')
        program.chmod(0o755)
    run("sh", ".ci/mongodb", kind, PATH=f"{tmp_path}:{os.environ['PATH']}")
    lines = [line.split() for line in log.read_text().splitlines()]
    servers = [f"{words[0]} {words[words.index('--port') + 1]}" for words in lines if words[0] != "mongosh"]
    assert sorted(servers) == sorted(started)
