"""Aggregation expressions: mongomock's evaluator, with what it lacks or answers differently from a server."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from bson.decimal128 import Decimal128
from mongomock import OperationFailure
from mongomock.aggregate import _Parser as MongomockParser

from gmongo.testing.command import CommandError, not_supported
from gmongo.testing.store import arithmetic
from gmongo.testing.store.errors import bad_value, location, type_mismatch
from gmongo.testing.store.values import MISSING, compare, copy_value, equal, is_number, type_name

_LACKING = object()


def evaluate(expression: Any, document: Any, variables: Mapping[str, Any] | None = None) -> Any:
    """The value of the expression for the document; MISSING if it has none.

    :raises CommandError: as a server would, or if the expression is not supported.
    """
    try:
        return copy_value(Evaluator(document, variables or {}).parse(expression))
    except KeyError:
        return MISSING
    except CommandError:
        raise
    except NotImplementedError as error:
        raise not_supported(str(error)) from None
    except (OperationFailure, AssertionError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise bad_value(str(error)) from None


def is_true(value: Any) -> bool:
    """Whether a condition with this value holds: all but false, zero, null and missing do."""
    if value is None or value is MISSING:
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal128):
        return bool(value.to_decimal())
    return bool(value) if is_number(value) else True


class Evaluator(MongomockParser):
    """Evaluates an expression for one document. A missing value is a KeyError."""

    def __init__(self, document: Any, variables: Mapping[str, Any]) -> None:
        super().__init__(document, dict(variables), ignore_missing_keys=True)
        self.document = document
        self.variables = variables

    def parse(self, expression: Any) -> Any:
        """The value of the expression."""
        if isinstance(expression, list):
            return [self.or_none(part) for part in expression]
        if isinstance(expression, dict) and len(expression) == 1:
            (name,) = expression
            if name in _OPERATORS:
                return present(_OPERATORS[name](self, expression[name]))
        return super().parse(expression)

    def or_none(self, expression: Any) -> Any:
        """The value, None if it is missing."""
        try:
            return self.parse(expression)
        except KeyError:
            return None

    def or_missing(self, expression: Any) -> Any:
        """The value, MISSING if it is missing."""
        try:
            return self.parse(expression)
        except KeyError:
            return MISSING

    def arguments(self, value: Any) -> list[Any]:
        """The values of an operator's arguments; a single one may come without brackets."""
        return [self.or_none(part) for part in (value if isinstance(value, list) else [value])]

    def within(self, variables: Mapping[str, Any]) -> Evaluator:
        """An evaluator that knows more variables."""
        return Evaluator(self.document, {**self.variables, **variables})

    def _parse_basic_expression(self, expression: Any) -> Any:
        if not isinstance(expression, str) or not expression.startswith("$"):
            return expression
        if not expression.startswith("$$"):
            return present(_follow(self.document, expression[1:].split(".")))
        name, *path = expression[2:].split(".")
        return present(_follow(self._variable(name), path))

    def _variable(self, name: str) -> Any:
        if name in ("ROOT", "CURRENT"):
            return self.variables.get(name, self.document)
        if name == "REMOVE":
            return MISSING
        value = self.variables.get(name, _LACKING)
        if value is _LACKING:
            raise location(17276, f"Use of undefined variable: {name}")
        return value


def present(value: Any) -> Any:
    """The value itself.

    :raises KeyError: if it is missing.
    """
    if value is MISSING:
        raise KeyError("missing")
    return value


def _follow(value: Any, parts: list[str]) -> Any:
    for number, part in enumerate(parts):
        if isinstance(value, list):
            found = (_follow(element, parts[number:]) for element in value)
            return [element for element in found if element is not MISSING]
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    return value


def _comparison(holds: Callable[[int], Any]) -> Callable[[Evaluator, Any], Any]:
    def run(evaluator: Evaluator, value: Any) -> Any:
        if not isinstance(value, list) or len(value) != 2:
            raise location(16020, "a comparison expression takes exactly 2 arguments")
        left, right = (evaluator.or_missing(part) for part in value)
        if (left is MISSING) != (right is MISSING):
            return holds(-1 if left is MISSING else 1)
        return holds(compare(left, right))

    return run


