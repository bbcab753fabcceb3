"""Module ``gridfs.grid_file``. If mongomock replaces a class of this module, GridFS uses the replacement."""

from __future__ import annotations

import sys
from types import ModuleType

from gmongo.collection import Collection
from gmongo.database import Database
from gmongo.gridfs import (
    DEFAULT_CHUNK_SIZE,
    GridFS,
    GridFSBucket,
    GridIn,
    GridOut,
    GridOutCursor,
    NoFile,
    bucket,
    grid_fs,
    storage,
)

__all__ = [
    "DEFAULT_CHUNK_SIZE",
    "Collection",
    "Database",
    "GridFS",
    "GridFSBucket",
    "GridIn",
    "GridOut",
    "GridOutCursor",
    "NoFile",
]

_USERS = {"Collection": (storage,), "Database": (bucket, grid_fs), "GridOutCursor": (bucket,)}


class _GridFile(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        for module in _USERS.get(name, ()):
            setattr(module, name, value)


sys.modules[__name__].__class__ = _GridFile
