"""Replacement of PyMongo: after `install`, imports of PyMongo's modules return gmongo's modules.

If a gmongo module replaces a PyMongo module, both module names import the same module object.
Therefore, ``except`` and ``isinstance`` work with a class from either name. The folder ``pymongo``
contains the modules ``pymongo`` and ``gridfs.grid_file``, and the private modules that libraries
import. Placeholders for asynchronous classes raise an error at the construction of an object.
"""

from __future__ import annotations

from gmongo._stand_in.finder import install
from gmongo._stand_in.module_aliases import PYMONGO_VERSION

__all__ = ["PYMONGO_VERSION", "install"]
