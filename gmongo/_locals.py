"""Locals of frames: programs that report errors show those of each frame in a traceback, and some hold secrets."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

# What the driver passes secrets to. Frames of the application's, as of its callbacks, keep their locals.
_OURS = frozenset({"bson", "gevent", "gmongo", "http", "pymongocrypt", "ssl", "urllib"})


def forgets_locals(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Have nothing that a function was given or has made left in the traceback of what it raises."""

    @wraps(function)
    def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
        try:
            return function(*arguments, **named)
        except BaseException as error:
            del arguments, named
            _forget(error)
            raise

    return call


def _forget(error: BaseException) -> None:
    """Clear the locals of the frames that an exception, and those behind it, have left."""
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
                except RuntimeError:  # it runs: that of the caller, or of one above
                    continue
        waiting += [one for one in (each.__cause__, each.__context__) if one is not None]
