"""The query operators that look at one value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.regex import Regex

from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.values import MISSING, TYPE_NAMES, compare, equal, is_number, is_whole, rank, type_name

Test = Callable[[Any], bool]
Make = Callable[[Any, Mapping[str, Any]], Test]

negative = frozenset({"$ne", "$nin"})
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "u": re.UNICODE}
_NUMBERS = {number: name for name, number in TYPE_NAMES}
_ALIASES = {name for name, _ in TYPE_NAMES} | {"number"}


def equality(wanted: Any) -> Test:
    """Equal to the value; a regular expression matches strings too."""
    if isinstance(wanted, (Regex, re.Pattern)):
        pattern = as_pattern(wanted)
        return lambda value: bool(isinstance(value, str) and pattern.search(value)) or equal(value, wanted)
    if wanted is None:
        return lambda value: value is None or value is MISSING
    return lambda value: value is not MISSING and equal(value, wanted)


def as_pattern(expression: Any, options: str | None = None) -> re.Pattern[str]:
    """A compiled pattern from a string, a BSON regular expression or a Python pattern."""
    flags = 0
    if isinstance(expression, (Regex, re.Pattern)):
        expression, flags = expression.pattern, int(expression.flags)
    for letter in options or "":
        if letter not in _FLAGS:
            raise bad_value(f"invalid flag in regex options: {letter}")
        flags |= _FLAGS[letter]
    try:
        return re.compile(expression, flags)
    except re.error as error:
        raise bad_value(f"Regular expression is invalid: {error}") from None


def _not_a_number(value: Any) -> bool:
    return is_number(value) and value != value


def _comparison(holds: Callable[[int], bool], or_equal: bool) -> Make:
    def make(wanted: Any, _condition: Mapping[str, Any]) -> Test:
        def test(value: Any) -> bool:
            if isinstance(wanted, (MinKey, MaxKey)):
                return value is not MISSING and holds(compare(value, wanted))
            if rank(value) != rank(wanted):
                return False
            if _not_a_number(value) or _not_a_number(wanted):
                return or_equal and _not_a_number(value) and _not_a_number(wanted)
            return holds(compare(value, wanted))

        return test

    return make


def _eq(wanted: Any, _condition: Mapping[str, Any]) -> Test:
    return equality(wanted)


def _in(wanted: Any, _condition: Mapping[str, Any]) -> Test:
    if not isinstance(wanted, list):
        raise bad_value("$in needs an array")
    tests = [equality(one) for one in wanted]
    return lambda value: any(test(value) for test in tests)


def _exists(wanted: Any, _condition: Mapping[str, Any]) -> Test:
    return lambda values: any(value is not MISSING for value in values) == bool(wanted)


def _regex(wanted: Any, condition: Mapping[str, Any]) -> Test:
    if not isinstance(wanted, (Regex, re.Pattern)) and type(wanted) is not str:
        raise bad_value("$regex has to be a string")
    pattern = as_pattern(wanted, condition.get("$options"))
    return lambda value: isinstance(value, str) and pattern.search(value) is not None


def _size(wanted: Any, _condition: Mapping[str, Any]) -> Test:
    if not is_whole(wanted) or wanted < 0:
        raise bad_value(f"$size must be a non-negative whole number, not {wanted!r}")
    return lambda value: isinstance(value, list) and len(value) == wanted


def _mod(wanted: Any, _condition: Mapping[str, Any]) -> Test:
    if not isinstance(wanted, list) or len(wanted) != 2 or not all(map(is_whole, wanted)) or not wanted[0]:
        raise bad_value("malformed mod, it must be [divisor, remainder]")
    divisor, remainder = int(wanted[0]), int(wanted[1])

    def test(value: Any) -> bool:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value in (float("inf"), float("-inf")):
            return False
        whole = int(value)
        return (abs(whole) % abs(divisor)) * (1 if whole >= 0 else -1) == remainder

    return test


def _type(wanted: Any, _condition: Mapping[str, Any]) -> Test:
    names = {_type_alias(one) for one in (wanted if isinstance(wanted, list) else [wanted])}
    if "number" in names:
        names |= {"int", "long", "double", "decimal"}
    return lambda value: type_name(value) in names


def _type_alias(wanted: Any) -> str:
    if type(wanted) is str and wanted in _ALIASES:
        return wanted
    if is_whole(wanted) and wanted in _NUMBERS:
        return _NUMBERS[wanted]
    raise bad_value(f"Unknown type name alias: {wanted}")


def _bits(holds: Callable[[int, int], bool]) -> Make:
    def make(wanted: Any, _condition: Mapping[str, Any]) -> Test:
        mask = _mask(wanted)
        return lambda value: isinstance(value, int) and not isinstance(value, bool) and holds(int(value), mask)

    return make


def _mask(wanted: Any) -> int:
    if isinstance(wanted, list) and all(is_whole(position) and position >= 0 for position in wanted):
        return sum(1 << int(position) for position in set(wanted))
    if isinstance(wanted, bytes):
        return int.from_bytes(wanted, "little")
    if is_whole(wanted) and wanted >= 0:
        return int(wanted)
    raise bad_value(f"a bit mask must be positions, a number or binary, not {wanted!r}")


OPERATORS: Mapping[str, Make] = {
    "$eq": _eq,
    "$ne": _eq,
    "$gt": _comparison(lambda order: order > 0, False),
    "$gte": _comparison(lambda order: order >= 0, True),
    "$lt": _comparison(lambda order: order < 0, False),
    "$lte": _comparison(lambda order: order <= 0, True),
    "$in": _in,
    "$nin": _in,
    "$exists": _exists,
    "$regex": _regex,
    "$size": _size,
    "$mod": _mod,
    "$type": _type,
    "$bitsAllSet": _bits(lambda value, mask: value & mask == mask),
    "$bitsAnySet": _bits(lambda value, mask: value & mask != 0),
    "$bitsAllClear": _bits(lambda value, mask: value & mask == 0),
    "$bitsAnyClear": _bits(lambda value, mask: value & mask != mask),
}
