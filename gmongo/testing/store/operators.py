"""The query operators that test a single value, such as ``$eq`` and ``$regex``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from bson.decimal128 import Decimal128
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.regex import Regex

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import bad_value, failed_to_parse, malformed, type_mismatch
from gmongo.testing.store.patterns import compile_pattern, is_pattern
from gmongo.testing.store.values import (
    MISSING,
    TYPE_NAMES,
    compare,
    flags_of,
    is_nan,
    is_number,
    is_whole,
    key_of,
    rank,
    type_name,
    whole,
)

Test = Callable[[Any], bool]
# A function that compiles an operator. The arguments of the function are the operand, the document
# that contains the operator and its sibling operators, and the collation.
Make = Callable[[Any, Mapping[str, Any], Collation], Test]

_REFERENCE = frozenset({"$ref", "$id", "$db"})
_NUMBERS = {number: name for name, number in TYPE_NAMES}
_ALIASES = {name for name, _ in TYPE_NAMES} | {"number"}
_INT64 = range(-(2**63), 2**63)


def is_operators(condition: Any) -> bool:
    """Return True if a condition is a document of operators. Return False if the condition is a value to compare."""
    if not isinstance(condition, dict) or not condition:
        return False
    first = next(iter(condition))
    return first.startswith("$") and first not in _REFERENCE


def equality(operand: Any, collation: Collation) -> Test:
    """Return a function that returns True if a value equals the operand. The operand null equals a missing value."""
    if operand is None:
        return lambda value: value is None or value is MISSING
    key, fold = key_of(collation.folded(operand)), collation.folded
    kind = rank(operand)
    if collation.fold is None:
        return lambda value: rank(value) == kind and key_of(value) == key
    return lambda value: rank(value) == kind and key_of(fold(value)) == key


def equality_or_pattern(operand: Any, collation: Collation) -> Test:
    """Return a test for equal values, or for the pattern if the operand is a regular expression."""
    if isinstance(operand, dict) and next(iter(operand), "") in _REFERENCE and not {"$ref", "$id"} <= set(operand):
        raise bad_value(f"unknown operator: {next(iter(operand))}")
    return pattern_test(operand, None) if is_pattern(operand) else equality(operand, collation)


def pattern_test(expression: Any, options: str | None) -> Test:
    """Return a test that accepts strings with a matching part, and an equal regular expression."""
    pattern = compile_pattern(expression, options)
    same = key_of(_as_stored(expression, options))

    def test(value: Any) -> bool:
        if type(value) is str:
            return pattern.search(value) is not None
        return is_pattern(value) and key_of(value) == same

    return test


def _as_stored(expression: Any, options: str | None) -> Regex[str]:
    text, own = (expression.pattern, flags_of(expression)) if is_pattern(expression) else (expression, "")
    return Regex(text, own if options is None else options)


def _comparison(holds: Callable[[int], bool], or_equal: bool) -> Make:
    def make(operand: Any, _condition: Mapping[str, Any], collation: Collation) -> Test:
        if is_pattern(operand):
            raise bad_value("Can't have RegEx as arg to a comparison predicate")
        if isinstance(operand, (MinKey, MaxKey)):
            return lambda value: holds(compare(value, operand))
        if operand is None:
            return lambda value: or_equal and (value is None or value is MISSING)
        if is_nan(operand):
            return lambda value: or_equal and is_nan(value)
        fold, kind, bound = collation.folded, rank(operand), collation.folded(operand)
        return lambda value: rank(value) == kind and not is_nan(value) and holds(compare(fold(value), bound))

    return make


def _ne(operand: Any, _condition: Mapping[str, Any], collation: Collation) -> Test:
    if is_pattern(operand):
        raise bad_value("Can't have regex as arg to $ne.")
    return equality(operand, collation)


def _in(operand: Any, _condition: Mapping[str, Any], collation: Collation) -> Test:
    if not isinstance(operand, list):
        raise bad_value("$in needs an array")
    for one in operand:
        if is_operators(one):
            raise bad_value("cannot nest $ under $in")
        equality_or_pattern(one, collation)
    patterns = [pattern_test(one, None) for one in operand if is_pattern(one)]
    keys = {key_of(collation.folded(one)) for one in operand if not is_pattern(one)}
    null = key_of(None)

    def test(value: Any) -> bool:
        key = null if value is MISSING else key_of(collation.folded(value))
        return key in keys or any(pattern(value) for pattern in patterns)

    return test


def _regex(operand: Any, condition: Mapping[str, Any], _collation: Collation) -> Test:
    options = condition.get("$options")
    if not is_pattern(operand) and type(operand) is not str:
        raise bad_value("$regex has to be a string")
    if options is not None and type(options) is not str:
        raise bad_value("$options has to be a string")
    if options is not None and is_pattern(operand) and int(operand.flags):
        raise malformed("options set in both $regex and $options")
    return pattern_test(operand, options)


def _size(operand: Any, _condition: Mapping[str, Any], _collation: Collation) -> Test:
    if not is_whole(operand) or whole(operand) < 0:
        raise bad_value(f"Failed to parse $size. Expected a non-negative number in: $size: {operand!r}")
    return lambda value: isinstance(value, list) and len(value) == whole(operand)


def _mod(operand: Any, _condition: Mapping[str, Any], _collation: Collation) -> Test:
    parts = operand if isinstance(operand, list) else []
    if len(parts) != 2 or not all(is_number(part) and _is_long(part) for part in parts):
        raise bad_value("malformed mod")
    divisor, remainder = map(whole, parts)
    if not divisor:
        raise bad_value("divisor cannot be 0")

    def test(value: Any) -> bool:
        if not is_number(value) or not _is_long(value):
            return False
        number = whole(value)
        return (abs(number) % abs(divisor)) * (1 if number >= 0 else -1) == remainder

    return test


def _is_long(value: Any) -> bool:
    """Return True if a number is finite, and its integral part is in the range of an int64."""
    if isinstance(value, Decimal128):
        return bool(value.to_decimal().is_finite()) and whole(value) in _INT64
    return math.isfinite(value) and int(value) in _INT64


def _type(operand: Any, _condition: Mapping[str, Any], _collation: Collation) -> Test:
    if operand == []:
        raise failed_to_parse("$type must match at least one type")
    names = {_type_alias(one) for one in (operand if isinstance(operand, list) else [operand])}
    if "number" in names:
        names |= {"int", "long", "double", "decimal"}
    return lambda value: type_name(value) in names


def _type_alias(operand: Any) -> str:
    if type(operand) is str and operand in _ALIASES:
        return operand
    if is_number(operand) and is_whole(operand) and whole(operand) in _NUMBERS:
        return _NUMBERS[whole(operand)]
    if type(operand) is not str and not is_number(operand):
        raise type_mismatch("type must be represented as a number or a string")
    raise bad_value(f"Unknown type name alias: {operand}")


def _exists(_operand: Any, _condition: Mapping[str, Any], _collation: Collation) -> Test:
    return lambda value: value is not MISSING


# Operators that match an array if the array itself matches or an element matches.
OF_ELEMENTS: Mapping[str, Make] = {
    "$eq": lambda operand, _condition, collation: equality(operand, collation),
    "$gt": _comparison(lambda order: order > 0, False),
    "$gte": _comparison(lambda order: order >= 0, True),
    "$lt": _comparison(lambda order: order < 0, False),
    "$lte": _comparison(lambda order: order <= 0, True),
    "$in": _in,
    "$regex": _regex,
    "$mod": _mod,
    "$type": _type,
}
# Operators that negate another operator.
NEGATIVE: Mapping[str, Make] = {"$ne": _ne, "$nin": _in}
# Operators that match an array only if the array itself matches.
OF_WHOLES: Mapping[str, Make] = {"$size": _size, "$exists": _exists}
