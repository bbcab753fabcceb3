"""Compile a filter to a function that tests if a document matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gmongo.testing import unsupported
from gmongo.testing.command import error
from gmongo.testing.store import schema
from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.expressions.compiling import Scope, Variables, compile_expression
from gmongo.testing.store.operators import (
    ARRAY_OPERATORS,
    ELEMENT_OPERATORS,
    NEGATIONS,
    Test,
    compile_value,
    create_pattern_test,
    has_operators,
)
from gmongo.testing.store.paths import find_values
from gmongo.testing.store.patterns import is_pattern
from gmongo.testing.store.text_search import TextSearch, find_search
from gmongo.testing.store.values import DBREF_FIELDS, MISSING, is_true
from gmongo.testing.unsupported import not_supported

Match = Callable[[Any], bool]
Clause = Callable[[Any, Variables], bool]

# Operators that are not allowed in some filters, for example in filters of partial indexes.
RESTRICTED_OPERATORS = frozenset({"$expr", "$geoNear", "$jsonSchema", "$near", "$nearSphere", "$text", "$where"})


class Predicate(NamedTuple):
    """A compiled condition on a field."""

    match_value: Test  # a function that returns True if a single value matches
    # A function that returns True if the list of values at a path matches. Some conditions also
    # test the elements of arrays.
    match_values: Callable[[list[Any]], bool]


def check_allowed(query: Any, forbidden: frozenset[str]) -> None:
    """Check that a query has no forbidden operators."""
    for name, operand in query.items() if isinstance(query, dict) else ():
        if name in forbidden:
            message = f"{name} is not allowed in this context"
            raise error(224, message) if name in ("$expr", "$jsonSchema") else bad_value(message)
        for element in operand if isinstance(operand, list) else [operand]:
            check_allowed(element, forbidden)


def compile_filter(
    query: Any, variables: Variables | None = None, collation: Collation = BINARY, text: Mapping[str, Any] | None = None
) -> Match:
    """Return a function that returns True if a document matches a filter."""
    values = variables or {}
    scope = Scope(frozenset(values), collation, text=text)
    clause = compile_query(query, scope)
    return lambda document: clause(document, values)


def compile_query(query: Any, scope: Scope) -> Clause:
    """Return a function of a document and the variables, which returns True if the document matches a filter."""
    if not isinstance(query, dict):
        raise bad_value(f"a filter must be an object, not {query!r}")
    tests = [_compile_clause(name, condition, scope) for name, condition in query.items()]
    if len(tests) == 1:
        return tests[0]
    return lambda document, variables: all(test(document, variables) for test in tests)


def _compile_clause(name: str, condition: Any, scope: Scope) -> Clause:
    if not name.startswith("$") or name in DBREF_FIELDS:
        return _compile_path(name, condition, scope)
    if name in _LOGICAL_OPERATORS:
        return _LOGICAL_OPERATORS[name](_compile_list(name, condition, scope))
    if name == "$comment":
        return lambda document, variables: True
    if name == "$expr":
        expression = compile_expression(condition, scope)
        return lambda document, variables: is_true(expression({**variables, "ROOT": document, "CURRENT": document}))
    if name == "$jsonSchema":
        schema.check_schema(condition)
        return lambda document, variables: schema.is_valid(condition, document)
    if name == "$text":
        search = TextSearch(condition, scope.text)
        return lambda document, variables: search.score(document) is not None
    if name in unsupported.QUERY_OPERATORS:
        raise not_supported(name)
    raise bad_value(f"unknown top level operator: {name}. If you are trying to negate an entire expression, use $nor.")


def _compile_list(name: str, queries: Any, scope: Scope) -> list[Clause]:
    if not isinstance(queries, list) or not queries:
        raise bad_value(f"{name} must be a nonempty array")
    if name != "$and" and any(find_search(query) is not None for query in queries):
        raise not_supported("a text search beyond plain English words", name)
    return [compile_query(query, scope) for query in queries]


_LOGICAL_OPERATORS: Mapping[str, Callable[[list[Clause]], Clause]] = {
    "$and": lambda tests: lambda document, variables: all(test(document, variables) for test in tests),
    "$or": lambda tests: lambda document, variables: any(test(document, variables) for test in tests),
    "$nor": lambda tests: lambda document, variables: not any(test(document, variables) for test in tests),
}


def _compile_path(path: str, condition: Any, scope: Scope) -> Clause:
    parts = path.split(".")
    matches = _combine(_compile_condition(condition, scope)).match_values
    if len(parts) == 1:  # faster code without a generator, for a path of one part
        return lambda document, variables: matches(
            [document.get(path, MISSING)] if isinstance(document, dict) else list(find_values(document, parts))
        )
    return lambda document, variables: matches(list(find_values(document, parts)))


def _compile_condition(condition: Any, scope: Scope) -> list[Predicate]:
    if not has_operators(condition):
        return [_match_elements(compile_value(condition, scope.collation))]
    if "$options" in condition and "$regex" not in condition:
        raise bad_value("$options needs a $regex")
    return [_compile_operator(name, condition, scope) for name in condition if name != "$options"]


def _compile_operator(name: str, condition: Mapping[str, Any], scope: Scope) -> Predicate:
    operand = condition[name]
    if name in _COMPOSED_OPERATORS:
        return _COMPOSED_OPERATORS[name](operand, scope)
    if name in ELEMENT_OPERATORS:
        return _match_elements(ELEMENT_OPERATORS[name](operand, condition, scope.collation))
    if name in NEGATIONS:
        return _negate(_match_elements(NEGATIONS[name](operand, condition, scope.collation)))
    if name in ARRAY_OPERATORS:
        predicate = _match_array(ARRAY_OPERATORS[name](operand, condition, scope.collation))
        return predicate if name != "$exists" or is_true(operand) else _negate(predicate)
    if name in unsupported.QUERY_OPERATORS:
        raise not_supported(name)
    raise bad_value(f"unknown operator: {name}")


def _match_elements(test: Test) -> Predicate:
    def match_any(values: list[Any]) -> bool:
        return any(test(value) or (type(value) is list and any(map(test, value))) for value in values)

    return Predicate(test, match_any)


def _match_array(test: Test) -> Predicate:
    return Predicate(test, lambda values: any(map(test, values)))


def _negate(predicate: Predicate) -> Predicate:
    return Predicate(lambda value: not predicate.match_value(value), lambda values: not predicate.match_values(values))


def _combine(predicates: list[Predicate]) -> Predicate:
    if len(predicates) == 1:
        return predicates[0]
    return Predicate(
        lambda value: all(predicate.match_value(value) for predicate in predicates),
        lambda values: all(predicate.match_values(values) for predicate in predicates),
    )


def _compile_not(operand: Any, scope: Scope) -> Predicate:
    if is_pattern(operand):
        return _negate(_match_elements(create_pattern_test(operand, None)))
    if not has_operators(operand):
        raise bad_value("$not needs a regex or a document" if operand != {} else "$not cannot be empty")
    return _negate(_combine(_compile_condition(operand, scope)))


def _compile_elem_match(operand: Any, scope: Scope) -> Predicate:
    if not isinstance(operand, dict):
        raise bad_value("$elemMatch needs an Object")
    if has_operators(operand) and not set(operand) <= {*_LOGICAL_OPERATORS, "$expr", "$comment", "$jsonSchema"}:
        match_element = _combine(_compile_condition(operand, scope)).match_value
        return _match_array(lambda value: isinstance(value, list) and any(map(match_element, value)))
    if "$expr" in operand:
        raise bad_value("$expr can only be applied to the top-level document")
    match = compile_query(operand, scope)

    def match_document(element: Any) -> bool:
        if isinstance(element, list):  # convert to a document with positions as field names
            element = {str(index): child for index, child in enumerate(element)}
        return isinstance(element, dict) and match(element, {})

    return _match_array(lambda value: isinstance(value, list) and any(map(match_document, value)))


def _compile_all(operand: Any, scope: Scope) -> Predicate:
    if not isinstance(operand, list):
        raise bad_value("$all needs an array")
    elem_matches = [isinstance(element, dict) and next(iter(element), "") == "$elemMatch" for element in operand]
    if any(elem_matches) and not all(elem_matches):
        raise bad_value("no $ expressions in $all" if not elem_matches[0] else "$all/$elemMatch has to be consistent")
    if all(elem_matches) and operand:
        return _combine([_compile_elem_match(element["$elemMatch"], scope) for element in operand])
    if any(has_operators(element) for element in operand):
        raise bad_value("no $ expressions in $all")
    if not operand:
        return Predicate(lambda value: False, lambda values: False)
    return _combine([_match_elements(compile_value(element, scope.collation)) for element in operand])


_COMPOSED_OPERATORS: Mapping[str, Callable[[Any, Scope], Predicate]] = {
    "$all": _compile_all,
    "$elemMatch": _compile_elem_match,
    "$not": _compile_not,
}
