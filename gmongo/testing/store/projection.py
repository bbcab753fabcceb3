"""Choosing and computing fields: projections of find, ``$project``, ``$addFields`` and ``$unset``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store.errors import bad_value, location
from gmongo.testing.store.expressions import evaluate
from gmongo.testing.store.matching import compile_filter, is_operators
from gmongo.testing.store.paths import split
from gmongo.testing.store.positions import matched_index
from gmongo.testing.store.values import MISSING, copy_value, is_number

Project = Callable[[dict[str, Any]], dict[str, Any]]
Variables = Mapping[str, Any]
Tree = dict[str, Any]

KEEP = object()
DROP = object()


@dataclass(frozen=True)
class Computed:
    """A field whose value is an expression's."""

    expression: Any


def compile_projection(spec: Mapping[str, Any] | None, query: Mapping[str, Any], variables: Variables) -> Project:
    """The function that a find projects its documents with.

    :raises CommandError: if fields are both included and excluded, or an operator is not supported.
    """
    if not spec:
        return copy_value
    plain = {name: value for name, value in spec.items() if not _is_array_operator(name, value)}
    special = {name: value for name, value in spec.items() if name not in plain}
    including = any(name.endswith(".$") or "$elemMatch" in value for name, value in special.items())
    for name in special:
        if name.endswith(".$"):
            plain[name[:-2]] = 1
        elif including or any(_is_inclusion(one) for field, one in spec.items() if field != "_id"):
            plain[name] = 1
    chosen = compile_project(plain, variables) if plain else copy_value
    edits = [_array_operator(name, value, query, variables) for name, value in special.items()]

    def project(document: dict[str, Any]) -> dict[str, Any]:
        projected = chosen(document)
        for edit in edits:
            projected = edit(document, projected)
        return projected

    return project


def compile_project(spec: Any, variables: Variables) -> Project:
    """The function of a ``$project`` stage."""
    if not isinstance(spec, dict) or not spec:
        raise location(51272, "Invalid $project :: caused by :: projection specification must have at least one field")
    tree: Tree = {}
    _grow(tree, spec, computed_only=False)
    kinds = {kind for name, node in tree.items() if name != "_id" for kind in _leaves(node)}
    identity = tree.get("_id")
    including = KEEP in kinds or Computed in kinds or (not kinds and identity is not DROP)
    if including and DROP in kinds:
        raise location(31254, "Cannot do exclusion on field in inclusion projection")
    if including and identity is None:
        tree["_id"] = KEEP
    return lambda document: _apply(tree, document, document, variables, including)


def compile_add_fields(spec: Any, variables: Variables) -> Project:
    """The function of an ``$addFields`` or ``$set`` stage."""
    if not isinstance(spec, dict) or not spec:
        raise location(40177, "Invalid $addFields :: caused by :: specification must have at least one field")
    tree: Tree = {}
    _grow(tree, spec, computed_only=True)
    return lambda document: _apply(tree, document, document, variables, False)


def compile_unset(fields: Any) -> Project:
    """The function of an ``$unset`` stage."""
    names = fields if isinstance(fields, list) else [fields]
    if not names or not all(type(name) is str and name for name in names):
        raise location(31002, "$unset specification must be a string or an array of strings")
    return compile_project(dict.fromkeys(names, 0), {})


