"""The stages ``$project``, ``$addFields`` and ``$unset``: include, exclude and compute fields.

Projections of ``find`` also use this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import (
    Expression,
    Scope,
    Variables,
    compile_expression,
    is_expression,
    path_parts,
    with_document,
)
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.values import MISSING, is_number, is_true

Document = dict[str, Any]
Project = Callable[[Document, Variables], Document]
Tree = dict[str, Any]

# The nodes of a projection tree for included and excluded fields.
KEEP = object()
DROP = object()


@dataclass(frozen=True)
class Computed:
    """The node of a projection tree for a field whose value is computed."""

    expression: Expression  # the expression that computes the value


def compile_project(spec: Any, scope: Scope) -> Project:
    """Compile a ``$project`` to a function of a document and the variables."""
    if not isinstance(spec, dict) or not spec:
        raise malformed("$project")
    tree: Tree = {}
    _add_to_tree(tree, spec, lambda value: _project_node(value, scope))
    including = _is_including(tree)
    if including:
        tree.setdefault("_id", KEEP)
    return _tree_function(tree, including)


def compile_add_fields(spec: Any, scope: Scope) -> Project:
    """Compile an ``$addFields`` or ``$set`` to a function of a document and the variables."""
    if not isinstance(spec, dict):
        raise malformed("$addFields")
    tree: Tree = {}
    _add_to_tree(tree, spec, lambda value: _computed_node(value, scope))
    return _tree_function(tree, including=False)


def compile_unset(fields: Any) -> Project:
    """Compile an ``$unset`` to a function of a document and the variables."""
    names = fields if isinstance(fields, list) else [fields]
    if not all(type(name) is str for name in names):
        raise malformed("$unset")
    return compile_project(dict.fromkeys(names, 0), Scope())


def _add_to_tree(tree: Tree, spec: Mapping[str, Any], leaf: Callable[[Any], Any]) -> None:
    for path, value in spec.items():
        *parents, last = path_parts(path)
        node = tree
        for part in parents:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise malformed(f"a path collision at {path}")
        if last in node and not (isinstance(node[last], dict) and isinstance(value, dict)):
            raise malformed(f"a path collision at {path}")
        if isinstance(value, dict) and value and not is_operators(value):
            _add_to_tree(node.setdefault(last, {}), value, leaf)
        else:
            if last in node:
                raise malformed(f"a path collision at {path}")
            node[last] = leaf(value)


def _project_node(value: Any, scope: Scope) -> Any:
    if isinstance(value, bool) or is_number(value):
        return KEEP if is_true(value) else DROP
    if value == {}:
        raise malformed("an empty projection of a field")
    name = next(iter(value)) if is_operators(value) else None
    if name is not None and not is_expression(name):
        raise error(31325, f"Invalid $project :: caused by :: Unknown expression {name}")
    return Computed(compile_expression(value, scope))


def _computed_node(value: Any, scope: Scope) -> Computed:
    if value == {}:
        raise malformed("an empty document of computed fields")
    return Computed(compile_expression(value, scope))


def _is_including(tree: Tree) -> bool:
    """Return True if the projection includes fields, and False if the projection excludes fields.

    The first field except ``_id`` determines the result.
    """
    kinds = [kind for name, node in tree.items() if name != "_id" for kind in _kinds(node)]
    if not kinds:
        return tree.get("_id") is not DROP
    including = kinds[0] is not DROP
    if (DROP if including else KEEP) in kinds or (not including and Computed in kinds):
        raise malformed("a projection that includes and excludes fields")
    return including


def _kinds(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return [kind for child in node.values() for kind in _kinds(child)]
    return [Computed if isinstance(node, Computed) else node]


def _tree_function(tree: Tree, including: bool) -> Project:
    computes = any(kind is Computed for kind in _kinds(tree))

    def project(document: Document, variables: Variables) -> Document:
        return _apply(tree, document, with_document(variables, document) if computes else variables, including)

    return project


def _apply(tree: Tree, value: Document, variables: Variables, including: bool) -> Document:
    chosen: Document = {}
    default = DROP if including else KEEP
    for name, part in value.items():
        node = tree.get(name, default)
        if including and isinstance(node, Computed):
            continue  # the second loop adds computed fields after the included fields
        found = part if node is KEEP else MISSING if node is DROP else _apply_node(node, part, variables, including)
        if found is not MISSING:
            chosen[name] = found
    present = chosen if including else value
    for name, node in tree.items():
        if name not in present and Computed in _kinds(node):
            found = _apply_node(node, MISSING, variables, including)
            if found is not MISSING:
                chosen[name] = found
    return chosen


def _apply_node(node: Any, part: Any, variables: Variables, including: bool) -> Any:
    if node is KEEP:
        return part
    if node is DROP:
        return MISSING
    if isinstance(node, Computed):
        return node.expression(variables)
    if isinstance(part, dict):
        return _apply(node, part, variables, including)
    if isinstance(part, list):
        found = [_apply_node(node, element, variables, including) for element in part]
        return [element for element in found if element is not MISSING]
    if Computed in _kinds(node):
        return _apply(node, {}, variables, including)
    return MISSING if including else part
