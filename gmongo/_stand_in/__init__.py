"""Stand-in for PyMongo: in this process, PyMongo's module names lead to gmongo's modules.

A PyMongo module that gmongo has is one module object under both names, so ``except`` and ``isinstance`` work with
either name. ``pymongo`` itself and the few private modules that libraries import are files in the folder ``pymongo``
here. Classes that gmongo lacks can be imported from there, and raise an error when they are constructed.
"""

from __future__ import annotations

from gmongo._stand_in.install import install
from gmongo._stand_in.module_aliases import PYMONGO_VERSION

__all__ = ["PYMONGO_VERSION", "install"]
