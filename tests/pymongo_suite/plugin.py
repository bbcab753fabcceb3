"""The plug-in of pytest with which PyMongo's tests run: it puts gmongo in PyMongo's place, if that is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DRIVER, LENT = "GMONGO_DRIVER", "GMONGO_LENT"
"""Variables: which driver is under test; a file for what is taken from PyMongo."""

if os.environ[DRIVER] == "gmongo":
    from gevent import monkey

    monkey.patch_all()
    import gmongo.as_pymongo
    from tests.pymongo_suite import private

    private.lend()

import pymongo  # noqa: E402

# Tests that name no server mean the one on the default port.
pymongo.MongoClient.HOST, pymongo.MongoClient.PORT = os.environ["DB_IP"], int(os.environ["DB_PORT"])

_exists = os.path.exists
os.path.exists = lambda path: path != "/.dockerenv" and _exists(path)  # tests of handshakes want no container


def _sees_gmongo(found: list[bool]) -> Any:
    home = str(Path(gmongo.__file__).parent)  # type: ignore[name-defined]

    def look(frame: Any, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(home) and "_stand_in" not in file:
            found.append(True)
            sys.setprofile(None)

    return look


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note whether the test uses gmongo at all, or only what was taken from PyMongo."""
    found: list[bool] = []
    if os.environ[DRIVER] == "gmongo":
        sys.setprofile(_sees_gmongo(found))
    yield
    sys.setprofile(None)
    item.user_properties.append(("used", bool(found)))


def pytest_sessionfinish() -> None:
    """Tell what was taken from PyMongo."""
    if os.environ[DRIVER] == "gmongo" and LENT in os.environ:
        Path(os.environ[LENT]).write_text("".join(f"{name}\n" for name in sorted(private.lent)), "utf-8")
