"""Which documents a query selects: a filter is compiled to a function of a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store import expressions, schema
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.operators import OPERATORS, Test, equality, negative
from gmongo.testing.store.paths import split, values_at
from gmongo.testing.store.values import is_true

Match = Callable[[Any], bool]
Variables = Mapping[str, Any]

_REFERENCE = frozenset({"$ref", "$id", "$db"})
_UNSUPPORTED = frozenset({"$where", "$text", "$near", "$nearSphere", "$geoWithin", "$geoIntersects", "$geoNear"})
# They look at an array as a whole, never at its elements.
_WHOLE = frozenset({"$size", "$exists", "$elemMatch", "$all"})


def compile_filter(query: Any, variables: Variables | None = None) -> Match:
    """The function that tells whether a document matches.

    :param variables: what ``let`` defined.
    :raises CommandError: for an operator that does not exist, or is not supported.
    """
    if not isinstance(query, dict):
        raise bad_value(f"a filter must be an object, not {query!r}")
    tests = [_compile_clause(name, condition, variables or {}) for name, condition in query.items()]
    return lambda document: all(test(document) for test in tests)


def _compile_clause(name: str, condition: Any, variables: Variables) -> Match:
    if not name.startswith("$"):
        return _compile_path(name, condition, variables)
    if name in _LOGICAL:
        return _LOGICAL[name](_compile_list(name, condition, variables))
    if name == "$comment":
        return lambda document: True
    if name == "$expr":
        return lambda document: is_true(expressions.evaluate(condition, document, variables))
    if name == "$jsonSchema":
        return lambda document: not schema.violations(condition, document)
    if name in _UNSUPPORTED:
        raise not_supported(f"the query operator {name}")
    raise bad_value(f"unknown top level operator: {name}")


def _compile_list(name: str, queries: Any, variables: Variables) -> list[Match]:
    if not isinstance(queries, list) or not queries:
        raise bad_value(f"{name} must be a nonempty array")
    return [compile_filter(query, variables) for query in queries]


_LOGICAL: Mapping[str, Callable[[list[Match]], Match]] = {
    "$and": lambda tests: lambda document: all(test(document) for test in tests),
    "$or": lambda tests: lambda document: any(test(document) for test in tests),
    "$nor": lambda tests: lambda document: not any(test(document) for test in tests),
}


def is_operators(condition: Any) -> bool:
    """Whether the condition is made of operators, rather than a value to equal."""
    if not isinstance(condition, dict) or not condition:
        return False
    first = next(iter(condition))
    return first.startswith("$") and first not in _REFERENCE


def _compile_path(path: str, condition: Any, variables: Variables) -> Match:
    parts = split(path)
    tests = [_spread(name, test) for name, test in _compile_condition(condition, variables)]
    return lambda document: all(test(list(values_at(document, parts))) for test in tests)


def _compile_condition(condition: Any, variables: Variables) -> list[tuple[str, Test]]:
    if not is_operators(condition):
        return [("$eq", equality(condition))]
    found = []
    for name, operand in condition.items():
        if name == "$options":
            if "$regex" not in condition:
                raise bad_value("$options needs a $regex")
            continue
        found.append((name, _compile_operator(name, operand, condition, variables)))
    return found


def _compile_operator(name: str, operand: Any, condition: Mapping[str, Any], variables: Variables) -> Test:
    if name == "$elemMatch":
        return _element_match(operand, variables)
    if name == "$not":
        return _negation(operand, variables)
    if name == "$all":
        return _all(operand, variables)
    if name in _UNSUPPORTED:
        raise not_supported(f"the query operator {name}")
    if name not in OPERATORS:
        raise bad_value(f"unknown operator: {name}")
    return OPERATORS[name](operand, condition)


def _spread(name: str, test: Test) -> Callable[[list[Any]], bool]:
    """Over the values at a path: any of them does, or for a negative operator all must."""
    if name == "$not":
        return lambda values: test(values)
    one = test if name in _WHOLE else _with_elements(test)
    if name in negative:
        return lambda values: not any(one(value) for value in values)
    if name == "$exists":
        return lambda values: test(values)
    return lambda values: any(one(value) for value in values)


def _with_elements(test: Test) -> Test:
    return lambda value: test(value) or (isinstance(value, list) and any(test(element) for element in value))


def _negation(operand: Any, variables: Variables) -> Test:
    if isinstance(operand, dict) and not is_operators(operand):
        raise bad_value("$not needs a regex or a document")
    tests = [_spread(name, test) for name, test in _compile_condition(operand, variables)]
    return lambda values: not all(test(values) for test in tests)


def _element_match(operand: Any, variables: Variables) -> Test:
    if not isinstance(operand, dict):
        raise bad_value("$elemMatch needs an Object")
    if is_operators(operand) and not set(operand) <= {*_LOGICAL, "$expr", "$comment"}:
        tests = [_spread(name, test) for name, test in _compile_condition(operand, variables)]
        return lambda value: isinstance(value, list) and any(all(t([e]) for t in tests) for e in value)
    match = compile_filter(operand, variables)
    return lambda value: isinstance(value, list) and any(isinstance(e, (dict, list)) and match(e) for e in value)


def _all(operand: Any, variables: Variables) -> Test:
    if not isinstance(operand, list):
        raise bad_value("$all needs an array")
    tests = []
    for wanted in operand:
        if isinstance(wanted, dict) and "$elemMatch" in wanted:
            tests.append(_element_match(wanted["$elemMatch"], variables))
        else:
            tests.append(_with_elements(equality(wanted)))
    return lambda value: bool(tests) and all(test(value) for test in tests)
