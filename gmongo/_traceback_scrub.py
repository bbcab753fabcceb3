"""Removal of local variables from tracebacks: error reports show them, and they may contain secrets."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Packages that receive secrets from the driver. Frames of the application, such as callbacks, keep their locals.
_OURS = frozenset({"bson", "gevent", "gmongo", "http", "pymongocrypt", "ssl", "urllib"})


def clears_locals(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function: clear the arguments and locals in the traceback of its exceptions."""

    @wraps(function)
    def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
        try:
            return function(*arguments, **named)
        except BaseException as error:
            del arguments, named
            _clear_locals(error)
            raise

    return call


def _clear_locals(error: BaseException) -> None:
    """Clear the locals of all frames in the tracebacks of an exception and of its causes and contexts."""
    waiting, seen = [error], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        for frame, _line in walk_tb(each.__traceback__):
            if frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
                try:
                    frame.clear()
                except RuntimeError:  # the frame is still running: a caller
                    continue
        waiting += [one for one in (each.__cause__, each.__context__) if one is not None]
