"""Which module stands under which of PyMongo's names."""

from __future__ import annotations

PYMONGO_VERSION = "4.20.0"
"""The PyMongo whose API gmongo keeps. Libraries choose code by it."""

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
_OURS = "gmongo._stand_in.pymongo"

ALIASES: dict[str, str] = {
    **{f"pymongo.synchronous.{name}": f"gmongo.{name}" for name in _SYNCHRONOUS},
    **{f"pymongo.{name}": f"gmongo.{name}" for name in _PUBLIC},
    **{f"pymongo.{name}": f"{_OURS}.{name}" for name in _PRIVATE},
    **{f"pymongo.asynchronous.{name}": f"{_OURS}.asynchronous" for name in _ASYNCHRONOUS},
    "gridfs": "gmongo.gridfs",
    "gridfs.asynchronous": f"{_OURS}.asynchronous",
    "gridfs.errors": "gmongo.gridfs.errors",
    "gridfs.grid_file": f"{_OURS}.grid_file",
    "gridfs.synchronous": "gmongo.gridfs",
    "gridfs.synchronous.grid_file": f"{_OURS}.grid_file",
}
"""PyMongo's name of a module -> the module that stands there."""

PACKAGES = {"pymongo": "__init__.py", "pymongo.synchronous": "synchronous.py"}
"""Packages that are modules of their own, made from these files. (``from pymongo import errors`` looks for
``pymongo.errors`` by the ``__name__`` of what stands for ``pymongo``, so that gmongo cannot.)"""

LOADED_WITH = {
    "pymongo": tuple(name for name in ALIASES if name.startswith("pymongo.") and "encryption" not in name),
    "gridfs": ("gridfs.errors", "gridfs.grid_file"),
}
"""What comes with a package: its submodules are there without an import of their own, as they are in PyMongo. Those of
``pymongo.synchronous`` come first, since instrumentation that knows both names takes the first that it sees."""

LACKING = {
    "gridfs": ("AsyncGridFS", "AsyncGridFSBucket", "AsyncGridIn", "AsyncGridOut", "AsyncGridOutCursor"),
    "pymongo.encryption_options": ("AsyncHTTPProxyKMSConnect",),
}
"""Names that gmongo's modules get to be imported only; ``pymongo.asynchronous`` has them."""
