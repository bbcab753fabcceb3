"""Replacement of the module ``pymongo``: gmongo's public names, and the PyMongo version whose API gmongo implements."""

from __future__ import annotations

import gmongo
from gmongo import *  # noqa: F403 - the names in gmongo.__all__
from gmongo._stand_in import module_aliases
from gmongo._stand_in.pymongo.asynchronous import AsyncMongoClient

__all__ = [*gmongo.__all__, "AsyncMongoClient"]  # noqa: PLE0604 - all elements are strings

__version__ = version = module_aliases.PYMONGO_VERSION
"""The PyMongo version whose API gmongo implements. ``gmongo.version`` is the version of gmongo."""

version_tuple = tuple(map(int, version.split(".")))
"""The parts of :data:`version` as a tuple of integers."""


def get_version_string() -> str:  # type: ignore[no-redef]
    """Return :data:`version`."""
    return version
