"""``$densify``: documents where a sequence of numbers or dates has gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.arithmetic import add, multiply
from gmongo.testing.store.errors import failed_to_parse, location, type_mismatch
from gmongo.testing.store.expressions import Variables, path_parts
from gmongo.testing.store.expressions.dates import later
from gmongo.testing.store.expressions.timezones import UTC, unit_of
from gmongo.testing.store.filling import partition_fields
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.paths import value_at
from gmongo.testing.store.surroundings import Document, Documents, Stage, Surroundings, with_value
from gmongo.testing.store.values import MISSING, Key, compare, is_date, is_number, is_whole, key_of, whole

_OPTIONS = frozenset({"field", "partitionByFields", "range"})
_RANGE = frozenset({"step", "unit", "bounds"})
_MOST = 500_000


class _Sequence:
    """The values of one partition, one step after the other.

    :param begin: the first.
    """

    def __init__(self, begin: Any, step: Callable[[Any, int], Any]) -> None:
        self._begin, self._step = begin, step
        self._number = 0

    def up_to(self, end: Any, included: bool = False) -> Iterator[Any]:
        """The values ahead that are below `end`, or that."""
        while (order := compare(value := self._step(self._begin, self._number), end)) < 0 or (included and not order):
            self._number += 1
            yield value

    def skip(self, value: Any) -> None:
        """Pass over a value that is there."""
        if compare(self._step(self._begin, self._number), value) == 0:
            self._number += 1


def densify(spec: Any, around: Surroundings) -> Stage:
    """``$densify``.

    :raises CommandError: if it is malformed.
    """
    _check(spec)
    fields, bounds = partition_fields("$densify", spec.get("partitionByFields", [])), spec["range"]["bounds"]
    # Documents come as they are found by the field; those of partitions that are densified alone one after the other.
    order = {**dict.fromkeys(fields if bounds == "partition" else [], 1), spec["field"]: 1}
    sort = compile_sort(order, around.collation, around.pace)
    step = _step(spec["range"])

    def run(documents: Documents, _variables: Variables) -> Documents:
        found = list(sort(documents, lambda document: document))
        return _Densification(spec, fields, step, around.pace).of(found)

    return run


class _Densification:
    """The documents that a stage adds to others."""

    def __init__(self, spec: Any, fields: list[str], step: Callable[[Any, int], Any], pace: Pace) -> None:
        self._pace = pace
        self._field, self._path, self._fields = spec["field"], path_parts(spec["field"]), fields
        self._bounds, self._unit, self._step = spec["range"]["bounds"], spec["range"].get("unit"), step
        self._partitions: dict[Key, tuple[dict[str, Any], _Sequence]] = {}
        self._made = 0

    def of(self, documents: list[Document]) -> Iterator[Document]:
        """The documents, which are sorted, and what is between them."""
        values = [_value(document, self._field, self._unit) for document in self._pace.through(documents)]
        there = [value for value in values if value is not None]
        explicit = isinstance(self._bounds, list)
        low, high = self._bounds if explicit else (there[0], there[-1]) if there else (None, None)
        for document, value in self._pace.through(zip(documents, values, strict=True)):
            if value is not None:
                shared, sequence = self._partition(document, value if self._bounds == "partition" else low)
                below = high if explicit and compare(value, high) > 0 else value
                yield from self._new(shared, sequence.up_to(below))
                sequence.skip(value)
            yield document
        if explicit and not self._fields:
            self._partition({}, low)
        for shared, sequence in self._partitions.values() if self._bounds != "partition" else ():
            yield from self._new(shared, sequence.up_to(high, included=not explicit))

    def _partition(self, document: Document, begin: Any) -> tuple[dict[str, Any], _Sequence]:
        shared = {name: value_at(document, name) for name in self._fields}
        key = key_of(list(shared.values()))
        if key not in self._partitions:
            self._partitions[key] = shared, _Sequence(begin, self._step)
        return self._partitions[key]

    def _new(self, shared: dict[str, Any], values: Iterator[Any]) -> Iterator[Document]:
        for value in self._pace.through(values):
            if self._made >= _MOST:
                raise location(5897900, f"Generated {_MOST} documents in $densify, which is over the limit")
            self._made += 1
            yield _made(shared, self._path, value)


def _made(shared: dict[str, Any], path: list[str], value: Any) -> Document:
    document: Document = {}
    for name, part in shared.items():
        if part is not MISSING:
            document = with_value(document, path_parts(name), part)
    return with_value(document, path, value)


def _value(document: Document, field: str, unit: Any) -> Any:
    """The value to densify by; None if the document passes as it is."""
    value = value_at(document, field)
    if value is None or value is MISSING:
        return None
    if not is_number(value) and not is_date(value):
        raise location(5733201, "PlanExecutor error: $densify field type must be a date or numeric")
    if is_date(value) != (unit is not None):
        raise location(6053600, "$densify needs 'unit' for dates, and for dates only")
    return value


def _step(spec: Any) -> Callable[[Any, int], Any]:
    size = spec["step"]
    if "unit" not in spec:
        return lambda begin, number: add(begin, multiply(size, number)) if number else begin
    unit = unit_of(spec["unit"], "$densify")
    return lambda begin, number: later(begin, unit, whole(size) * number, UTC) if number else begin


def _check(spec: Any) -> None:
    if not isinstance(spec, dict):
        raise location(5733900, f"the $densify stage specification must be an object, found {spec!r}")
    for name in sorted(set(spec) - _OPTIONS):
        raise location(40415, f"BSON field '$densify.{name}' is an unknown field.")
    for name, wanted in (("field", str), ("range", dict)):
        if name not in spec:
            raise location(40414, f"BSON field '$densify.{name}' is missing but a required field")
        if not isinstance(spec[name], wanted):
            raise type_mismatch(f"BSON field '$densify.{name}' is the wrong type")
    given = spec["range"]
    for name in sorted(set(given) - _RANGE):
        raise location(40415, f"BSON field '$densify.range.{name}' is an unknown field.")
    if "step" not in given or "bounds" not in given:
        raise location(40414, "BSON fields '$densify.range.step' and '$densify.range.bounds' are required")
    if not is_number(given["step"]):
        raise type_mismatch("BSON field '$densify.range.step' is the wrong type, expected a number")
    if float(str(given["step"])) <= 0:
        raise location(5733401, "the step parameter in a range statement must be a strictly positive numeric value")
    if "unit" in given and not is_whole(given["step"]):
        raise location(6586400, "the step parameter in a range statement must be a whole number for dates")
    _check_bounds(given["bounds"], "unit" in given, spec)


def _check_bounds(bounds: Any, dates: bool, spec: Any) -> None:
    if bounds == "full" or (bounds == "partition" and spec.get("partitionByFields")):
        return
    if bounds == "partition":
        raise location(5733408, "one may not specify the bounds as 'partition' without specifying a non-empty array of "
                       "partitionByFields")  # fmt: skip
    if isinstance(bounds, list) and len(bounds) != 2:
        raise location(5733403, "a bounding array in a range statement must have exactly two elements")
    if not isinstance(bounds, list):
        raise location(5733402, f"the bounds in a range statement must be 'full', 'partition' or an array of two "
                       f"numbers or two dates, found {bounds!r}")  # fmt: skip
    if not all(is_date(bound) if dates else is_number(bound) for bound in bounds):
        raise _wrong_bounds(bounds, dates)
    if compare(*bounds) > 0:
        raise location(5733402, f"the bounds in a range statement must be ascending, found {bounds!r}")


def _wrong_bounds(bounds: list[Any], dates: bool) -> CommandError:
    if dates and all(map(is_number, bounds)):
        return location(5733409, "numeric bounds may not have unit parameter")
    if is_number(bounds[0]) and is_date(bounds[1]):
        return location(5733406, "a bounding array must contain either both dates or both numeric types")
    if dates:
        return location(5733402, "a bounding array must be an ascending array of either two dates or two numbers")
    return failed_to_parse(f"the bounds of $densify must be numbers, or dates with a unit, found {bounds!r}")
