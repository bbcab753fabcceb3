"""Tests of ``tests.live``: permitted commands, rejected deployments and reports. Complete runs are in
the long tier.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from gmongo.testing import Deployment, DeploymentProcess
from tests.live.__main__ import main
from tests.live.official import multiply_times
from tests.live.target import SYSTEM_DATABASES, RefusedError, Target
from tests.support.programs import ROOT, environment

# Commands that a run may send to the system databases of the deployment.
HARMLESS_COMMANDS = frozenset(
    {
        "hello",
        "isMaster",
        "ismaster",
        "ping",
        "buildInfo",
        "listDatabases",
        "saslStart",
        "saslContinue",
        "endSessions",
        "killCursors",
        "getMore",
        "commitTransaction",
        "abortTransaction",
        "bulkWrite",
        "renameCollection",
    }
)
SERVER_COMMANDS = ("killAllSessions", "configureFailPoint", "replSetStepDown", "setParameter", "getParameter", "fsync")


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with Deployment.replica_set(1) as deployment:
        yield deployment


@pytest.fixture
def target(deployment: Deployment) -> Iterator[Target]:
    target = Target(deployment.uri)
    yield target
    target.close()


def forbidden_commands(deployment: Any, prefix: str) -> list[str]:
    """Return the received commands that use databases of other users or affect the whole
    deployment.
    """
    forbidden = []
    for command in deployment.commands:
        database = command.body.get("$db", "admin")
        is_harmless = command.name in HARMLESS_COMMANDS if database in SYSTEM_DATABASES else database.startswith(prefix)
        if not is_harmless or command.name in SERVER_COMMANDS:
            forbidden.append(f"{database}: {command.name}")
    return forbidden


@pytest.mark.long
def test_run_uses_only_its_own_databases_by_default(
    deployment: Deployment,
    tmp_path: Path,
) -> None:
    parts = ["documented answers", "random calls", "official unified tests", "prose tests"]
    options = [word for part in parts for word in ("--only", part)]
    assert main([deployment.uri, *options, "--calls", "20", "--report", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    prefix = report["facts"]["databases"].removesuffix("*")
    assert forbidden_commands(deployment, prefix) == []
    assert {part: report["parts"][part]["reasons"] for part in parts[2:]} == {
        part: {"needs --disposable": 1} for part in parts[2:]
    }
    assert set(Target(deployment.uri).client.list_database_names()) <= SYSTEM_DATABASES


def test_permission_with_wrong_deployment_name_raises_refused_error(target: Target) -> None:
    with pytest.raises(RefusedError, match="must name this deployment, rs0, and not shop"):
        target.permit_all_commands("shop")
    assert not target.disposable


def test_permission_for_deployment_with_foreign_databases_raises_refused_error(target: Target) -> None:
    target.client.shop.orders.insert_one({})
    with pytest.raises(RefusedError, match="contains databases that would be lost: shop"):
        target.permit_all_commands("rs0")
    assert not target.disposable


def test_permission_for_standalone_needs_host_and_port() -> None:
    with Deployment.standalone() as deployment:
        target = Target(deployment.uri)
        target.permit_all_commands(deployment.members[0].address)
        assert target.disposable
        target.close()


@pytest.fixture
def uri_of_faulty_server() -> Iterator[str]:
    """Yield the URI of a simulated server that omits a value in replies to `distinct`."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "tests.live.seeded_fault", "--replica-set", "1"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.communicate()


@pytest.mark.long
@pytest.mark.real_time
def test_each_part_reports_difference_of_faulty_server(uri_of_faulty_server: str, tmp_path: Path) -> None:
    expected = {
        "documented answers": "differs",
        "random calls": "differs",
        "calls beside PyMongo": "differs",
        "official unified tests": "failed",
    }
    only = [word for part in expected for word in ("--only", part)]
    arguments = ["--disposable", "rs0", "--case", "distinct", "--calls", "200", "--report", str(tmp_path)]
    assert main([uri_of_faulty_server, *only, *arguments]) == 1
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    page = (tmp_path / "report.html").read_text("utf-8")
    for part, outcome in expected.items():
        cases = [case for case in report["cases"] if case["part"] == part]
        reported_cases = [case for case in cases if case["outcome"] in ("differs", "failed")]
        assert {case["outcome"] for case in reported_cases} == {outcome}
        assert 0 < len(reported_cases) < len(cases)
        assert all("distinct" in case["name"] + case["reason"] for case in reported_cases), reported_cases
        assert all(escape(case["name"]) in page for case in reported_cases)


@pytest.mark.long
@pytest.mark.real_time
@pytest.mark.parametrize(
    "options", [["--standalone"], ["--replica-set", "1"], ["--sharded", "2"], ["--load-balanced", "1"]], ids=str
)
def test_run_on_each_kind_of_disposable_deployment_passes(options: list[str], tmp_path: Path) -> None:
    with DeploymentProcess(*options) as deployment:
        target = Target(deployment.uri)
        name = target.name
        target.close()
        parts = ["documented answers", "campaign", "prose tests", "official unified tests"]
        only = [word for part in parts for word in ("--only", part)]
        arguments = ["--disposable", name, "--case", "find", "--steps", "1", "--report", str(tmp_path)]
        assert main([deployment.uri, *only, *arguments]) == 0


def test_second_attempt_doubles_times_and_keeps_other_numbers() -> None:
    case = {"timeoutMS": 75, "command": {"maxTimeMS": {"$$lte": 75}, "items": 3}, "wait": [{"ms": 5}]}
    doubled = {"timeoutMS": 150, "command": {"maxTimeMS": {"$$lte": 150}, "items": 3}, "wait": [{"ms": 10}]}
    assert multiply_times(case, 2) == doubled
