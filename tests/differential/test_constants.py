"""The constants of gmongo equal the constants of PyMongo."""

from __future__ import annotations

import pymongo
import pytest

import gmongo


@pytest.mark.parametrize("name", ["ASCENDING", "DESCENDING", "GEO2D", "GEOSPHERE", "HASHED", "TEXT"])
def test_constant_equals_constant_of_pymongo(name: str) -> None:
    assert getattr(gmongo, name) == getattr(pymongo, name)
