"""The stage ``$group``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gmongo.testing import unsupported
from gmongo.testing.command import error
from gmongo.testing.store.accumulators import ACCUMULATORS, Accumulator
from gmongo.testing.store.environment import Documents, Environment, Stage
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import Scope, Variables, check_field_name, compile_expression, with_document
from gmongo.testing.store.expressions.compiling import none_if_missing
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.values import is_number, key_of
from gmongo.testing.unsupported import not_supported


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
    accumulators = compile_accumulators({name: value for name, value in spec.items() if name != "_id"}, scope)

    def run(documents: Documents, variables: Variables) -> Documents:
        groups: dict[Any, tuple[Any, Mapping[str, list[Any]]]] = {}
        for document in documents:
            values = with_document(variables, document)
            found = none_if_missing(identity(values))
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


def compile_accumulators(spec: Mapping[str, Any], scope: Scope) -> dict[str, Accumulator]:
    """Compile the accumulators of a stage, and return the compiled accumulators by field name."""
    return {name: _accumulator(name, value, scope) for name, value in spec.items()}


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
