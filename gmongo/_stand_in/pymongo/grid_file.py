"""Module ``gridfs.grid_file``. GridFS uses mongomock's replacements of the classes in `_MODULES_WITH_CLASS`."""

from __future__ import annotations

import sys
from types import ModuleType

from gmongo import gridfs
from gmongo.collection import Collection
from gmongo.database import Database
from gmongo.gridfs import *  # noqa: F403 - the names in gridfs.__all__
from gmongo.gridfs import bucket, grid_fs, storage

__all__ = [*gridfs.__all__, "Collection", "Database"]  # noqa: PLE0604 - all elements are strings

_MODULES_WITH_CLASS = {"Collection": (storage,), "Database": (bucket, grid_fs), "GridOutCursor": (bucket,)}


class _GridFileModule(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        for module in _MODULES_WITH_CLASS.get(name, ()):
            setattr(module, name, value)


sys.modules[__name__].__class__ = _GridFileModule
