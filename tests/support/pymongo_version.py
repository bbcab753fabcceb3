"""Pytest marks for tests that depend on the installed version of PyMongo."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from packaging.version import Version

INSTALLED_VERSION = tuple(int(part) for part in version("pymongo").split(".")[:2])


def since(minimum: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test if the installed PyMongo is older than `minimum`, such as
    ``"4.17"``.
    """
    reason = f"the test compares gmongo with PyMongo {minimum} or newer"
    return pytest.mark.skipif(tuple(map(int, minimum.split("."))) > INSTALLED_VERSION, reason=reason)


def fails_before_pymongo(minimum: str) -> pytest.MarkDecorator:
    """Return a mark that expects a failure if the installed PyMongo is older than `minimum`."""
    is_older = Version(version("pymongo")) < Version(minimum)
    return pytest.mark.xfail(is_older, strict=True, reason=f"PyMongo behaves like gmongo since version {minimum}")
