"""The expression operators for logic, comparison, arrays and objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gmongo.testing.store import arithmetic
from gmongo.testing.store.errors import location
from gmongo.testing.store.values import MISSING, compare, equal, is_true, type_name

if TYPE_CHECKING:
    from gmongo.testing.store.expressions import Evaluator


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
    _parts("$let", value, "vars", "in")
    found = {name: evaluator.or_missing(part) for name, part in value["vars"].items()}
    return evaluator.within(found).parse(value["in"])


def _parts(operator: str, value: Any, *names: str) -> Any:
    """The operand of an operator that needs an object with these fields."""
    if not isinstance(value, dict) or not set(names) <= set(value):
        raise location(16876, f"{operator} needs an object with {', '.join(names)}")
    return value


def _input(evaluator: Evaluator, operator: str, value: Any) -> list[Any] | None:
    array = evaluator.or_none(value["input"])
    if array is not None and not isinstance(array, list):
        raise location(16883, f"input to {operator} must be an array not {type_name(array)}")
    return array


def _map(evaluator: Evaluator, value: Any) -> Any:
    _parts("$map", value, "input", "in")
    array, name = _input(evaluator, "$map", value), value.get("as", "this")
    if array is None:
        return None
    return [evaluator.within({name: element}).or_none(value["in"]) for element in array]


def _filter(evaluator: Evaluator, value: Any) -> Any:
    _parts("$filter", value, "input", "cond")
    array, name = _input(evaluator, "$filter", value), value.get("as", "this")
    if array is None:
        return None
    kept = [one for one in array if is_true(evaluator.within({name: one}).or_none(value["cond"]))]
    limit = evaluator.or_none(value.get("limit"))
    return kept if limit is None else kept[: int(limit)]


def _reduce(evaluator: Evaluator, value: Any) -> Any:
    _parts("$reduce", value, "input", "initialValue", "in")
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


def _array_to_object(evaluator: Evaluator, value: Any) -> Any:
    (pairs,) = evaluator.arguments(value if isinstance(value, list) and len(value) == 1 else [value])
    if pairs is None:
        return None
    found = [(pair["k"], pair["v"]) if isinstance(pair, dict) else tuple(pair) for pair in pairs]
    if not all(len(pair) == 2 and type(pair[0]) is str for pair in found):
        raise location(40394, "$arrayToObject requires an array of [name, value] or {k: name, v: value}")
    return dict(found)


def _get_field(evaluator: Evaluator, value: Any) -> Any:
    if not isinstance(value, dict) or "field" not in value:
        value = {"field": value, "input": "$$CURRENT"}
    source = evaluator.or_none(value.get("input", "$$CURRENT"))
    return source.get(evaluator.parse(value["field"]), MISSING) if isinstance(source, dict) else MISSING


def _set_field(evaluator: Evaluator, value: Any) -> Any:
    _parts("$setField", value, "field", "input", "value")
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
    _parts("$unsetField", value, "field", "input")
    return _set_field(evaluator, {**value, "value": "$$REMOVE"})


def _in(evaluator: Evaluator, value: Any) -> Any:
    wanted, array = evaluator.arguments(value)
    if not isinstance(array, list):
        raise location(40081, f"$in requires an array as a second argument, found: {type_name(array)}")
    return any(equal(wanted, element) for element in array)


def flat(evaluator: Evaluator, value: Any) -> list[Any]:
    """The values of an accumulator used as an expression: a single array stands for its elements."""
    values = evaluator.arguments(value)
    if not isinstance(value, list) or len(values) == 1:
        return values[0] if isinstance(values[0], list) else values
    return values


def _min(evaluator: Evaluator, value: Any) -> Any:
    return arithmetic.extreme(flat(evaluator, value), 1)


def _max(evaluator: Evaluator, value: Any) -> Any:
    return arithmetic.extreme(flat(evaluator, value), -1)


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


def _is_array(evaluator: Evaluator, value: Any) -> Any:
    return isinstance(evaluator.arguments(value)[0], list)


OPERATORS: Mapping[str, Callable[[Evaluator, Any], Any]] = {
    "$eq": _comparison(lambda order: order == 0),
    "$ne": _comparison(lambda order: order != 0),
    "$gt": _comparison(lambda order: order > 0),
    "$gte": _comparison(lambda order: order >= 0),
    "$lt": _comparison(lambda order: order < 0),
    "$lte": _comparison(lambda order: order <= 0),
    "$cmp": _comparison(lambda order: (order > 0) - (order < 0)),
    "$and": _and,
    "$arrayToObject": _array_to_object,
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
    "$min": _min,
    "$max": _max,
    "$arrayElemAt": _element,
    "$first": _first,
    "$last": _last,
    "$type": _type,
    "$isArray": _is_array,
}
