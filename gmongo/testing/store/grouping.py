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
    convert_missing_to_none,
)
from gmongo.testing.store.expressions.objects import merge_documents
from gmongo.testing.store.expressions.summaries import SUMMARIES
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.values import MISSING, is_number, key_of
from gmongo.testing.unsupported import not_supported


@dataclass(frozen=True)
class Accumulator:
    """A compiled accumulator of ``$group``."""

    value: Expression  # the expression that the stage evaluates for each document
    # A function that computes the result of a group from the values of its documents.
    result: Callable[[list[Any]], Any]


Make = Callable[[str, Any, Scope], Accumulator]


def _without_missing(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not MISSING]


def _with_one_operand(result: Callable[[list[Any], Scope], Any]) -> Make:
    """Return a function that compiles an accumulator whose operand is one expression."""

    def make(name: str, operand: Any, scope: Scope) -> Accumulator:
        if isinstance(operand, list):
            raise malformed(name)
        return Accumulator(compile_expression(operand, scope), lambda values: result(values, scope))

    return make


def _count(_name: str, operand: Any, scope: Scope) -> Accumulator:
    if operand != {}:
        raise malformed("$count")
    return Accumulator(compile_expression(None, scope), len)


def _distinct_values(values: list[Any], scope: Scope) -> list[Any]:
    found: dict[Any, Any] = {}
    for value in scope.pace.through(values):
        if value is not MISSING:
            found.setdefault(key_of(scope.collation.folded(value)), value)
    return list(found.values())


ACCUMULATORS: Mapping[str, Make] = {
    **{name: _with_one_operand(summary) for name, summary in SUMMARIES.items()},
    "$addToSet": _with_one_operand(_distinct_values),
    "$count": _count,
    "$first": _with_one_operand(lambda values, scope: convert_missing_to_none(values[0])),
    "$last": _with_one_operand(lambda values, scope: convert_missing_to_none(values[-1])),
    "$mergeObjects": _with_one_operand(lambda values, scope: merge_documents(scope.pace.through(values))),
    "$push": _with_one_operand(lambda values, scope: _without_missing(scope.pace.through(values))),
}


def compile_group(spec: Any, env: Environment) -> Stage:
    """Compile a ``$group``. The results are in the order of the first document of each group."""
    if not isinstance(spec, dict) or "_id" not in spec:
        raise malformed("$group")
    scope = env.scope
    fields = spec["_id"] if isinstance(spec["_id"], dict) and not is_operators(spec["_id"]) else {}
    if any(isinstance(value, bool) or is_number(value) for value in fields.values()):
        raise malformed("$group with a number")
    identity = compile_expression(spec["_id"], scope)
    # If the group key is a document of one field, a missing value becomes null. If the group key is a document of
    # several fields, the key omits a missing field.
    alone = fields if len(fields) == 1 else {}
    accumulators = {name: _accumulator(name, value, scope) for name, value in spec.items() if name != "_id"}

    def run(documents: Documents, variables: Variables) -> Documents:
        groups: dict[Any, tuple[Any, Mapping[str, list[Any]]]] = {}
        for document in documents:
            values = with_document(variables, document)
            found = convert_missing_to_none(identity(values))
            if found == {} and alone:
                found = dict.fromkeys(alone)
            key = key_of(scope.collation.folded(found))
            if key not in groups:
                groups[key] = found, {name: [] for name in accumulators}
            members = groups[key][1]
            for name, accumulator in accumulators.items():
                members[name].append(accumulator.value(values))
        for key in list(groups):
            found, members = groups.pop(key)
            yield {"_id": found, **{name: one.result(members[name]) for name, one in accumulators.items()}}

    return run


def _accumulator(name: str, spec: Any, scope: Scope) -> Accumulator:
    check_field_name(name)
    if not isinstance(spec, dict) or len(spec) != 1:
        raise malformed("$group")
    ((operator, operand),) = spec.items()
    if operator in unsupported.ACCUMULATORS:
        raise not_supported(operator)
    if operator not in ACCUMULATORS:
        raise error(15952, f"unknown group operator '{operator}'")
    return ACCUMULATORS[operator](operator, operand, scope)
