"""Where gmongo deliberately answers otherwise than PyMongo, in `differences.jsonl`. Whatever is not there fails.

A difference names the calls in which it is seen, and the part of the outcome that it explains; all other parts are
compared. Each says why, and where the pages of differences describe it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from .portrait import Own, Raised, same
from .scene import Outcome

Judge = Callable[[Any, Any], bool]

ACCIDENTS = frozenset({"AttributeError", "KeyError", "IndexError", "SystemError", "StopIteration", "AssertionError"})
"""Errors that tell of a mistake in a program, not of one of its user's."""
_BAD_ARGUMENT = frozenset({"TypeError", "ValueError"})


class Kind(Enum):
    """What a difference is."""

    LAW = "a specification demands it"
    SAFER = "PyMongo loses something, or fails late or by accident"
    MORE = "gmongo takes or does something that PyMongo refuses or cannot"
    FORM = "a form that no program should depend on"


@dataclass(frozen=True)
class Difference:
    """One deliberate difference.

    :param reason: why, in one sentence.
    :param line: a piece of the line in `docs/differences.md` or `docs/differences-internals.md`.
    :param calls: a regular expression that is found in the calls in which it is seen.
    :param parts: the fields of the outcome that it explains as a whole.
    :param judge: says of two parts of an outcome that differ whether this difference explains them.
    """

    kind: Kind
    reason: str
    line: str
    calls: str = ""
    parts: tuple[str, ...] = ()
    judge: Judge | None = None

    def sees(self, call: str) -> bool:
        """Whether a call may show it."""
        return re.search(self.calls, call) is not None


def _is_bad_argument(theirs: Any, ours: Any) -> bool:
    """Both refuse an argument: PyMongo with another built-in error, perhaps one that it stumbles over."""
    if isinstance(theirs, str) and theirs in ACCIDENTS and ours in ("InvalidOperation", *_BAD_ARGUMENT):
        return True
    if not (isinstance(theirs, Raised) and isinstance(ours, Raised)) or "PyMongoError" in theirs.classes:
        return False
    refused = _BAD_ARGUMENT.intersection(ours.classes)
    return theirs.classes[0] in ACCIDENTS | _BAD_ARGUMENT and bool(refused or "ConfigurationError" in ours.classes)


def _is_refused_early(theirs: Any, ours: Any) -> bool:
    """The server refuses what gmongo does not send."""
    return (
        isinstance(theirs, Raised)
        and isinstance(ours, Raised)
        and "OperationFailure" in theirs.classes
        and bool(_BAD_ARGUMENT.intersection(ours.classes))
    )


def _is_decoded(theirs: Any, ours: Any) -> bool:
    """The details of an error, of which PyMongo has a raw document."""
    if not (isinstance(ours, tuple) and ours[:1] == ("dict",) and isinstance(theirs, tuple)):
        return False
    return bool(theirs == ("RawBSONDocument", ours)) and "errmsg" in dict(ours[1])


def _is_labelled(theirs: Any, ours: Any) -> bool:
    """Two errors of bulks of which ours has the label that the server gave."""
    if not (isinstance(theirs, Raised) and isinstance(ours, Raised)):
        return False
    return bool(theirs._replace(labels=("RetryableWriteError",)) == ours) and theirs.labels == ()


def _is_any_successful(theirs: Any, ours: Any) -> bool:
    """PyMongo says so of an ordered bulk whose first write failed, as the others were not tried."""
    if isinstance(theirs, Own):
        return theirs.kind == "ClientBulkWriteResult" and bool(ours == ("NoneType", None))
    return bool(theirs == ("anySuccessful", ("bool", True)) and ours == ("anySuccessful", ("bool", False)))


def _is_text(theirs: Any, ours: Any) -> bool:
    """Two texts of the drivers' own."""
    return isinstance(theirs, tuple) and isinstance(ours, tuple) and theirs[:1] == ours[:1] == ("str",)


def _is_read_preference(theirs: Any, ours: Any) -> bool:
    """Two commands that differ in ``$readPreference`` alone."""
    if not (_is_command(theirs) and _is_command(ours)):
        return False
    one, other = (
        (each[0], tuple(field for field in each[1] if field[0] != "$readPreference"), *each[2:])
        for each in (theirs, ours)
    )
    return (one != theirs or other != ours) and same(one, other, _is_same_number)


def _is_overload_policy(theirs: Any, ours: Any) -> bool:
    """How often an operation is tried again."""
    return bool((theirs, ours) == (("int", 2), ("int", 5)))


def _is_numbered(theirs: Any, ours: Any) -> bool:
    """Two commands of which ours can be retried."""
    if not (_is_command(theirs) and _is_command(ours)) or theirs == ours:
        return False
    number = ("txnNumber", ("bool", True))
    return number not in theirs[1] and bool((theirs[1], theirs[2:]) == (_without(number, ours[1]), ours[2:]))


def _without(field: Any, fields: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each for each in fields if each != field)


def _is_ended(theirs: Any, ours: Any) -> bool:
    """The number of a cursor, and zero."""
    return isinstance(theirs, tuple) and theirs[:1] == ("Int64",) and bool(ours == ("int", 0))


def _is_same_number(theirs: Any, ours: Any) -> bool:
    """A number as an integer and as a float."""
    kinds = {"int", "float"}
    if not all(isinstance(each, tuple) and len(each) == 2 and each[0] in kinds for each in (theirs, ours)):
        return False
    return float(theirs[1]) == float(ours[1])


def _is_command(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 4 and isinstance(part[1], tuple) and isinstance(part[3], bool)


_ALL = ("error", "returned", "commands", "left")


def _listed() -> Iterator[Difference]:
    for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        judge = row.pop("judge", None)
        yield Difference(
            Kind[row.pop("kind")],
            parts=tuple(row.pop("parts", ())),
            judge=None if judge is None else globals()[judge],
            **row,
        )


DIFFERENCES = tuple(_listed())


def explained(call: str, theirs: Outcome, ours: Outcome) -> set[int] | None:
    """The numbers of the differences that explain how two outcomes differ, or None if something is left over."""
    applicable = [(number, each) for number, each in enumerate(DIFFERENCES) if each.sees(call)]
    used: set[int] = set()

    def accept(theirs: Any, ours: Any) -> bool:
        for number, each in applicable:
            if each.judge is not None and each.judge(theirs, ours):
                used.add(number)
                return True
        return False

    for part in ("error", "returned", "commands", "left"):
        whole = [number for number, each in applicable if part in each.parts]
        if not same(getattr(theirs, part), getattr(ours, part), accept):
            if not whole:
                return None
            used.update(whole)
    return used


def check(call: str, theirs: Outcome, ours: Outcome) -> set[int]:
    """Fail if two outcomes differ for a reason that is not listed; returns the numbers of those that are seen."""
    used = explained(call, theirs, ours)
    if used is None:
        told = [
            f"{part}:\n  PyMongo {getattr(theirs, part)!r} {theirs.text if part == 'error' else ''}\n"
            f"  gmongo  {getattr(ours, part)!r} {ours.text if part == 'error' else ''}"
            for part in _ALL
            if getattr(theirs, part) != getattr(ours, part)
        ]
        raise AssertionError("\n".join(["the outcomes differ", *told]))
    return used