def _conditions(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _and(evaluator: Evaluator, value: Any) -> Any:
    return all(is_true(evaluator.or_none(part)) for part in _conditions(value))


def _or(evaluator: Evaluator, value: Any) -> Any:
    return any(is_true(evaluator.or_none(part)) for part in _conditions(value))


def _not(evaluator: Evaluator, value: Any) -> Any:
    return not is_true(evaluator.arguments(value)[0])


def _literal(_evaluator: Evaluator, value: Any) -> Any:
    return value


def _let(evaluator: Evaluator, value: Any) -> Any:
    found = {name: evaluator.or_missing(part) for name, part in value["vars"].items()}
    return evaluator.within(found).parse(value["in"])


def _input(evaluator: Evaluator, operator: str, value: Any) -> list[Any] | None:
    array = evaluator.or_none(value["input"])
    if array is not None and not isinstance(array, list):
        raise location(16883, f"input to {operator} must be an array not {type_name(array)}")
    return array


def _map(evaluator: Evaluator, value: Any) -> Any:
    array, name = _input(evaluator, "$map", value), value.get("as", "this")
    if array is None:
        return None
    return [evaluator.within({name: element}).or_none(value["in"]) for element in array]


def _filter(evaluator: Evaluator, value: Any) -> Any:
    array, name = _input(evaluator, "$filter", value), value.get("as", "this")
    if array is None:
        return None
    kept = [one for one in array if is_true(evaluator.within({name: one}).or_none(value["cond"]))]
    limit = evaluator.or_none(value.get("limit"))
    return kept if limit is None else kept[: int(limit)]


def _reduce(evaluator: Evaluator, value: Any) -> Any:
    array = _input(evaluator, "$reduce", value)
    if array is None:
        return None
    result = evaluator.or_none(value["initialValue"])
    for element in array:
        result = evaluator.within({"this": element, "value": result}).or_none(value["in"])
    return result


def _merge_objects(evaluator: Evaluator, value: Any) -> Any:
    merged: dict[str, Any] = {}
    for part in evaluator.arguments(value):
        if part is not None and not isinstance(part, dict):
            raise location(40400, f"$mergeObjects requires object inputs, but input is of type {type_name(part)}")
        merged.update(part or {})
    return merged


def _get_field(evaluator: Evaluator, value: Any) -> Any:
    if not isinstance(value, dict) or "field" not in value:
        value = {"field": value, "input": "$$CURRENT"}
    source = evaluator.or_none(value.get("input", "$$CURRENT"))
    return source.get(evaluator.parse(value["field"]), MISSING) if isinstance(source, dict) else MISSING


def _set_field(evaluator: Evaluator, value: Any) -> Any:
    source = evaluator.or_none(value["input"])
    if source is None:
        return None
    if not isinstance(source, dict):
        raise location(4161105, f"$setField requires 'input' to evaluate to type Object, not {type_name(source)}")
    field, new = evaluator.parse(value["field"]), evaluator.or_missing(value.get("value", "$$REMOVE"))
    if new is MISSING:
        return {name: part for name, part in source.items() if name != field}
    return {**source, field: new}


def _unset_field(evaluator: Evaluator, value: Any) -> Any:
    return _set_field(evaluator, {**value, "value": "$$REMOVE"})


def _in(evaluator: Evaluator, value: Any) -> Any:
    wanted, array = evaluator.arguments(value)
    if not isinstance(array, list):
        raise location(40081, f"$in requires an array as a second argument, found: {type_name(array)}")
    return any(equal(wanted, element) for element in array)


def _fold(function: Callable[[Any, Any], Any]) -> Callable[[Evaluator, Any], Any]:
    def run(evaluator: Evaluator, value: Any) -> Any:
        numbers = evaluator.arguments(value)
        if any(number is None for number in numbers):
            return None
        result = numbers[0]
        for number in numbers[1:]:
            result = function(result, number)
        return result

    return run


def _flat(evaluator: Evaluator, value: Any) -> list[Any]:
    """The values of an accumulator used as an expression: a single array stands for its elements."""
    values = evaluator.arguments(value)
    if not isinstance(value, list) or len(values) == 1:
        return values[0] if isinstance(values[0], list) else values
    return values


def _sum(evaluator: Evaluator, value: Any) -> Any:
    return arithmetic.total(_flat(evaluator, value))


def _avg(evaluator: Evaluator, value: Any) -> Any:
    return arithmetic.average(_flat(evaluator, value))


def extreme(values: list[Any], direction: int) -> Any:
    """The lowest (1) or highest (-1) of the values that are there; None of none."""
    best: Any = None
    for value in values:
        if value is not None and value is not MISSING and (best is None or compare(value, best) * direction < 0):
            best = value
    return best


def _min(evaluator: Evaluator, value: Any) -> Any:
    return extreme(_flat(evaluator, value), 1)


def _max(evaluator: Evaluator, value: Any) -> Any:
    return extreme(_flat(evaluator, value), -1)


def _element(evaluator: Evaluator, value: Any) -> Any:
    array, index = evaluator.arguments(value)
    if array is None or index is None:
        return None
    if not isinstance(array, list):
        raise location(28689, f"$arrayElemAt's first argument must be an array, but is {type_name(array)}")
    return array[int(index)] if -len(array) <= index < len(array) else MISSING


def _first(evaluator: Evaluator, value: Any) -> Any:
    return _element(evaluator, [_conditions(value)[0], 0])


def _last(evaluator: Evaluator, value: Any) -> Any:
    return _element(evaluator, [_conditions(value)[0], -1])


def _type(evaluator: Evaluator, value: Any) -> Any:
    return type_name(evaluator.or_missing(_conditions(value)[0]))


def _random(_evaluator: Evaluator, _value: Any) -> Any:
    return random.random()


def _is_array(evaluator: Evaluator, value: Any) -> Any:
    return isinstance(evaluator.arguments(value)[0], list)


def _divide(evaluator: Evaluator, value: Any) -> Any:
    numbers = evaluator.arguments(value)
    if any(number is None for number in numbers):
        return None
    if not all(is_number(number) for number in numbers):
        raise type_mismatch("$divide only supports numeric types")
    if any(isinstance(number, Decimal128) for number in numbers):
        raise not_supported("$divide of decimals")
    dividend, divisor = numbers
    if not divisor:
        raise bad_value("can't $divide by zero")
    return dividend / divisor


_OPERATORS: Mapping[str, Callable[[Evaluator, Any], Any]] = {
    "$eq": _comparison(lambda order: order == 0),
    "$ne": _comparison(lambda order: order != 0),
    "$gt": _comparison(lambda order: order > 0),
    "$gte": _comparison(lambda order: order >= 0),
    "$lt": _comparison(lambda order: order < 0),
    "$lte": _comparison(lambda order: order <= 0),
    "$cmp": _comparison(lambda order: (order > 0) - (order < 0)),
    "$and": _and,
    "$or": _or,
    "$not": _not,
    "$literal": _literal,
    "$let": _let,
    "$map": _map,
    "$filter": _filter,
    "$reduce": _reduce,
    "$mergeObjects": _merge_objects,
    "$getField": _get_field,
    "$setField": _set_field,
    "$unsetField": _unset_field,
    "$in": _in,
    "$add": _fold(arithmetic.add),
    "$multiply": _fold(arithmetic.multiply),
    "$subtract": _fold(arithmetic.subtract),
    "$divide": _divide,
    "$sum": _sum,
    "$avg": _avg,
    "$min": _min,
    "$max": _max,
    "$arrayElemAt": _element,
    "$first": _first,
    "$last": _last,
    "$type": _type,
    "$isArray": _is_array,
    "$rand": _random,
}
