"""The stages ``$bucket`` and ``$sortByCount``. Each stage is executed as a ``$group`` and a ``$sort``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions import Constant, Scope, compile_expression
from gmongo.testing.store.values import compare, rank

_OPTIONS = frozenset({"groupBy", "boundaries", "default", "output"})


def bucket(spec: Any) -> list[Any]:
    """Return the two stages that replace a ``$bucket``."""
    if not isinstance(spec, dict):
        raise location(40201, f"Argument to $bucket stage must be an object, but found {spec!r}")
    if set(spec) - _OPTIONS:
        raise location(40197, f"Unrecognized option to $bucket: {(set(spec) - _OPTIONS).pop()}.")
    if not {"groupBy", "boundaries"} <= set(spec):
        raise location(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.")
    by = spec["groupBy"]
    if not (isinstance(by, str) and by.startswith("$")) and not (isinstance(by, dict) and by):
        raise location(40202, f"The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but "
                       f"found: {by!r}.")  # fmt: skip
    boundaries = _boundaries(spec["boundaries"])
    branches = [
        {"case": {"$and": [{"$gte": [by, {"$literal": low}]}, {"$lt": [by, {"$literal": high}]}]},
         "then": {"$literal": low}}
        for low, high in pairwise(boundaries)
    ]  # fmt: skip
    switch: dict[str, Any] = {"branches": branches}
    if "default" in spec:
        switch["default"] = {"$literal": _default(spec["default"], boundaries)}
    output = spec.get("output", {"count": {"$sum": 1}})
    if not isinstance(output, dict):
        raise location(40196, f"The $bucket 'output' field must be an object, but found {output!r}.")
    return [{"$group": {"_id": {"$switch": switch}, **output}}, {"$sort": {"_id": 1}}]


def _boundaries(spec: Any) -> list[Any]:
    if not isinstance(spec, list):
        raise location(40200, f"The $bucket 'boundaries' field must be an array, but found {spec!r}.")
    found = [_constant(part, 40191, "'boundaries'") for part in spec]
    if len(found) < 2:
        raise location(40192, f"The $bucket 'boundaries' field must have at least 2 values, but found {len(found)}.")
    for low, high in pairwise(found):
        if rank(low) != rank(high):
            raise location(40193, "All values in the 'boundaries' option to $bucket must have the same type.")
        if compare(low, high) >= 0:
            raise location(40194, "The 'boundaries' option to $bucket must be sorted, and without equal values.")
    return found


def _default(spec: Any, boundaries: list[Any]) -> Any:
    value = _constant(spec, 40195, "'default'")
    inside = compare(value, boundaries[0]) >= 0 and compare(value, boundaries[-1]) < 0
    if rank(value) == rank(boundaries[0]) and inside:
        raise location(40199, "The $bucket 'default' field must be less than the lowest boundary or greater than or "
                       "equal to the highest boundary.")  # fmt: skip
    return value


def _constant(spec: Any, code: int, option: str) -> Any:
    expression = compile_expression(spec, Scope())
    if not isinstance(expression, Constant):
        raise location(code, f"The $bucket {option} must be constant values, but found {spec!r}.")
    return expression.value


def sort_by_count(spec: Any) -> list[Any]:
    """Return the two stages that replace a ``$sortByCount``."""
    if isinstance(spec, dict):
        if not next(iter(spec), "").startswith("$"):
            raise location(
                40147, f"the sortByCount field must be defined as a $-prefixed path or an expression: {spec!r}"
            )
    elif not isinstance(spec, str):
        raise location(40149, f"the sortByCount field must be specified as a string or as an object: {spec!r}")
    elif not spec.startswith("$"):
        raise location(40148, f"the sortByCount field must be defined as a $-prefixed path or an expression: {spec!r}")
    return [{"$group": {"_id": spec, "count": {"$sum": 1}}}, {"$sort": {"count": -1}}]
