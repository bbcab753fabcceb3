"""Fixtures for tests on engines: servers, call runners, and counters of outcomes."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pymongo
import pytest

from gmongo.testing import DeploymentProcess
from tests.differential.call_runner import CallRunner

from .engine import ENGINES, ENGINES_VARIABLE, MissingEngineError, Server

_counts_by_subject: dict[str, Counter[str]] = defaultdict(Counter)
_skipped_parameter = pytest.param("none", marks=pytest.mark.skip(f"{ENGINES_VARIABLE} names no folder for engines"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how often each outcome occurred, for each engine and test file."""
    for subject, outcome_counts in _counts_by_subject.items():
        terminalreporter.section(f"{subject}: {outcome_counts.total()}")
        for outcome, count in outcome_counts.most_common():
            terminalreporter.write_line(f"{count:5} {outcome}")


@pytest.fixture(scope="session", params=list(ENGINES) if ENGINES_VARIABLE in os.environ else [_skipped_parameter])
def new_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Server]:
    """Return a function that creates a server of an engine. The test starts and stops the server."""
    engine = ENGINES[request.param]
    try:
        folder = engine.build_once(Path(os.environ[ENGINES_VARIABLE]).absolute())
    except MissingEngineError as missing:
        pytest.skip(str(missing))
    return lambda: Server(engine, folder, tmp_path_factory.mktemp(engine.name))


@pytest.fixture(scope="session")
def server(new_server: Callable[[], Server]) -> Iterator[Server]:
    server = new_server()
    try:
        server.start()
    except MissingEngineError as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def runner(server: Server) -> Iterator[CallRunner]:
    runner = CallRunner(server.address, server.engine.name, call_timeout=8)
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def simulation() -> Iterator[Callable[[], CallRunner]]:
    """Return a function that returns a call runner on a simulated deployment. The deployment behaves
    like MongoDB.

    The first call of the function starts the deployment.
    """
    closables = []

    @cache
    def start() -> CallRunner:
        deployment = DeploymentProcess("--replica-set", "1").start()
        closables.append(deployment)
        address = pymongo.uri_parser.parse_uri(deployment.uri)["nodelist"][0]
        closables.append(CallRunner(address, "simulation"))
        return closables[-1]

    yield start
    for each in reversed(closables):
        each.close()


@pytest.fixture
def outcome_counts(request: pytest.FixtureRequest, server: Server) -> Counter[str]:
    """Return the counter of outcomes for this test file and this engine."""
    return _counts_by_subject[f"{server.engine.name}, {request.path.stem.removeprefix('test_')}"]
