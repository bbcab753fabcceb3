"""Pytest plugin for PyMongo's tests.

If the job runs with gmongo, the plugin installs the stand-in for PyMongo.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DRIVER_VARIABLE, SELECTION_VARIABLE = "GMONGO_DRIVER", "GMONGO_ONLY"
"""Environment variables: the driver, and a file with the names of the selected tests."""

if os.environ[DRIVER_VARIABLE] == "gmongo":
    from gevent import monkey

    monkey.patch_all()
    import gmongo.as_pymongo  # noqa: F401
    from tests.pymongo_suite import private_names

    private_names.install_private_names()

import pymongo  # noqa: E402

_original_exists = os.path.exists
# Tests of handshakes fail in a container, so the plugin hides that the process runs in a container.
os.path.exists = lambda path: path != "/.dockerenv" and _original_exists(path)


def _name(item: pytest.Item) -> str:
    """Return the name that a test has in the report of pytest."""
    file, *others = item.nodeid.split("::")
    return ".".join([file.removeprefix("test/").removesuffix(".py").replace("/", "."), *others])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that do not belong to the job."""
    if SELECTION_VARIABLE in os.environ:
        selected = set(Path(os.environ[SELECTION_VARIABLE]).read_text("utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if _name(item) not in selected])
        items[:] = [item for item in items if _name(item) in selected]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Set the default server address of MongoClient, because an earlier test may have changed it."""
    pymongo.MongoClient.HOST, pymongo.MongoClient.PORT = (
        os.environ["DB_IP"],
        int(os.environ["DB_PORT"]),
    )
