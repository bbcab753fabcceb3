"""The intended differences from PyMongo, in `differences.jsonl`.

If the outcomes of a call differ in any other way, a test fails.

An entry contains the reason, a text of the documentation, and a regular expression for calls. An
entry also names the parts of an outcome that may differ, or a function that accepts differences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from .call_runner import Outcome
from .comparable_values import DriverObject, RaisedError, are_equal

AcceptsParts = Callable[[Any, Any], bool]

FAULT_NAMES = frozenset({"AttributeError", "KeyError", "IndexError", "SystemError", "StopIteration", "AssertionError"})
"""Names of errors that PyMongo raises because of a fault in PyMongo, and not to report a bad argument."""
_ARGUMENT_ERRORS = frozenset({"TypeError", "ValueError"})


class Kind(Enum):
    """Reason why a difference from PyMongo is intended."""

    SPECIFICATION = "a specification requires the behaviour of gmongo"
    SAFER = "PyMongo loses data, or fails late or by accident"
    EXTENSION = "gmongo accepts or supports more than PyMongo"
    FORMAT = "the format of a result or command differs"


@dataclass(frozen=True)
class Difference:
    """An intended difference from PyMongo.

    :param reason: One sentence that explains the difference.
    :param line: Part of the line that describes the difference in `docs/differences.md` or
        `docs/differences-internals.md`.
    :param calls: Regular expression that matches the source code of calls with this difference.
    :param parts: Fields of :class:`Outcome` that may differ in any way.
    :param accepts: Function that receives the values of PyMongo and gmongo, and returns True if
        this difference explains why the two values differ.
    """

    kind: Kind
    reason: str
    line: str
    calls: str = ""
    parts: tuple[str, ...] = ()
    accepts: AcceptsParts | None = None

    def matches(self, call: str) -> bool:
        """Return True if this difference can occur in the outcomes of a call."""
        return re.search(self.calls, call) is not None


def _is_bad_argument(theirs: Any, ours: Any) -> bool:
    """Return True if both drivers reject an argument with different errors, and PyMongo raises an
    accidental error, a TypeError or a ValueError.
    """
    if isinstance(theirs, str) and theirs in FAULT_NAMES and ours in ("InvalidOperation", *_ARGUMENT_ERRORS):
        return True
    if not (isinstance(theirs, RaisedError) and isinstance(ours, RaisedError)) or "PyMongoError" in theirs.classes:
        return False
    rejects = _ARGUMENT_ERRORS.intersection(ours.classes)
    return theirs.classes[0] in FAULT_NAMES | _ARGUMENT_ERRORS and bool(rejects or "ConfigurationError" in ours.classes)


def _is_rejected_before_send(theirs: Any, ours: Any) -> bool:
    """Return True if gmongo rejects an argument, but PyMongo sends the argument, which the
    server rejects.
    """
    return (
        isinstance(theirs, RaisedError)
        and isinstance(ours, RaisedError)
        and "OperationFailure" in theirs.classes
        and bool(_ARGUMENT_ERRORS.intersection(ours.classes))
    )


def _is_decoded_error_document(theirs: Any, ours: Any) -> bool:
    """Return True if the details of an error are a dictionary in gmongo, but a RawBSONDocument in
    PyMongo.
    """
    if not (isinstance(ours, tuple) and ours[:1] == ("dict",) and isinstance(theirs, tuple)):
        return False
    return bool(theirs == ("RawBSONDocument", ours)) and "errmsg" in dict(ours[1])


def _has_additional_retry_label(theirs: Any, ours: Any) -> bool:
    """Return True if only gmongo's error of a bulk write has the server's label
    RetryableWriteError.
    """
    if not (isinstance(theirs, RaisedError) and isinstance(ours, RaisedError)):
        return False
    return bool(theirs._replace(labels=("RetryableWriteError",)) == ours) and theirs.labels == ()


def _differs_by_any_successful(theirs: Any, ours: Any) -> bool:
    """Return True if only PyMongo reports a successful write. PyMongo does so if the first write of an
    ordered bulk failed.
    """
    if isinstance(theirs, DriverObject):
        return theirs.kind == "ClientBulkWriteResult" and bool(ours == ("NoneType", None))
    return bool(theirs == ("anySuccessful", ("bool", True)) and ours == ("anySuccessful", ("bool", False)))


def _are_texts(theirs: Any, ours: Any) -> bool:
    """Return True if both parts are strings, even if they differ."""
    return isinstance(theirs, tuple) and isinstance(ours, tuple) and theirs[:1] == ours[:1] == ("str",)


def _differs_by_read_preference(theirs: Any, ours: Any) -> bool:
    """Return True if two commands differ only in ``$readPreference``."""
    if not (_is_comparable_command(theirs) and _is_comparable_command(ours)):
        return False
    one, other = (
        (each[0], tuple(field for field in each[1] if field[0] != "$readPreference"), *each[2:])
        for each in (theirs, ours)
    )
    return (one != theirs or other != ours) and are_equal(one, other, _is_same_number)


def _differs_by_retry_limit(theirs: Any, ours: Any) -> bool:
    """Return True if the maximum number of retries is 2 in PyMongo and 5 in gmongo."""
    return bool((theirs, ours) == (("int", 2), ("int", 5)))


def _differs_by_transaction_number(theirs: Any, ours: Any) -> bool:
    """Return True if two commands differ only in the transaction number, which only gmongo sends."""
    if not (_is_comparable_command(theirs) and _is_comparable_command(ours)) or theirs == ours:
        return False
    field = ("txnNumber", ("bool", True))
    return field not in theirs[1] and bool((theirs[1], theirs[2:]) == (_without_field(field, ours[1]), ours[2:]))


def _without_field(field: Any, fields: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each for each in fields if each != field)


def _is_id_of_ended_cursor(theirs: Any, ours: Any) -> bool:
    """Return True if the cursor ID is 0 in gmongo, because the cursor has ended, and an Int64 in
    PyMongo.
    """
    return isinstance(theirs, tuple) and theirs[:1] == ("Int64",) and bool(ours == ("int", 0))


def _is_same_number(theirs: Any, ours: Any) -> bool:
    """Return True if two numbers have equal values. Each number is an int or a float."""
    kinds = {"int", "float"}
    if not all(isinstance(each, tuple) and len(each) == 2 and each[0] in kinds for each in (theirs, ours)):
        return False
    return float(theirs[1]) == float(ours[1])


def _is_comparable_command(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 4 and isinstance(part[1], tuple) and isinstance(part[3], bool)


_OUTCOME_PARTS = ("error", "returned", "commands", "documents")


def _read_differences() -> Iterator[Difference]:
    for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        accepts = row.pop("accepts", None)
        yield Difference(
            Kind[row.pop("kind")],
            parts=tuple(row.pop("parts", ())),
            accepts=None if accepts is None else globals()[accepts],
            **row,
        )


DIFFERENCES = tuple(_read_differences())


def explaining_differences(call: str, theirs: Outcome, ours: Outcome) -> set[int] | None:
    """Return the indexes of the intended differences that explain all differences of two outcomes.

    Return None if the outcomes have a difference that no intended difference explains.
    """
    applicable = [(number, each) for number, each in enumerate(DIFFERENCES) if each.matches(call)]
    used_numbers: set[int] = set()

    def accept(theirs: Any, ours: Any) -> bool:
        for number, each in applicable:
            if each.accepts is not None and each.accepts(theirs, ours):
                used_numbers.add(number)
                return True
        return False

    for part in ("error", "returned", "commands", "documents"):
        explaining_numbers = [number for number, each in applicable if part in each.parts]
        if not are_equal(getattr(theirs, part), getattr(ours, part), accept):
            if not explaining_numbers:
                return None
            used_numbers.update(explaining_numbers)
    return used_numbers


def check_outcomes(call: str, theirs: Outcome, ours: Outcome) -> set[int]:
    """Return the indexes of the intended differences that explain all differences of two outcomes.

    :raises AssertionError: The outcomes have a difference that no intended difference explains.
    """
    used_numbers = explaining_differences(call, theirs, ours)
    if used_numbers is None:
        lines = [
            f"{part}:\n  PyMongo {getattr(theirs, part)!r} {theirs.text if part == 'error' else ''}\n"
            f"  gmongo  {getattr(ours, part)!r} {ours.text if part == 'error' else ''}"
            for part in _OUTCOME_PARTS
            if getattr(theirs, part) != getattr(ours, part)
        ]
        raise AssertionError("\n".join(["the outcomes differ", *lines]))
    return used_numbers