def _is_inclusion(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and bool(value)


def _is_array_operator(name: str, value: Any) -> bool:
    if isinstance(value, dict) and "$meta" in value:
        raise not_supported("$meta in a projection")
    by_value = isinstance(value, dict) and (
        "$elemMatch" in value or ("$slice" in value and not _is_slice_expression(value["$slice"]))
    )
    return name.endswith(".$") or by_value


def _is_slice_expression(operand: Any) -> bool:
    return isinstance(operand, list) and not all(is_number(part) for part in operand)


def _grow(tree: Tree, spec: Mapping[str, Any], computed_only: bool) -> None:
    for path, value in spec.items():
        if not path or path.startswith("$") or path.endswith("."):
            raise location(16410, f"FieldPath field names may not be empty or start with '$': {path!r}")
        *parents, last = split(path)
        node = tree
        for part in parents:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise location(31249, f"Path collision at {path}")
        if last in node:
            raise location(31250, f"Path collision at {path}")
        if isinstance(value, dict) and value and not is_operators(value):
            node[last] = {}
            _grow(node[last], value, computed_only)
        else:
            node[last] = _leaf(value, computed_only)


def _leaf(value: Any, computed_only: bool) -> Any:
    if not computed_only and (isinstance(value, bool) or is_number(value)):
        return KEEP if value else DROP
    return Computed(value)


def _leaves(node: Any) -> set[Any]:
    if isinstance(node, dict):
        return {kind for child in node.values() for kind in _leaves(child)}
    return {Computed} if isinstance(node, Computed) else {node}


def _apply(tree: Tree, value: dict[str, Any], root: Any, variables: Variables, including: bool) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for name, part in value.items():
        node = tree.get(name, DROP if including else KEEP)
        found = _child(node, part, root, variables, including)
        if found is not MISSING:
            chosen[name] = found
    for name, node in tree.items():
        if name not in value and Computed in _leaves(node):
            found = _child(node, MISSING, root, variables, including)
            if found is not MISSING:
                chosen[name] = found
    return chosen


def _child(node: Any, part: Any, root: Any, variables: Variables, including: bool) -> Any:
    if node is KEEP:
        return copy_value(part)
    if node is DROP:
        return MISSING
    if isinstance(node, Computed):
        return evaluate(node.expression, root, variables)
    if isinstance(part, dict):
        return _apply(node, part, root, variables, including)
    computed = Computed in _leaves(node)
    if isinstance(part, list):
        found = [_child(node, element, root, variables, including) for element in part]
        return [element for element in found if element is not MISSING]
    if computed:
        return _apply(node, {}, root, variables, including)
    return MISSING if including else part


def _array_operator(
    name: str, value: Any, query: Mapping[str, Any], variables: Variables
) -> Callable[[Any, dict[str, Any]], dict[str, Any]]:
    if name.endswith(".$"):
        return _positional(name[:-2], query, variables)
    if "." in name:
        raise not_supported(f"the projection operator of the dotted path {name!r}")
    if "$elemMatch" in value:
        return _first_element(name, value["$elemMatch"], variables)
    return _slice(name, value["$slice"])


def _first_element(name: str, query: Any, variables: Variables) -> Callable[[Any, dict[str, Any]], dict[str, Any]]:
    match = compile_filter({"v": {"$elemMatch": query}}, variables)

    def edit(document: Any, projected: dict[str, Any]) -> dict[str, Any]:
        array = document.get(name)
        elements = [one for one in array if match({"v": [one]})] if isinstance(array, list) else []
        return _replaced(projected, name, elements[:1] or MISSING)

    return edit


def _positional(
    name: str, query: Mapping[str, Any], variables: Variables
) -> Callable[[Any, dict[str, Any]], dict[str, Any]]:
    if "." in name:
        raise not_supported(f"the positional projection of the dotted path {name!r}")

    def edit(document: Any, projected: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(document.get(name), list):
            return projected
        index = matched_index(document, [name], query, variables)
        if index is None:
            raise location(51246, "Executor error during find command: positional operator '.$' found no match")
        return _replaced(projected, name, [copy_value(document[name][index])])

    return edit


def _slice(name: str, operand: Any) -> Callable[[Any, dict[str, Any]], dict[str, Any]]:
    skip, limit = operand if isinstance(operand, list) else (None, operand)
    if skip is not None and limit <= 0:
        raise location(28724, "First argument to $slice projection: limit must be positive")

    def edit(_document: Any, projected: dict[str, Any]) -> dict[str, Any]:
        array = projected.get(name)
        if not isinstance(array, list):
            return projected
        if skip is None:
            part = array[:limit] if limit >= 0 else array[limit:]
        else:
            start = skip if skip >= 0 else max(0, len(array) + skip)
            part = array[start : start + limit]
        return _replaced(projected, name, part)

    return edit


def _replaced(document: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    if value is MISSING:
        return {field: part for field, part in document.items() if field != name}
    if not isinstance(value, (list, dict)):
        raise bad_value(f"cannot project {name}")
    return {**document, name: copy_value(value)}
