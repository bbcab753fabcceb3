"""Removal of local variables from tracebacks. Error reports show local variables, which may contain secrets."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., object])  # with a ParamSpec, mypy ignores default types

# Packages whose functions receive secrets. Frames of the application keep their local variables.
_PACKAGES_WITH_SECRETS = frozenset({"bson", "gevent", "gmongo", "http", "pymongocrypt", "ssl", "urllib"})


def clears_locals(function: _Function) -> _Function:
    """Decorate a function: clear local variables of `_PACKAGES_WITH_SECRETS` in the tracebacks of its exceptions."""

    @wraps(function)
    def call(*arguments: object, **named: object) -> object:
        try:
            return function(*arguments, **named)
        except BaseException as error:
            del arguments, named
            _clear_locals(error)
            raise

    return cast("_Function", call)


def _clear_locals(error: BaseException) -> None:
    """Clear local variables of `_PACKAGES_WITH_SECRETS` in the tracebacks of an exception, its causes and contexts."""
    pending_errors, visited_ids = [error], set()
    while pending_errors:
        each = pending_errors.pop()
        if id(each) in visited_ids:
            continue
        visited_ids.add(id(each))
        for frame, _line in walk_tb(each.__traceback__):
            if frame.f_globals.get("__name__", "").partition(".")[0] in _PACKAGES_WITH_SECRETS:
                try:
                    frame.clear()
                except RuntimeError:  # the frame belongs to a caller, which is still running
                    continue
        pending_errors += [one for one in (each.__cause__, each.__context__) if one is not None]
