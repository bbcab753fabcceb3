"""Putting the stand-in in place, once in a process."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from types import BuiltinFunctionType, FunctionType, ModuleType

from gmongo._stand_in.finder import StandIn
from gmongo._stand_in.loggers import adopt_loggers
from gmongo._stand_in.names import ROOTS

_NAMED = 5  # modules in the message
_NOT_USERS = ROOTS | {"gmongo", "bson"}


def install() -> StandIn:
    """Let ``pymongo`` and ``gridfs`` be gmongo from now on. Once is enough; the finder that does it is returned.

    :raises RuntimeError: PyMongo itself was imported before.
    """
    for finder in sys.meta_path:
        if isinstance(finder, StandIn):
            return finder
    _refuse_if_too_late()
    importlib.import_module("gmongo")
    stand_in = StandIn()
    sys.meta_path.insert(_place(), stand_in)
    for name, module in list(sys.modules.items()):
        if _root(name) == "gmongo":
            adopt_loggers(module)
    return stand_in


def _place() -> int:
    """Before the finder of files on ``sys.path``, and after finders that only watch imports."""
    finders: list[object] = [*sys.meta_path]
    return finders.index(PathFinder) if PathFinder in finders else len(finders)


def _refuse_if_too_late() -> None:
    loaded = [name for name in sys.modules if name in ROOTS]
    if not loaded:
        return
    users = [name for name, module in list(sys.modules.items()) if _root(name) not in _NOT_USERS and _uses(module)]
    others = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    by = f"by {', '.join(users[:_NAMED])}{others}" if users else "by a module that does not keep it"
    raise RuntimeError(
        f"gmongo cannot stand in for PyMongo any more: {' and '.join(loaded)} was imported before, {by}. Let "
        "'import gmongo.as_pymongo' be the first line of the program, or run it with 'python -m gmongo'"
    )


def _uses(module: ModuleType) -> bool:
    """Whether a module has something of PyMongo's among its globals."""
    return any(_root(_home(value)) in ROOTS for value in list(getattr(module, "__dict__", {}).values()))


def _home(value: object) -> str:
    """The module that something comes from; an instance comes from where its class does."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, type | FunctionType | BuiltinFunctionType):
        name = value.__module__
    else:
        name = type(value).__module__
    return name if isinstance(name, str) else ""


def _root(name: str) -> str:
    return name.partition(".")[0]
