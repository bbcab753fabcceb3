"""The ``$group`` stage and its accumulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store import arithmetic
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.values import MISSING, equal, key_of

Document = dict[str, Any]


def group(documents: list[Document], spec: Any, variables: Mapping[str, Any]) -> list[Document]:
    """The groups, in the order in which they first appear.

    :raises CommandError: without ``_id``, or for an accumulator that is not supported.
    """
    if not isinstance(spec, dict) or "_id" not in spec:
        raise location(15955, "a group specification must include an _id")
    accumulators = {name: _accumulator(name, value) for name, value in spec.items() if name != "_id"}
    groups: dict[Any, tuple[Any, list[Document]]] = {}
    for document in documents:
        identity = evaluate(spec["_id"], document, variables)
        identity = None if identity is MISSING else identity
        groups.setdefault(key_of(identity), (identity, []))[1].append(document)
    return [
        {"_id": identity, **{name: _run(one, members, variables) for name, one in accumulators.items()}}
        for identity, members in groups.values()
    ]


Accumulate = Callable[[list[Any]], Any]


def _run(accumulator: tuple[Accumulate, Any], members: list[Document], variables: Mapping[str, Any]) -> Any:
    accumulate, expression = accumulator
    return accumulate([evaluate(expression, member, variables) for member in members])


def _accumulator(name: str, spec: Any) -> tuple[Accumulate, Any]:
    if not isinstance(spec, dict) or len(spec) != 1:
        raise location(40234, f"The field '{name}' must be an accumulator object")
    ((operator, expression),) = spec.items()
    if operator in _UNSUPPORTED:
        raise not_supported(f"the accumulator {operator}")
    if operator not in _ACCUMULATORS:
        raise location(15952, f"unknown group operator '{operator}'")
    return _ACCUMULATORS[operator], {} if operator == "$count" else expression


def _there(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not MISSING]


def _add_to_set(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in _there(values):
        if not any(equal(value, one) for one in found):
            found.append(value)
    return found


def _or_none(value: Any) -> Any:
    return None if value is MISSING else value


def _merged(values: list[Any]) -> Any:
    merged: Document = {}
    for value in values:
        if isinstance(value, dict):
            merged.update(value)
    return merged


_ACCUMULATORS: Mapping[str, Accumulate] = {
    "$sum": arithmetic.total,
    "$avg": arithmetic.average,
    "$min": lambda values: arithmetic.extreme(values, 1),
    "$max": lambda values: arithmetic.extreme(values, -1),
    "$first": lambda values: _or_none(values[0]),
    "$last": lambda values: _or_none(values[-1]),
    "$push": _there,
    "$addToSet": _add_to_set,
    "$mergeObjects": _merged,
    "$count": len,
}
_UNSUPPORTED = frozenset(
    {
        "$accumulator",
        "$bottom",
        "$bottomN",
        "$firstN",
        "$lastN",
        "$maxN",
        "$median",
        "$minN",
        "$percentile",
        "$stdDevPop",
        "$stdDevSamp",
        "$top",
        "$topN",
    }
)
