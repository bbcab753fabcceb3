"""What libraries take from PyMongo's module of this name, which is private."""

from __future__ import annotations

from gmongo.database import _check_name

__all__ = ["_check_name"]
