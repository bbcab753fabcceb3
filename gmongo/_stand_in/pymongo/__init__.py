"""What ``import pymongo`` gives: gmongo's names, and the version of the PyMongo whose API it keeps."""

from __future__ import annotations

import gmongo
from gmongo import *  # noqa: F403 - its __all__, whatever that is
from gmongo._stand_in import names
from gmongo._stand_in.pymongo.asynchronous import AsyncMongoClient

__all__ = [*gmongo.__all__, "AsyncMongoClient"]  # noqa: PLE0604 - they are strings

__version__ = version = names.PYMONGO_VERSION
"""The version of PyMongo that libraries take this for. ``gmongo.version`` is gmongo's own."""

version_tuple = tuple(map(int, version.split(".")))
"""The same as a tuple."""


def get_version_string() -> str:  # type: ignore[no-redef]
    """The same as :data:`version`."""
    return version
