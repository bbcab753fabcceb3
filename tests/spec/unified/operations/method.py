"""Convert an operation of the unified test format to a call of a driver method."""

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

# Argument with the time limit of an operation. If the driver method has no such argument, the runner
# calls the method in a `gmongo.timeout` block.
_TIMEOUT_ARGUMENT = "timeoutMS"
_TIMEOUT_MODES = {"cursorLifetime": "cursor_lifetime", "iteration": "iteration"}
CURSOR_TIMEOUTS = "timeoutMS timeoutMode"
"""Arguments that limit the duration of operations and of their cursors."""


class Method:
    """An operation that calls a method of a driver object.

    :param call: Name of the driver's method, or a function that receives the driver's object as its
        first argument.
    :param required: Required arguments, by their names in the unified test format, separated by
        spaces.
    :param optional: Optional arguments, in the same notation.
    :param fields: Further optional arguments, in the same notation. The driver's method adds the
        arguments to the command with unchanged names.
    :param names: Name in the unified test format -> parameter of the driver's method. Without an
        entry, :func:`snake_case` converts the name.
    :param convert_result: Function that converts the result of the method to a value that the runner
        can compare.
    """

    def __init__(
        self,
        call: str | Callable[..., Any],
        required: str = "",
        optional: str = "",
        fields: str = "",
        names: Mapping[str, str] | None = None,
        convert_result: Callable[[Any], Any] = as_document,
    ) -> None:
        self._call = call
        self._call_name = call if isinstance(call, str) else call.__name__
        self._required = frozenset(required.split())
        self._fields = frozenset(fields.split())
        self._takes_limit = _TIMEOUT_ARGUMENT in optional.split()
        self._known = self._required | set(optional.split()) | self._fields | {_TIMEOUT_ARGUMENT}
        self._names = names or {}
        self._convert_result = convert_result

    def run(self, run: Run, target: Any, arguments: Mapping[str, Any]) -> Any:
        """Call the method."""
        self._check(arguments)
        values = dict(arguments)
        timeout = None if self._takes_limit else values.pop(_TIMEOUT_ARGUMENT, None)
        converted = {self._method_argument(name): convert_argument(run, name, value) for name, value in values.items()}
        method = getattr(target, self._call) if isinstance(self._call, str) else partial(self._call, target)
        with nullcontext() if timeout is None else gmongo.timeout(timeout / 1000):
            return self._convert_result(method(**converted))

    def _check(self, arguments: Mapping[str, Any]) -> None:
        check_known(arguments, self._known, f"the operation {self._call_name}")
        missing = sorted(self._required - set(arguments))
        if missing:
            raise FormatError(f"the operation {self._call_name} needs {missing}")

    def _method_argument(self, name: str) -> str:
        if name in self._fields:
            return name
        return self._names.get(name) or snake_case(name)


class Function:
    """An operation that calls a function of the runner.

    :param function: Function that receives the run, the object of the entity, and the arguments of
        the operation as keyword arguments.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = inspect.signature(function)

    def run(self, run: Run, target: Any, arguments: Mapping[str, Any]) -> Any:
        """Call the function."""
        try:
            self._signature.bind(run, target, **arguments)
        except TypeError as error:
            raise FormatError(f"{self._function.__name__}: {error}")
        return self._function(run, target, **arguments)


Operation = Method | Function


def read_documents(cursor: Any) -> Documents:
    """Read all documents of a cursor, and close the cursor."""
    with cursor:
        return Documents(cursor)


def convert_argument(run: Run, name: str, value: Any) -> Any:
    """Convert the value of an argument in a case to a value for the driver's method."""
    if name == "session":
        return run.entities.session(value)
    if name in CONVERSIONS:
        return CONVERSIONS[name](value)
    if name == "returnDocument":
        return _look_up_value(_RETURN_DOCUMENTS, value.lower(), name)
    if name == "timeoutMode":
        return _look_up_value(_TIMEOUT_MODES, value, name)
    if name == "cursorType":
        return _look_up_value(_CURSOR_TYPES, value, name)
    return value


def _look_up_value(table: Mapping[str, Any], value: str, name: str) -> Any:
    if value not in table:
        raise FormatError(f"{name} must be one of {list(table)}, was {value!r}")
    return table[value]
