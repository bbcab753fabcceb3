"""PyMongo's module names, and the modules that stand in for them."""

from __future__ import annotations

PYMONGO_VERSION = "4.20.0"
"""The PyMongo version whose API gmongo implements. Libraries select code by it."""

ROOTS = frozenset({"pymongo", "gridfs"})

_PUBLIC = (
    "auth_oidc",
    "change_stream",
    "client_options",
    "client_session",
    "collation",
    "collection",
    "command_cursor",
    "cursor",
    "database",
    "driver_info",
    "encryption",
    "encryption_options",
    "errors",
    "event_loggers",
    "mongo_client",
    "monitoring",
    "operations",
    "pool_options",
    "read_concern",
    "read_preferences",
    "results",
    "server_api",
    "server_description",
    "server_type",
    "topology_description",
    "uri_parser",
    "write_concern",
)
_SYNCHRONOUS = (
    "auth_oidc",
    "change_stream",
    "client_session",
    "collection",
    "command_cursor",
    "cursor",
    "database",
    "encryption",
    "mongo_client",
    "uri_parser",
)
_ASYNCHRONOUS = (
    "change_stream",
    "client_session",
    "collection",
    "command_cursor",
    "cursor",
    "database",
    "encryption",
    "mongo_client",
)

_PRIVATE = ("asynchronous", "common", "cursor_shared", "database_shared", "typings")
_FOLDER = "gmongo._stand_in.pymongo"

ALIASES: dict[str, str] = {
    **{f"pymongo.synchronous.{name}": f"gmongo.{name}" for name in _SYNCHRONOUS},
    **{f"pymongo.{name}": f"gmongo.{name}" for name in _PUBLIC},
    **{f"pymongo.{name}": f"{_FOLDER}.{name}" for name in _PRIVATE},
    **{f"pymongo.asynchronous.{name}": f"{_FOLDER}.asynchronous" for name in _ASYNCHRONOUS},
    "gridfs": "gmongo.gridfs",
    "gridfs.asynchronous": f"{_FOLDER}.asynchronous",
    "gridfs.errors": "gmongo.gridfs.errors",
    "gridfs.grid_file": f"{_FOLDER}.grid_file",
    "gridfs.synchronous": "gmongo.gridfs",
    "gridfs.synchronous.grid_file": f"{_FOLDER}.grid_file",
}
"""PyMongo's module name -> the gmongo module with that name."""

PACKAGES = {"pymongo": "__init__.py", "pymongo.synchronous": "synchronous.py"}
"""Packages with separate modules, created from these files. (``from pymongo import errors`` finds ``pymongo.errors`` by
the ``__name__`` of the ``pymongo`` module, so the module ``gmongo`` cannot serve as ``pymongo``.)"""

LOADED_WITH = {
    "pymongo": tuple(name for name in ALIASES if name.startswith("pymongo.") and "encryption" not in name),
    "gridfs": ("gridfs.errors", "gridfs.grid_file"),
}
"""Submodules that are loaded with a package, as in PyMongo. The names of ``pymongo.synchronous`` come first, since
instrumentation that knows both names uses the first name that it sees."""

LACKING = {
    "gridfs": ("AsyncGridFS", "AsyncGridFSBucket", "AsyncGridIn", "AsyncGridOut", "AsyncGridOutCursor"),
    "pymongo.encryption_options": ("AsyncHTTPProxyKMSConnect",),
}
"""Names that gmongo's modules get for imports only, from ``pymongo.asynchronous``."""
