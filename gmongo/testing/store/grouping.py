"""The stage ``$group``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing import unsupported
from gmongo.testing.command import CommandError
from gmongo.testing.store.accumulators import ACCUMULATORS, Accumulator
from gmongo.testing.store.environment import Documents, Environment, Stage
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions import Expression, Scope, Variables, compile_expression, with_document
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.values import MISSING, is_number, key_of
from gmongo.testing.unsupported import not_supported


def compile_group(spec: Any, env: Environment) -> Stage:
    """Compile a ``$group``. The results are in the order of the first document of each group."""
    if not isinstance(spec, dict):
        raise location(15947, "a group's fields must be specified in an object")
    if "_id" not in spec:
        raise location(15955, "a group specification must include an _id")
    scope = env.scope
    fields = spec["_id"] if isinstance(spec["_id"], dict) and not is_operators(spec["_id"]) else {}
    if any(isinstance(value, bool) or is_number(value) for value in fields.values()):
        raise location(17390, "$group does not support inclusion-style expressions")
    identity = compile_expression(spec["_id"], scope)
    # If the group key is a document of one field, a missing value becomes null. If the group key is a document of
    # several fields, the key omits a missing field.
    alone = fields if len(fields) == 1 else {}
    accumulators = compile_accumulators({name: value for name, value in spec.items() if name != "_id"}, scope)

    def run(documents: Documents, variables: Variables) -> Documents:
        groups: dict[Any, tuple[Any, Mapping[str, list[Any]]]] = {}
        for document in documents:
            values = with_document(variables, document)
            found, kept = _values(identity, accumulators, values)
            found = None if found is MISSING else found
            if found == {} and alone:
                found = dict.fromkeys(alone)
            key = key_of(scope.collation.folded(found))
            if key not in groups:
                groups[key] = found, {name: [] for name in accumulators}
            members = groups[key][1]
            for name, value in kept:
                members[name].append(value)
        for key in list(groups):
            found, members = groups.pop(key)
            yield {"_id": found, **{name: one.result(members[name]) for name, one in accumulators.items()}}

    return run


def _values(
    identity: Expression, accumulators: Mapping[str, Accumulator], values: Variables
) -> tuple[Any, list[tuple[str, Any]]]:
    try:
        return identity(values), [(name, accumulator.value(values)) for name, accumulator in accumulators.items()]
    except CommandError as error:  # the two execution engines of a server have different error codes
        raise not_supported("an error of an expression in $group", error.message) from None


def compile_accumulators(spec: Mapping[str, Any], scope: Scope) -> dict[str, Accumulator]:
    """Compile the accumulators of a stage, and return the compiled accumulators by field name."""
    return {name: _accumulator(name, value, scope) for name, value in spec.items()}


def _accumulator(name: str, spec: Any, scope: Scope) -> Accumulator:
    if "." in name:
        raise location(40235, f"The field name '{name}' cannot contain '.'")
    if name.startswith("$"):
        raise location(40236, f"The field name '{name}' cannot be an operator name")
    if not isinstance(spec, dict):
        raise location(40234, f"The field '{name}' must be an accumulator object")
    if len(spec) != 1:
        raise location(40238, f"The field '{name}' must specify one accumulator")
    ((operator, operand),) = spec.items()
    if operator in unsupported.ACCUMULATORS:
        raise not_supported(operator)
    if operator not in ACCUMULATORS:
        raise location(15952, f"unknown group operator '{operator}'")
    return ACCUMULATORS[operator](operator, operand, scope)
