"""``$setWindowFields``: fields that tell of the documents around each."""

from __future__ import annotations

from typing import Any

from gmongo.testing.store.errors import failed_to_parse, location, type_mismatch
from gmongo.testing.store.expressions import Variables, compile_expression, path_parts, with_document
from gmongo.testing.store.ordering import compile_sort
from gmongo.testing.store.paths import leaves_at
from gmongo.testing.store.surroundings import Document, Documents, Stage, Surroundings, with_value
from gmongo.testing.store.values import MISSING, Key, key_of
from gmongo.testing.store.window_functions import Partition, compile_function

_OPTIONS = frozenset({"partitionBy", "sortBy", "output"})


def set_window_fields(spec: Any, around: Surroundings) -> Stage:
    """``$setWindowFields``.

    :raises CommandError: if it is malformed.
    """
    if not isinstance(spec, dict):
        raise failed_to_parse(f"the $setWindowFields stage specification must be an object, found {spec!r}")
    for name in sorted(set(spec) - _OPTIONS):
        raise location(40415, f"BSON field '$setWindowFields.{name}' is an unknown field.")
    for name in ("output", "sortBy"):
        if not isinstance(spec.get(name, {}), dict):
            raise type_mismatch(f"BSON field '$setWindowFields.{name}' is the wrong type, expected type 'object'")
    if "output" not in spec:
        raise location(40414, "BSON field '$setWindowFields.output' is missing but a required field")
    _check_paths(list(spec["output"]))
    scope, order = around.scope, spec.get("sortBy") or {}
    partition_by = compile_expression(spec.get("partitionBy"), scope)
    sort = compile_sort(order, scope.collation, scope.pace) if order else None
    functions = {name: compile_function(name, one, order, scope) for name, one in spec["output"].items()}
    paths = {name: path_parts(name) for name in functions}

    def run(documents: Documents, variables: Variables) -> Documents:
        for members in _partitions(documents, partition_by, variables, around):
            ordered = members if sort is None else list(sort(members, lambda document: document))
            of_each = [with_document(variables, document) for document in scope.pace.through(ordered)]
            places = _places(ordered, order, around)
            found = {name: one(Partition(of_each, places)) for name, one in functions.items()}
            for number, document in enumerate(scope.pace.through(ordered)):
                for name, path in paths.items():
                    document = with_value(document, path, found[name][number])
                yield document

    return run


def _check_paths(paths: list[str]) -> None:
    for path in paths:
        if any(other.startswith(f"{path}.") for other in paths):
            raise location(6307900, f"$setWindowFields 'output' specification contains two conflicting paths, '{path}'")


def _partitions(documents: Documents, by: Any, variables: Variables, around: Surroundings) -> list[list[Document]]:
    """The partitions, in the order of what they share."""
    found: dict[Key, list[Document]] = {}
    for document in documents:
        shared = by(with_document(variables, document))
        if isinstance(shared, list):
            raise type_mismatch("An expression used to partition cannot evaluate to value of type array")
        key = key_of(around.collation.folded(None if shared is MISSING else shared))
        found.setdefault(key, []).append(document)
    return [found[key] for key in around.pace.in_order(found, lambda key: key)]


def _places(documents: list[Document], order: Any, around: Surroundings) -> list[Any]:
    """The values that the documents are sorted by, or nothing but as many of them."""
    if len(order) != 1:
        return [None] * len(documents)
    (path,) = order
    return [leaves_at(document, [path])[0][0] for document in around.pace.through(documents)]
