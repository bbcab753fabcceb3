"""Fixture that creates call runners, and hook that expects failures with older PyMongo versions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pymongo
import pytest

from gmongo.testing import DeploymentProcess, EmbeddedDatabase
from tests.support.pymongo_version import fails_before_pymongo

from .call_runner import CallRunner
from .servers import SERVERS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect a test to fail if PyMongo is older than the version that ``older.tsv`` names for the test."""
    folder = Path(__file__).parent
    lines = (folder / "older.tsv").read_text("utf-8").splitlines()
    versions = {test: version for version, _, test in (line.partition("\t") for line in lines) if version[0] != "#"}
    for item in items:
        version = versions.get(item.nodeid.rpartition("tests/differential/")[2])
        if version is not None:
            item.add_marker(fails_before_pymongo(version))


@pytest.fixture(scope="package", params=SERVERS)
def runner(request: pytest.FixtureRequest) -> Iterator[CallRunner]:
    """Yield a call runner on the server that the parameter of the fixture names.

    Close the runner after the tests of this folder, because later tests count greenlets,
    descriptors and timers.
    """
    if request.param == "simulation":
        with DeploymentProcess("--replica-set", "1") as deployment:
            yield from _call_runner(deployment.uri, request.param)
    elif request.param == "nx-27017":
        pytest.importorskip("nx_27017")
        with EmbeddedDatabase() as database:
            yield from _call_runner(database.uri, request.param)
    elif hasattr(request.config, "workerinput"):
        pytest.skip("the calls share one database of the server of MONGODB_URI: run tests/differential without -n")
    else:
        yield from _call_runner(os.environ["MONGODB_URI"], request.param)


def _call_runner(uri: str, name: str) -> Iterator[CallRunner]:
    runner = CallRunner(pymongo.uri_parser.parse_uri(uri)["nodelist"][0], name)
    try:
        yield runner
    finally:
        runner.close()


@pytest.fixture(autouse=True)
def pymongo_without_pyopenssl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PyMongo use the module ``ssl``, because PyMongo on pyOpenSSL refuses certificate revocation lists."""
    monkeypatch.setattr("pymongo.ssl_support.HAVE_PYSSL", False, raising=False)
