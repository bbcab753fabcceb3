"""How an operation of a test becomes a call of the driver."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import gmongo
from gmongo import CursorType, ReturnDocument
from tests.spec.unified.results import Documents, as_document
from tests.spec.unified.schema import FormatError
from tests.spec.unified.values import CONVERSIONS, check_known, snake_case

if TYPE_CHECKING:
    from tests.spec.unified.runner import Run

_CURSOR_TYPES = {
    "nonTailable": CursorType.NON_TAILABLE,
    "tailable": CursorType.TAILABLE,
    "tailableAwait": CursorType.TAILABLE_AWAIT,
}
_RETURN_DOCUMENTS = {"before": ReturnDocument.BEFORE, "after": ReturnDocument.AFTER}

# Where the driver's method does not take the limit of an operation as an argument, it is given around the call.
_LIMIT = "timeoutMS"
_TIMEOUT_MODES = {"cursorLifetime": "cursor_lifetime", "iteration": "iteration"}
LIMITED_CURSOR = "timeoutMS timeoutMode"
"""The arguments of operations that open cursors, which outlive the call."""


class Method:
    """An operation that is a method of the driver's object, or a function that takes the object first.

    :param call: the method's name, or the function.
    :param required: arguments that must be given, as the tests write them.
    :param optional: arguments that may be given.
    :param fields: arguments that may be given and are handed on as they are, because they are fields of the command.
    :param names: how the driver calls an argument where that is not the same in snake case.
    :param show: makes of what the driver returns what the tests compare; a result object becomes a document.
    """

    def __init__(
        self,
        call: str | Callable[..., Any],
        required: str = "",
        optional: str = "",
        fields: str = "",
        names: Mapping[str, str] | None = None,
        show: Callable[[Any], Any] = as_document,
    ) -> None:
        self._call = call
        self._title = call if isinstance(call, str) else call.__name__
        self._required = frozenset(required.split())
        self._fields = frozenset(fields.split())
        self._takes_limit = _LIMIT in optional.split()
        self._known = self._required | set(optional.split()) | self._fields | {_LIMIT}
        self._names = names or {}
        self._show = show

    def run(self, run: Run, target: Any, arguments: Mapping[str, Any]) -> Any:
        """Call it.

        :raises FormatError: an argument is missing or unknown.
        """
        self._check(arguments)
        given = dict(arguments)
        timeout = None if self._takes_limit else given.pop(_LIMIT, None)
        converted = {self._name(name): convert(run, name, value) for name, value in given.items()}
        method = getattr(target, self._call) if isinstance(self._call, str) else partial(self._call, target)
        with nullcontext() if timeout is None else gmongo.timeout(timeout / 1000):
            return self._show(method(**converted))

    def _check(self, arguments: Mapping[str, Any]) -> None:
        check_known(arguments, self._known, f"the operation {self._title}")
        missing = sorted(self._required - set(arguments))
        if missing:
            raise FormatError(f"the operation {self._title} needs {missing}")

    def _name(self, name: str) -> str:
        if name in self._fields:
            return name
        return self._names.get(name) or snake_case(name)


class Function:
    """An operation of the runner's own: a function of the run, the entity's object and the arguments, by their names.

    :param function: whose parameters are named as the tests write them.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = inspect.signature(function)

    def run(self, run: Run, target: Any, arguments: Mapping[str, Any]) -> Any:
        """Call it.

        :raises FormatError: an argument is missing or unknown.
        """
        try:
            self._signature.bind(run, target, **arguments)
        except TypeError as error:
            raise FormatError(f"{self._function.__name__}: {error}")
        return self._function(run, target, **arguments)


Operation = Method | Function


def documents(cursor: Any) -> Documents:
    """All documents of a cursor, which is closed then."""
    with cursor:
        return Documents(cursor)


def convert(run: Run, name: str, value: Any) -> Any:
    """An argument as the driver takes it.

    :raises FormatError: it is a value that the format does not have.
    """
    if name == "session":
        return run.entities.session(value)
    if name in CONVERSIONS:
        return CONVERSIONS[name](value)
    if name == "returnDocument":
        return _chosen(_RETURN_DOCUMENTS, value.lower(), name)
    if name == "timeoutMode":
        return _chosen(_TIMEOUT_MODES, value, name)
    if name == "cursorType":
        return _chosen(_CURSOR_TYPES, value, name)
    return value


def _chosen(table: Mapping[str, Any], value: str, name: str) -> Any:
    if value not in table:
        raise FormatError(f"{name} must be one of {list(table)}, was {value!r}")
    return table[value]
