"""Marks of tests that need a minimum version of PyMongo."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from packaging.version import Version

INSTALLED = tuple(int(part) for part in version("pymongo").split(".")[:2])


def since(minimum: str) -> pytest.MarkDecorator:
    """Skip a test if the installed PyMongo is older than a minor version such as ``"4.17"``."""
    reason = f"it compares with PyMongo {minimum} or newer"
    return pytest.mark.skipif(tuple(map(int, minimum.split("."))) > INSTALLED, reason=reason)


def fails_before_pymongo(minimum: str) -> pytest.MarkDecorator:
    """Expect a failure if the installed PyMongo is older than the first version with the behaviour of gmongo."""
    is_older = Version(version("pymongo")) < Version(minimum)
    return pytest.mark.xfail(is_older, strict=True, reason=f"PyMongo answers so since {minimum}")
