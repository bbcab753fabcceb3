"""Tests beside PyMongo, whose newest version is the judge."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from packaging.version import Version

INSTALLED = tuple(int(part) for part in version("pymongo").split(".")[:2])


def since(wanted: str) -> pytest.MarkDecorator:
    """Skip a test with a PyMongo that is too old for it.

    :param wanted: the first minor version that gmongo is to be compared with, such as ``"4.17"``.
    """
    reason = f"it compares with PyMongo {wanted} or newer"
    return pytest.mark.skipif(tuple(map(int, wanted.split("."))) > INSTALLED, reason=reason)


def answered_since(wanted: str) -> pytest.MarkDecorator:
    """With a PyMongo that is too old for it, a test must fail in which gmongo answers as a newer one does.

    :param wanted: the first version that answers so.
    """
    is_older = Version(version("pymongo")) < Version(wanted)
    return pytest.mark.xfail(is_older, strict=True, reason=f"PyMongo answers so since {wanted}")
