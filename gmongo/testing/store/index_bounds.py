"""What ``explain`` says of an index scan: the index, and the intervals of its keys."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bson import DatetimeMS, ObjectId

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.index import Index
from gmongo.testing.store.planning import conditions_of, is_point
from gmongo.testing.store.values import is_nan, is_number, key_of, milliseconds

Conditions = Mapping[str, Sequence[tuple[str, Any]]]
_MAX_DATE = 2**63 - 1


@dataclass(frozen=True)
class Interval:
    """An interval of keys, with its ends as they are shown."""

    low: str
    high: str
    includes_low: bool = True
    includes_high: bool = True

    def shown(self, backwards: bool) -> str:
        """As ``indexBounds`` has it."""
        if backwards:
            return Interval(self.high, self.low, self.includes_high, self.includes_low).shown(False)
        return f"{'[' if self.includes_low else '('}{self.low}, {self.high}{']' if self.includes_high else ')'}"


ALL = Interval("MinKey", "MaxKey")


def intervals_of(index: Index, path: str, conditions: Conditions, collation: Collation) -> list[Interval] | None:
    """The intervals of an index's field that the conditions leave; None if they leave all."""
    low = high = None
    for name, operand in conditions.get(path, ()):
        wanted = [operand] if name == "$eq" else operand if name == "$in" and isinstance(operand, list) else None
        if wanted is not None and all(is_point(value, index.collation, collation) for value in wanted):
            values = sorted(wanted, key=lambda value: key_of(collation.folded(value)))
            return [Interval(text, text) for text in dict.fromkeys(map(shown, values))]
        if name in ("$gt", "$gte", "$lt", "$lte") and is_point(operand, index.collation, collation):
            if is_nan(operand) or (index.multikey and (low or high)):
                continue
            if name.startswith("$g"):
                low = (operand, name == "$gte")
            else:
                high = (operand, name == "$lte")
    if low is None and high is None:
        return None
    ends = _ends((low or high or ("",))[0])
    least, most = low or (None, ends[2]), high or (None, ends[3])
    return [Interval(shown(least[0]) if low else ends[0], shown(most[0]) if high else ends[1], least[1], most[1])]


def _ends(value: Any) -> tuple[str, str, bool, bool]:
    """Where the values of a type begin and end, and whether these belong to them."""
    if isinstance(value, bool):
        return "false", "true", True, True
    if is_number(value):
        return "-inf", "inf", True, True
    if isinstance(value, str):
        return '""', "{}", True, False
    if isinstance(value, (datetime.datetime, DatetimeMS)):
        return f"new Date({-_MAX_DATE - 1})", f"new Date({_MAX_DATE})", True, True
    if isinstance(value, ObjectId):
        return shown(ObjectId(b"\0" * 12)), shown(ObjectId(b"\xff" * 12)), True, True
    return "MinKey", "MaxKey", True, True


def shown(value: Any) -> str:
    """A value as a server writes it into bounds."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.1f}" if math.isfinite(value) and value == int(value) else f"{value:g}"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, ObjectId):
        return f"ObjectId('{value}')"
    if isinstance(value, (datetime.datetime, DatetimeMS)):
        return f"new Date({milliseconds(value)})"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {shown(part)}" for name, part in value.items()) + " }" if value else "{}"
    return str(value)


def description(
    index: Index, documents: Iterable[Any], query: Any, collation: Collation, backwards: bool
) -> dict[str, Any]:
    """The fields of an index scan.

    :param documents: those of the collection.
    """
    conditions = conditions_of(query)
    bounds: dict[str, list[str]] = {}
    for path, kind in index.keys.items():
        found = intervals_of(index, path, conditions, collation) or [ALL]
        reverse = (is_number(kind) and float(str(kind)) < 0) != backwards
        bounds[path] = [interval.shown(reverse) for interval in (reversed(found) if reverse else found)]
    return {
        **properties(index, documents),
        "indexVersion": 2,
        "direction": "backward" if backwards else "forward",
        "indexBounds": bounds,
    }


def properties(index: Index, documents: Iterable[Any]) -> dict[str, Any]:
    """What is said of an index, however it is used."""
    arrays: dict[str, set[str]] = {path: set() for path in index.keys}
    for document in documents:
        for path, found in arrays.items():
            found.update(_arrays(document, path.split(".")))
    return {
        "keyPattern": dict(index.keys),
        "indexName": index.name,
        "isMultiKey": any(arrays.values()),
        "multiKeyPaths": {path: sorted(found) for path, found in arrays.items()},
        "isUnique": bool(index.is_identity or index.options.get("unique")),
        "isSparse": bool(index.options.get("sparse")),
        "isPartial": "partialFilterExpression" in index.options,
    }


def _arrays(value: Any, parts: Sequence[str], gone: int = 0) -> Iterable[str]:
    """The beginnings of a path at which there are arrays."""
    if isinstance(value, list) and gone:
        yield ".".join(parts[:gone])
        for element in value:
            if isinstance(element, dict):
                yield from _arrays(element, parts, gone)
    elif isinstance(value, dict) and gone < len(parts):
        yield from _arrays(value.get(parts[gone]), parts, gone + 1)


def is_bounded(index: Index, path: str, name: str, operand: Any, collation: Collation) -> bool:
    """Whether the intervals of an index hold for a condition, so that no document has to be looked at for it."""
    if path not in index.keys or (index.multikey and path != next(iter(index.keys))):
        return False
    return intervals_of(index, path, {path: [(name, operand)]}, collation) is not None
