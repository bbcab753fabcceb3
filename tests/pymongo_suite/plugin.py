"""Pytest plugin of the PyMongo tests, which installs the stand-in if gmongo is the selected driver."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DRIVER, ONLY = "GMONGO_DRIVER", "GMONGO_ONLY"
"""Environment variables: the driver, and a file with the names of the selected tests."""

if os.environ[DRIVER] == "gmongo":
    from gevent import monkey

    monkey.patch_all()
    import gmongo.as_pymongo  # noqa: F401
    from tests.pymongo_suite import private_names

    private_names.install_private_names()

import pymongo  # noqa: E402

_exists = os.path.exists
os.path.exists = lambda path: path != "/.dockerenv" and _exists(path)  # tests of handshakes expect no container


def _name(item: pytest.Item) -> str:
    """Return the name of a test in the report."""
    file, *others = item.nodeid.split("::")
    return ".".join([file.removeprefix("test/").removesuffix(".py").replace("/", "."), *others])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect all other tests."""
    if ONLY in os.environ:
        only = set(Path(os.environ[ONLY]).read_text("utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if _name(item) not in only])
        items[:] = [item for item in items if _name(item) in only]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Restore the default server, because an earlier test may have changed the default."""
    pymongo.MongoClient.HOST, pymongo.MongoClient.PORT = os.environ["DB_IP"], int(os.environ["DB_PORT"])
