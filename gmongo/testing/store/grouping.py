"""The stage ``$group`` and its accumulators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing import unsupported
from gmongo.testing.command import error
from gmongo.testing.store.environment import Documents, Environment, Stage
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import with_document
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Scope,
    Variables,
    check_field_name,
    compile_expression,
    missing_to_none,
)
from gmongo.testing.store.expressions.objects import merge
from gmongo.testing.store.expressions.summaries import SUMMARIES
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.values import MISSING, is_number, make_key
from gmongo.testing.unsupported import not_supported


@dataclass(frozen=True)
class Accumulator:
    """A compiled accumulator of ``$group``."""

    expression: Expression  # the expression that the stage evaluates for each document
    # A function that computes the result of a group from the values of its documents.
    compute_result: Callable[[list[Any]], Any]


AccumulatorCompiler = Callable[[str, Any, Scope], Accumulator]


def _remove_missing(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not MISSING]


def _create_compiler(compute_result: Callable[[list[Any], Scope], Any]) -> AccumulatorCompiler:
    """Return a function that compiles an accumulator whose operand is one expression."""

    def compile_accumulator(name: str, operand: Any, scope: Scope) -> Accumulator:
        if isinstance(operand, list):
            raise malformed(name)
        return Accumulator(compile_expression(operand, scope), lambda values: compute_result(values, scope))

    return compile_accumulator


def _compile_count(_name: str, operand: Any, scope: Scope) -> Accumulator:
    if operand != {}:
        raise malformed("$count")
    return Accumulator(compile_expression(None, scope), len)


def _find_distinct_values(values: list[Any], scope: Scope) -> list[Any]:
    values_by_key: dict[Any, Any] = {}
    for value in scope.pace.iterate(values):
        if value is not MISSING:
            values_by_key.setdefault(make_key(scope.collation.apply(value)), value)
    return list(values_by_key.values())


ACCUMULATORS: Mapping[str, AccumulatorCompiler] = {
    **{name: _create_compiler(summary) for name, summary in SUMMARIES.items()},
    "$addToSet": _create_compiler(_find_distinct_values),
    "$count": _compile_count,
    "$first": _create_compiler(lambda values, scope: missing_to_none(values[0])),
    "$last": _create_compiler(lambda values, scope: missing_to_none(values[-1])),
    "$mergeObjects": _create_compiler(lambda values, scope: merge(scope.pace.iterate(values))),
    "$push": _create_compiler(lambda values, scope: _remove_missing(scope.pace.iterate(values))),
}


def compile_group(spec: Any, env: Environment) -> Stage:
    """Compile a ``$group``. The stage yields the groups in the order of their first documents."""
    if not isinstance(spec, dict) or "_id" not in spec:
        raise malformed("$group")
    scope = env.scope
    fields = spec["_id"] if isinstance(spec["_id"], dict) and not has_operators(spec["_id"]) else {}
    if any(isinstance(value, bool) or is_number(value) for value in fields.values()):
        raise malformed("$group with a number")
    compute_id = compile_expression(spec["_id"], scope)
    # If the group ID is a document of one field, a missing value becomes null. If the group ID is a
    # document of several fields, the ID omits a missing field.
    single_field = fields if len(fields) == 1 else {}
    accumulators = {name: _compile_accumulator(name, value, scope) for name, value in spec.items() if name != "_id"}

    def run(documents: Documents, variables: Variables) -> Documents:
        groups: dict[Any, tuple[Any, Mapping[str, list[Any]]]] = {}
        for document in documents:
            document_variables = with_document(variables, document)
            group_id = missing_to_none(compute_id(document_variables))
            if group_id == {} and single_field:
                group_id = dict.fromkeys(single_field)
            key = make_key(scope.collation.apply(group_id))
            if key not in groups:
                groups[key] = group_id, {name: [] for name in accumulators}
            values_by_name = groups[key][1]
            for name, accumulator in accumulators.items():
                values_by_name[name].append(accumulator.expression(document_variables))
        for key in list(groups):
            group_id, values_by_name = groups.pop(key)
            yield {
                "_id": group_id,
                **{name: compiled.compute_result(values_by_name[name]) for name, compiled in accumulators.items()},
            }

    return run


def _compile_accumulator(name: str, spec: Any, scope: Scope) -> Accumulator:
    check_field_name(name)
    if not isinstance(spec, dict) or len(spec) != 1:
        raise malformed("$group")
    ((operator, operand),) = spec.items()
    if operator in unsupported.ACCUMULATORS:
        raise not_supported(operator)
    if operator not in ACCUMULATORS:
        raise error(15952, f"unknown group operator '{operator}'")
    return ACCUMULATORS[operator](operator, operand, scope)
