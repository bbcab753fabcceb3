"""The plug-in of pytest with which PyMongo's tests run: it puts gmongo in PyMongo's place, if that is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DRIVER, ONLY = "GMONGO_DRIVER", "GMONGO_ONLY"
"""Variables: which driver is under test; a file with the names of the tests to run."""

if os.environ[DRIVER] == "gmongo":
    from gevent import monkey

    monkey.patch_all()
    import gmongo.as_pymongo  # noqa: F401
    from tests.pymongo_suite import private

    private.lend()

import pymongo  # noqa: E402

_exists = os.path.exists
os.path.exists = lambda path: path != "/.dockerenv" and _exists(path)  # tests of handshakes want no container


def _name(item: pytest.Item) -> str:
    """The name of a test, as the report has it."""
    file, *others = item.nodeid.split("::")
    return ".".join([file.removeprefix("test/").removesuffix(".py").replace("/", "."), *others])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for."""
    if ONLY in os.environ:
        only = set(Path(os.environ[ONLY]).read_text("utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if _name(item) not in only])
        items[:] = [item for item in items if _name(item) in only]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Tests that name no server mean the one on the default port, whatever the test before has left there."""
    pymongo.MongoClient.HOST, pymongo.MongoClient.PORT = os.environ["DB_IP"], int(os.environ["DB_PORT"])
