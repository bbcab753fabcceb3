"""Tests beside PyMongo, whose newest version is the judge."""

from __future__ import annotations

from importlib.metadata import version

import pytest

INSTALLED = tuple(int(part) for part in version("pymongo").split(".")[:2])


def since(wanted: str) -> pytest.MarkDecorator:
    """Skip a test with a PyMongo that is too old for it.

    :param wanted: the first minor version that gmongo is to be compared with, such as ``"4.17"``.
    """
    reason = f"it compares with PyMongo {wanted} or newer"
    return pytest.mark.skipif(tuple(map(int, wanted.split("."))) > INSTALLED, reason=reason)
