"""Replacement of PyMongo: in this process, imports of PyMongo's modules return gmongo's modules.

If gmongo has a PyMongo module, the PyMongo name and the gmongo name import the same module object.
Therefore, ``except`` and ``isinstance`` work with the classes of both names. The folder ``pymongo``
contains the module ``pymongo`` and the few private modules that libraries import. For each PyMongo
class that gmongo does not have, a placeholder class raises an error at the construction of an object.
"""

from __future__ import annotations

from gmongo._stand_in.finder import install
from gmongo._stand_in.module_aliases import PYMONGO_VERSION

__all__ = ["PYMONGO_VERSION", "install"]
