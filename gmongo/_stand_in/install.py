"""Installation of the import finder that replaces PyMongo by gmongo in this process."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from types import BuiltinFunctionType, FunctionType, ModuleType

from gmongo._stand_in.finder import StandIn, adopt_loggers
from gmongo._stand_in.module_aliases import ROOTS

_NAMED = 5  # maximum number of modules in the message
_NOT_USERS = ROOTS | {"gmongo", "bson"}


def install() -> StandIn:
    """Replace ``pymongo`` and ``gridfs`` by gmongo in later imports, and return the finder. Later calls have no effect.

    :raises RuntimeError: PyMongo itself is already imported.
    """
    for finder in sys.meta_path:
        if isinstance(finder, StandIn):
            return finder
    _refuse_if_pymongo_is_imported()
    importlib.import_module("gmongo")
    stand_in = StandIn()
    finders: list[object] = [*sys.meta_path]
    sys.meta_path.insert(finders.index(PathFinder) if PathFinder in finders else len(finders), stand_in)
    for name, module in list(sys.modules.items()):
        if _root(name) == "gmongo":
            adopt_loggers(module)
    return stand_in


def _refuse_if_pymongo_is_imported() -> None:
    loaded = [name for name in sys.modules if name in ROOTS]
    if not loaded:
        return
    users = [
        name for name, module in list(sys.modules.items()) if _root(name) not in _NOT_USERS and _uses_pymongo(module)
    ]
    others = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    importers = f"by {', '.join(users[:_NAMED])}{others}" if users else "by a module that keeps no reference"
    raise RuntimeError(
        f"gmongo cannot stand in for PyMongo any more: {' and '.join(loaded)} was imported before, {importers}. Let "
        "'import gmongo.as_pymongo' be the first line of the program, or run it with 'python -m gmongo'"
    )


def _uses_pymongo(module: ModuleType) -> bool:
    """Return True if PyMongo defines the value of a global variable of the module."""
    return any(_root(_defining_module(value)) in ROOTS for value in list(getattr(module, "__dict__", {}).values()))


def _defining_module(value: object) -> str:
    """Return the name of the module that defines `value` or the class of `value`."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, type | FunctionType | BuiltinFunctionType):
        name = value.__module__
    else:
        name = type(value).__module__
    return name if isinstance(name, str) else ""


def _root(name: str) -> str:
    return name.partition(".")[0]
