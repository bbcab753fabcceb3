"""The expression operators of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Make,
    Scope,
    Variables,
    compile_expression,
    folded,
    none_if_missing,
)
from gmongo.testing.store.expressions.operands import (
    Fields,
    null_for_null,
    of_iterator,
    of_values,
    under_collation,
)
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.values import MISSING, equal, is_number, is_whole, key_of, type_name, whole

_INT32 = range(-(2**31), 2**31)
_ZIP = Fields({"inputs": 34465}, ("useLongestLength", "defaults"), 34460, 34464)
_SORT = Fields({"input": 2942502, "sortBy": 2942503}, (), 2942500, 2942501)


def is_null_or_missing(value: Any) -> bool:
    """Return True if the value is null or missing."""
    return value is None or value is MISSING


def array_of(name: str, value: Any, code: int) -> list[Any]:
    """Check that a value is an array, and return the value.

    :param name: the name of the operator in the error message.
    :param value: the value to check.
    :param code: the error code for a value of another type.
    """
    if not isinstance(value, list):
        raise location(code, f"{name} requires an array, but its argument is {type_name(value)}")
    return value


def integral(name: str, value: Any, not_a_number: int, not_an_int: int) -> int:
    """Check that a value is an integral number in the range of an int32. Return the number.

    :param name: the name of the argument in error messages.
    :param value: the value to check.
    :param not_a_number: the error code for a value that is not a number.
    :param not_an_int: the error code for a number that has a fractional part or is out of range.
    """
    if not is_number(value):
        raise location(not_a_number, f"{name} must be a numeric value, but is {type_name(value)}")
    if not is_whole(value) or whole(value) not in _INT32:
        raise location(not_an_int, f"{name} must be representable as a 32-bit integer: {value}")
    return whole(value)


def _element(array: Any, index: Any) -> Any:
    if is_null_or_missing(array) or is_null_or_missing(index):
        return None
    if not isinstance(array, list):
        raise location(28689, f"$arrayElemAt's first argument must be an array, but is {type_name(array)}")
    place = integral("$arrayElemAt's second argument", index, 28690, 28691)
    return array[place] if -len(array) <= place < len(array) else MISSING


def _first_or_last(name: str, place: int) -> Make:
    def run(array: Any) -> Any:
        if is_null_or_missing(array):
            return None
        found = array_of(name, array, 28689)
        return found[place] if found else MISSING

    return of_values(run, 1)


def _in(collation: Collation, searched: Any, array: Any) -> bool:
    if not isinstance(array, list):
        raise location(40081, f"$in requires an array as a second argument, found: {type_name(array)}")
    searched = collation.folded(searched)
    return any(equal(searched, collation.folded(element)) for element in array)


def bounds(arguments: Sequence[Any], length: int) -> tuple[int, int]:
    """Return the start index and the end index of a search.

    :param arguments: the start index and the end index of the expression, both optional.
    :param length: the length of the searched array or string.
    """
    limits = []
    for value in arguments:
        if not is_number(value) or not is_whole(value):
            raise location(40096, f"the starting or ending index requires an integral value, not {value!r}")
        if whole(value) < 0:
            raise location(40097, f"the starting or ending index requires a nonnegative value, not {value!r}")
        limits.append(whole(value))
    first, last = [*limits, length][:2] if limits else (0, length)
    return first, min(last, length)


def _index_of_array(name: str, operand: Any, scope: Scope) -> Expression:
    return of_iterator(lambda values: _index_of(scope.collation, values), 2, 4)(name, operand, scope)


def _index_of(collation: Collation, values: Iterator[Any]) -> Any:
    array = next(values)
    if is_null_or_missing(array):
        return None
    if not isinstance(array, list):
        raise location(40090, f"$indexOfArray requires an array as a first argument, found: {type_name(array)}")
    searched, *limits = values
    first, last = bounds(limits, len(array))
    searched = collation.folded(searched)
    return next((place for place in range(first, last) if equal(collation.folded(array[place]), searched)), -1)


def _is_array(value: Any) -> bool:
    return isinstance(value, list)


def _size(value: Any) -> int:
    if not isinstance(value, list):
        raise location(17124, f"The argument to $size must be an array, but was of type: {type_name(value)}")
    return len(value)


def _concatenated(arrays: Iterable[Any]) -> Any:
    found: list[Any] = []
    for array in arrays:
        if is_null_or_missing(array):
            return None
        if not isinstance(array, list):
            raise location(28664, f"$concatArrays only supports arrays, not {type_name(array)}")
        found += array
    return found


def _range(start: Any, end: Any, step: Any = 1) -> list[int]:
    first = integral("$range's starting value", start, 34443, 34444)
    last = integral("$range's ending value", end, 34445, 34446)
    by = integral("$range's step value", step, 34447, 34448)
    if not by:
        raise location(34449, "$range requires a non-zero step value")
    return list(range(first, last, by))


def _reversed(array: Any) -> list[Any]:
    return array_of("$reverseArray", array, 34435)[::-1]


def _slice(array: Any, *numbers: Any) -> list[Any]:
    if not isinstance(array, list):
        raise location(28724, f"First argument to $slice must be an array, but is of type: {type_name(array)}")
    first = integral("Second argument to $slice", numbers[0], 28725, 28726)
    if len(numbers) == 1:
        return array[:first] if first >= 0 else array[first:]
    count = integral("Third argument to $slice", numbers[1], 28727, 28728)
    if count <= 0:
        raise location(28729, f"Third argument to $slice must be positive: {count}")
    start = first if first >= 0 else max(0, len(array) + first)
    return array[start : start + count]


def _zip(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _ZIP.of(name, operand)
    longest = fields.get("useLongestLength", False)
    if not isinstance(fields["inputs"], list):
        raise location(34461, "inputs must be an array of expressions")
    if not fields["inputs"]:
        raise location(34465, "$zip requires at least one input array")
    if not isinstance(longest, bool):
        raise location(34463, "useLongestLength must be a bool")
    if not isinstance(fields.get("defaults", []), list):
        raise location(34462, "defaults must be an array of expressions")
    if "defaults" in fields and not longest:
        raise location(34466, "cannot specify defaults unless useLongestLength is true")
    inputs = [compile_expression(part, scope) for part in fields["inputs"]]
    defaults = [compile_expression(part, scope) for part in fields.get("defaults", [])]
    if defaults and len(defaults) != len(inputs):
        raise location(34467, "defaults and inputs must have the same length")

    def run(variables: Variables) -> Any:
        arrays = []
        for part in inputs:
            array = part(variables)
            if is_null_or_missing(array):
                return None
            arrays.append(array_of("$zip", array, 34468))
        if not longest:
            return [list(row) for row in zip(*arrays, strict=False)]
        fill = [none_if_missing(part(variables)) for part in defaults] or [None] * len(arrays)
        rows = zip_longest(*arrays, fillvalue=MISSING)
        return [[value if value is not MISSING else fill[n] for n, value in enumerate(row)] for row in rows]

    return folded(run, [*inputs, *defaults])


def _sort_array(name: str, operand: Any, scope: Scope) -> Expression:
    fields = _SORT.of(name, operand)
    order = fields["sortBy"]
    if order == {}:
        raise location(2942505, "The sort pattern is empty when it should be a set of fields.")
    if is_number(order) and float(str(order)) not in (1, -1):
        raise location(2942506, "The $sort element value must be either 1 or -1")
    if not isinstance(order, dict) and not (is_number(order) and float(str(order)) in (1, -1)):
        raise location(2942505, f"$sortArray: sortBy must be 1, -1 or an object, not {order!r}")
    by_path = compile_sort(order, scope.collation, scope.pace) if isinstance(order, dict) else None
    source = compile_expression(fields["input"], scope)

    def run(variables: Variables) -> Any:
        array = source(variables)
        if is_null_or_missing(array):
            return None
        array = array_of("$sortArray", array, 2942504)
        if by_path is not None:
            return list(by_path(array, lambda element: element))
        return list(in_order(array, scope, descending=float(str(order)) < 0))

    return folded(run, [source])


def in_order(values: Iterable[Any], scope: Scope, descending: bool) -> Iterator[Any]:
    """Yield the values in sorted order. Other greenlets can run during the sort."""
    return scope.pace.in_order(values, lambda value: key_of(scope.collation.folded(value)), descending)


OPERATORS: Mapping[str, Make] = {
    "$arrayElemAt": of_values(_element, 2),
    "$concatArrays": of_iterator(_concatenated),
    "$first": _first_or_last("$first", 0),
    "$in": under_collation(_in, 2),
    "$indexOfArray": _index_of_array,
    "$isArray": of_values(_is_array, 1),
    "$last": _first_or_last("$last", -1),
    "$range": of_values(_range, 2, 3),
    "$reverseArray": of_values(null_for_null(_reversed), 1),
    "$size": of_values(_size, 1),
    "$slice": of_values(null_for_null(_slice), 2, 3),
    "$sortArray": _sort_array,
    "$zip": _zip,
}
