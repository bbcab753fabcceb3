"""PyMongo's module names, and the gmongo modules that replace PyMongo's modules."""

from __future__ import annotations

PYMONGO_VERSION = "4.20.0"
"""The PyMongo version whose API gmongo implements. Libraries use the version to select code."""

ROOTS = frozenset({"pymongo", "gridfs"})

_API_MODULES = """
change_stream client_session collection command_cursor cursor database encryption mongo_client
"""
_ASYNCHRONOUS_MODULES = tuple(_API_MODULES.split())
_SYNCHRONOUS_MODULES = ("auth_oidc", "uri_parser", *_ASYNCHRONOUS_MODULES)
_OTHER_PUBLIC_MODULES = """
client_options collation driver_info encryption_options errors event_loggers monitoring operations
pool_options read_concern read_preferences results server_api server_description server_type
topology_description write_concern
"""
_PUBLIC_MODULES = (*_SYNCHRONOUS_MODULES, *_OTHER_PUBLIC_MODULES.split())

_PRIVATE_MODULES = ("asynchronous", "common", "cursor_shared", "typings")
_STAND_IN_PACKAGE = "gmongo._stand_in.pymongo"

ALIASES: dict[str, str] = {
    **{f"pymongo.synchronous.{name}": f"gmongo.{name}" for name in _SYNCHRONOUS_MODULES},
    **{f"pymongo.{name}": f"gmongo.{name}" for name in _PUBLIC_MODULES},
    **{f"pymongo.{name}": f"{_STAND_IN_PACKAGE}.{name}" for name in _PRIVATE_MODULES},
    **{f"pymongo.asynchronous.{name}": f"{_STAND_IN_PACKAGE}.asynchronous" for name in _ASYNCHRONOUS_MODULES},
    "pymongo.database_shared": "gmongo.database",
    "gridfs": "gmongo.gridfs",
    "gridfs.asynchronous": f"{_STAND_IN_PACKAGE}.asynchronous",
    "gridfs.errors": "gmongo.gridfs.errors",
    "gridfs.grid_file": f"{_STAND_IN_PACKAGE}.grid_file",
    "gridfs.synchronous": "gmongo.gridfs",
    "gridfs.synchronous.grid_file": f"{_STAND_IN_PACKAGE}.grid_file",
}
"""PyMongo's module name -> name of the gmongo module that replaces the module."""

PACKAGES = {"pymongo": "__init__.py", "pymongo.synchronous": "synchronous.py"}
"""PyMongo's package name -> file of the module that replaces the package. (The module ``gmongo`` cannot replace
``pymongo``: ``from pymongo import errors`` uses ``__name__`` of the module to find ``pymongo.errors``.)"""

LOADED_WITH = {
    "pymongo": tuple(name for name in ALIASES if name.startswith("pymongo.") and "encryption" not in name),
    "gridfs": ("gridfs.errors", "gridfs.grid_file"),
}
"""Package -> submodules that are loaded together with the package, as in PyMongo. The names in ``pymongo.synchronous``
are loaded first: instrumentation that knows two names of a module uses the name loaded first."""

ADDED_PLACEHOLDERS = {
    "gridfs": ("AsyncGridFS", "AsyncGridFSBucket", "AsyncGridIn", "AsyncGridOut", "AsyncGridOutCursor"),
    "pymongo.encryption_options": ("AsyncHTTPProxyKMSConnect",),
}
"""Module -> placeholders from ``pymongo.asynchronous`` that are added to the module, so that imports succeed."""


def root_of(name: str) -> str:
    """Return the first part of the dotted name of a module."""
    return name.partition(".")[0]
