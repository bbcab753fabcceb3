"""Standing in for PyMongo: its names, in this process, lead to gmongo's modules.

A module of PyMongo's that gmongo has is gmongo's own module object under both names, so that ``except`` and
``isinstance`` hold whichever name was used. ``pymongo`` itself and the few private modules that libraries import are
files in the folder ``pymongo`` here. What gmongo lacks can be imported from there, and refuses to be constructed.
"""

from __future__ import annotations

from gmongo._stand_in.install import install
from gmongo._stand_in.names import PYMONGO_VERSION

__all__ = ["PYMONGO_VERSION", "install"]
