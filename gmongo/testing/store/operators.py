"""The query operators, such as ``$eq`` and ``$regex``, that test a single value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from bson.decimal128 import Decimal128
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.regex import Regex

from gmongo.testing.store.arithmetic import INT64_RANGE
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import bad_value, failed_to_parse, malformed, type_mismatch
from gmongo.testing.store.patterns import compile_pattern, is_pattern
from gmongo.testing.store.values import (
    DBREF_FIELDS,
    MISSING,
    TYPE_NAMES,
    TYPE_NAMES_BY_NUMBER,
    compare,
    find_rank,
    is_integral,
    is_nan,
    is_number,
    join_flags,
    make_key,
    trunc,
    type_name,
)
from gmongo.testing.unsupported import not_supported

Test = Callable[[Any], bool]
# A function that compiles an operator. The arguments of the function are the operand, the document
# of operators that contains the operator, and the collation.
Compiler = Callable[[Any, Mapping[str, Any], Collation], Test]

_TYPE_ALIASES = {name for name, _ in TYPE_NAMES} | {"number"}


def has_operators(condition: Any) -> bool:
    """Return True if a condition is a document of operators. Return False if the condition is a value to compare."""
    if not isinstance(condition, dict) or not condition:
        return False
    first_name = next(iter(condition))
    return first_name.startswith("$") and first_name not in DBREF_FIELDS


def create_equality_test(operand: Any, collation: Collation) -> Test:
    """Return a function that returns True if a value equals the operand. The operand null equals a missing value."""
    if operand is None:
        return lambda value: value is None or value is MISSING
    key, fold = make_key(collation.apply(operand)), collation.apply
    type_rank = find_rank(operand)
    if collation.fold is None:
        return lambda value: find_rank(value) == type_rank and make_key(value) == key
    return lambda value: find_rank(value) == type_rank and make_key(fold(value)) == key


def compile_value(operand: Any, collation: Collation) -> Test:
    """Return a test for equality, or for a match if the operand is a regular expression."""
    if isinstance(operand, dict) and next(iter(operand), "") in DBREF_FIELDS and not {"$ref", "$id"} <= set(operand):
        raise bad_value(f"unknown operator: {next(iter(operand))}")
    return create_pattern_test(operand, None) if is_pattern(operand) else create_equality_test(operand, collation)


def create_pattern_test(expression: Any, options: str | None) -> Test:
    """Return a test that accepts matching strings and equal regular expressions."""
    pattern = compile_pattern(expression, options)
    stored_key = make_key(_create_stored_pattern(expression, options))

    def test(value: Any) -> bool:
        if type(value) is str:
            return pattern.search(value) is not None
        return is_pattern(value) and make_key(value) == stored_key

    return test


def _create_stored_pattern(expression: Any, options: str | None) -> Regex[str]:
    text, own_options = (expression.pattern, join_flags(expression)) if is_pattern(expression) else (expression, "")
    return Regex(text, own_options if options is None else options)


def _create_comparison(test_order: Callable[[int], bool], includes_equal: bool) -> Compiler:
    def compile_operator(operand: Any, _condition: Mapping[str, Any], collation: Collation) -> Test:
        if is_pattern(operand):
            raise bad_value("Can't have RegEx as arg to a comparison predicate")
        if isinstance(operand, (MinKey, MaxKey)):
            return lambda value: test_order(compare(value, operand))
        if operand is None:
            return lambda value: includes_equal and (value is None or value is MISSING)
        if is_nan(operand):
            return lambda value: includes_equal and is_nan(value)
        fold, type_rank, bound = collation.apply, find_rank(operand), collation.apply(operand)
        return lambda value: (
            find_rank(value) == type_rank and not is_nan(value) and test_order(compare(fold(value), bound))
        )

    return compile_operator


def _compile_ne(operand: Any, _condition: Mapping[str, Any], collation: Collation) -> Test:
    if is_pattern(operand):
        raise bad_value("Can't have regex as arg to $ne.")
    return create_equality_test(operand, collation)


def _compile_in(operand: Any, _condition: Mapping[str, Any], collation: Collation) -> Test:
    if not isinstance(operand, list):
        raise bad_value("$in needs an array")
    for element in operand:
        if has_operators(element):
            raise bad_value("cannot nest $ under $in")
        compile_value(element, collation)
    pattern_tests = [create_pattern_test(element, None) for element in operand if is_pattern(element)]
    keys = {make_key(collation.apply(element)) for element in operand if not is_pattern(element)}
    null_key = make_key(None)

    def test(value: Any) -> bool:
        key = null_key if value is MISSING else make_key(collation.apply(value))
        return key in keys or any(matches(value) for matches in pattern_tests)

    return test


def _compile_regex(operand: Any, condition: Mapping[str, Any], _collation: Collation) -> Test:
    options = condition.get("$options")
    if not is_pattern(operand) and type(operand) is not str:
        raise bad_value("$regex has to be a string")
    if options is not None and type(options) is not str:
        raise bad_value("$options has to be a string")
    if options is not None and is_pattern(operand) and int(operand.flags):
        raise malformed("options set in both $regex and $options")
    return create_pattern_test(operand, options)


def _compile_size(operand: Any, _condition: Mapping[str, Any], _collation: Collation) -> Test:
    if not is_integral(operand) or trunc(operand) < 0:
        raise bad_value(f"Failed to parse $size. Expected a non-negative number in: $size: {operand!r}")
    return lambda value: isinstance(value, list) and len(value) == trunc(operand)


def _compile_mod(operand: Any, _condition: Mapping[str, Any], _collation: Collation) -> Test:
    numbers = operand if isinstance(operand, list) else []
    if len(numbers) != 2 or not all(is_number(term) and _fits_long(term) for term in numbers):
        raise bad_value("malformed mod")
    divisor, remainder = map(trunc, numbers)
    if not divisor:
        raise bad_value("divisor cannot be 0")

    def test(value: Any) -> bool:
        if not is_number(value) or not _fits_long(value):
            return False
        number = trunc(value)
        return (abs(number) % abs(divisor)) * (1 if number >= 0 else -1) == remainder

    return test


def _fits_long(value: Any) -> bool:
    """Return True if a number is finite, and its integral part is in the range of an int64."""
    if isinstance(value, Decimal128):
        return bool(value.to_decimal().is_finite()) and trunc(value) in INT64_RANGE
    return math.isfinite(value) and int(value) in INT64_RANGE


def _compile_type(operand: Any, _condition: Mapping[str, Any], _collation: Collation) -> Test:
    if operand == []:
        raise failed_to_parse("$type must match at least one type")
    names = {_parse_alias(type_) for type_ in (operand if isinstance(operand, list) else [operand])}
    if "number" in names:
        names |= {"int", "long", "double", "decimal"}
    return lambda value: type_name(value) in names


def _parse_alias(operand: Any) -> str:
    if type(operand) is str and operand in _TYPE_ALIASES:
        return operand
    if is_number(operand) and is_integral(operand) and trunc(operand) in TYPE_NAMES_BY_NUMBER:
        return TYPE_NAMES_BY_NUMBER[trunc(operand)]
    if type(operand) is not str and not is_number(operand):
        raise type_mismatch("type must be represented as a number or a string")
    raise bad_value(f"Unknown type name alias: {operand}")


def _create_bit_test(matches: Callable[[int, int], bool]) -> Compiler:
    def compile_bits(operand: Any, _condition: Mapping[str, Any], _collation: Collation) -> Test:
        mask = _parse_mask(operand)

        def test(value: Any) -> bool:
            if isinstance(value, bytes):
                return matches(int.from_bytes(value, "little"), mask)
            if isinstance(value, Decimal128):
                raise not_supported("a bit test of a Decimal128")
            return is_number(value) and is_integral(value) and _fits_long(value) and matches(trunc(value), mask)

        return test

    return compile_bits


def _parse_mask(operand: Any) -> int:
    if isinstance(operand, list):
        if not all(is_number(item) and is_integral(item) and 0 <= trunc(item) < 2**31 for item in operand):
            raise bad_value(f"bit positions must be nonnegative 32-bit integers, not {operand!r}")
        return sum(1 << position for position in {trunc(position) for position in operand})
    if isinstance(operand, bytes):
        return int.from_bytes(operand, "little")
    if not is_number(operand):
        raise bad_value(f"a bit mask must be an array of positions, a number or binary, not {operand!r}")
    if not is_integral(operand) or trunc(operand) < 0 or not _fits_long(operand):
        raise failed_to_parse(f"Expected a non-negative integral number as a bit mask, not {operand!r}")
    return trunc(operand)


# Operators that match an array if the array itself matches or an element matches.
ELEMENT_OPERATORS: Mapping[str, Compiler] = {
    "$eq": lambda operand, _condition, collation: create_equality_test(operand, collation),
    "$gt": _create_comparison(lambda order: order > 0, False),
    "$gte": _create_comparison(lambda order: order >= 0, True),
    "$lt": _create_comparison(lambda order: order < 0, False),
    "$lte": _create_comparison(lambda order: order <= 0, True),
    "$in": _compile_in,
    "$regex": _compile_regex,
    "$mod": _compile_mod,
    "$type": _compile_type,
    "$bitsAllSet": _create_bit_test(lambda value, mask: value & mask == mask),
    "$bitsAnySet": _create_bit_test(lambda value, mask: value & mask != 0),
    "$bitsAllClear": _create_bit_test(lambda value, mask: value & mask == 0),
    "$bitsAnyClear": _create_bit_test(lambda value, mask: value & mask != mask),
}
# The operators that negate `$eq` and `$in`. Each function compiles the condition that the operator negates.
NEGATIONS: Mapping[str, Compiler] = {"$ne": _compile_ne, "$nin": _compile_in}
# Operators that match an array only if the array itself matches.
ARRAY_OPERATORS: Mapping[str, Compiler] = {
    "$size": _compile_size, "$exists": lambda _operand, _condition, _collation: lambda value: value is not MISSING
}  # fmt: skip
