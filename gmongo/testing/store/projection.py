"""Include, exclude and compute fields: ``$project``, ``$addFields``, ``$unset``, and projections of ``find``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.environment import Document, set_last_value, set_value
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import with_document
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Scope,
    Variables,
    compile_expression,
    is_expression_operator,
    split_path,
)
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import has_operators
from gmongo.testing.store.positions import find_matched_index
from gmongo.testing.store.text_search import Score
from gmongo.testing.store.values import MISSING, is_number, is_true, trunc

Project = Callable[[Document, Variables], Document]
Tree = dict[str, Any]

# The nodes of a projection tree for included and excluded fields.
KEEP = object()
DROP = object()


@dataclass(frozen=True)
class ComputedField:
    """The node of a projection tree for a field whose value is computed."""

    expression: Expression  # the expression that computes the value


def compile_project(spec: Any, scope: Scope) -> Project:
    """Compile a ``$project`` to a function of a document and the variables."""
    if not isinstance(spec, dict) or not spec:
        raise malformed("$project")
    tree: Tree = {}
    _add_to_tree(tree, spec, lambda value: _compile_project_node(value, scope))
    is_inclusion = _is_inclusion_tree(tree)
    if is_inclusion:
        tree.setdefault("_id", KEEP)
    return _create_project(tree, is_inclusion)


def compile_add_fields(spec: Any, scope: Scope) -> Project:
    """Compile an ``$addFields`` or ``$set`` to a function of a document and the variables."""
    if not isinstance(spec, dict):
        raise malformed("$addFields")
    tree: Tree = {}
    _add_to_tree(tree, spec, lambda value: _compile_computed_node(value, scope))
    return _create_project(tree, is_inclusion=False)


def compile_unset(fields: Any) -> Project:
    """Compile an ``$unset`` to a function of a document and the variables."""
    names = fields if isinstance(fields, list) else [fields]
    if not all(type(name) is str for name in names):
        raise malformed("$unset")
    return compile_project(dict.fromkeys(names, 0), Scope())


def _add_to_tree(tree: Tree, spec: Mapping[str, Any], create_leaf: Callable[[Any], Any]) -> None:
    for path, value in spec.items():
        *parents, last = split_path(path)
        node = tree
        for part in parents:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise malformed(f"a path collision at {path}")
        if last in node and not (isinstance(node[last], dict) and isinstance(value, dict)):
            raise malformed(f"a path collision at {path}")
        if isinstance(value, dict) and value and not has_operators(value):
            _add_to_tree(node.setdefault(last, {}), value, create_leaf)
        else:
            if last in node:
                raise malformed(f"a path collision at {path}")
            node[last] = create_leaf(value)


def _compile_project_node(value: Any, scope: Scope) -> Any:
    if isinstance(value, bool) or is_number(value):
        return KEEP if is_true(value) else DROP
    if value == {}:
        raise malformed("an empty projection of a field")
    name = next(iter(value)) if has_operators(value) else None
    if name == "$elemMatch":
        raise malformed("$elemMatch")
    if name is not None and not is_expression_operator(name):
        raise error(31325, f"Invalid $project :: caused by :: Unknown expression {name}")
    return ComputedField(compile_expression(value, scope))


def _compile_computed_node(value: Any, scope: Scope) -> ComputedField:
    if value == {}:
        raise malformed("an empty document of computed fields")
    return ComputedField(compile_expression(value, scope))


def _is_inclusion_tree(tree: Tree) -> bool:
    """Return True if the projection includes fields, and False if the projection excludes fields."""
    kinds = [kind for name, node in tree.items() if name != "_id" for kind in _find_kinds(node)]
    if not kinds:
        return tree.get("_id") is not DROP
    is_inclusion = kinds[0] is not DROP
    if (DROP if is_inclusion else KEEP) in kinds or (not is_inclusion and ComputedField in kinds):
        raise malformed("a projection that includes and excludes fields")
    return is_inclusion


def _find_kinds(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return [kind for child in node.values() for kind in _find_kinds(child)]
    return [ComputedField if isinstance(node, ComputedField) else node]


def _create_project(tree: Tree, is_inclusion: bool) -> Project:
    has_computed = any(kind is ComputedField for kind in _find_kinds(tree))

    def project(document: Document, variables: Variables) -> Document:
        return _apply_tree(
            tree, document, with_document(variables, document) if has_computed else variables, is_inclusion
        )

    return project


def _apply_tree(tree: Tree, value: Document, variables: Variables, is_inclusion: bool) -> Document:
    result: Document = {}
    default = DROP if is_inclusion else KEEP
    for name, child in value.items():
        node = tree.get(name, default)
        if is_inclusion and isinstance(node, ComputedField):
            continue  # the second loop adds computed fields after the included fields
        projected_value = (
            child if node is KEEP else MISSING if node is DROP else _apply_node(node, child, variables, is_inclusion)
        )
        if projected_value is not MISSING:
            result[name] = projected_value
    handled_fields = result if is_inclusion else value
    for name, node in tree.items():
        if name not in handled_fields and ComputedField in _find_kinds(node):
            projected_value = _apply_node(node, MISSING, variables, is_inclusion)
            if projected_value is not MISSING:
                result[name] = projected_value
    return result


def _apply_node(node: Any, value: Any, variables: Variables, is_inclusion: bool) -> Any:
    if node is KEEP:
        return value
    if node is DROP:
        return MISSING
    if isinstance(node, ComputedField):
        return node.expression(variables)
    if isinstance(value, dict):
        return _apply_tree(node, value, variables, is_inclusion)
    if isinstance(value, list):
        elements = [_apply_node(node, element, variables, is_inclusion) for element in value]
        return [element for element in elements if element is not MISSING]
    if ComputedField in _find_kinds(node):
        return _apply_tree(node, {}, variables, is_inclusion)
    return MISSING if is_inclusion else value


Edit = Callable[[Document, Document], Document]
_SLICE_EXPRESSION_ARITY = 3  # a $slice with this number of arguments is always an expression


def compile_projection(
    spec: Mapping[str, Any] | None, query: Mapping[str, Any], variables: Variables, score: Score | None = None
) -> Callable[[Document], Document]:
    """Return a function that applies the projection of a ``find`` to a document."""
    if not spec:
        return lambda document: document
    scope = Scope(frozenset(variables), score=score)
    metadata = {name: compile_expression(value, scope) for name, value in spec.items() if _is_metadata(value)}
    spec = {name: value for name, value in spec.items() if name not in metadata}
    path = _find_positional_path(spec)
    if path is not None and ".".join(path) in spec:
        raise malformed(f"a path collision at {'.'.join(path)}")
    operators = {name: value for name, value in spec.items() if _is_array_operator(value)}
    is_inclusion = _is_inclusion_projection(spec, operators)
    plain_fields: dict[str, Any] = {}
    for name, value in spec.items():
        if name in operators:
            if is_inclusion:
                plain_fields[name] = 1
        elif is_inclusion or name != "_id" or not _is_included(value):
            plain_fields[name.removesuffix(".$")] = value
    project_plain = compile_project(plain_fields, scope) if plain_fields else None
    edits = [_compile_operator(*item, variables, is_inclusion) for item in operators.items()]

    def project(document: Document) -> Document:
        selected = document if path is None else _select_positional_element(document, path, query, variables)
        projected = selected if project_plain is None else project_plain(selected, variables)
        for edit in edits:
            projected = edit(document, projected)
        for name, expression in metadata.items():
            projected = set_value(projected, name.split("."), expression({**variables, "ROOT": document}))
        return projected

    return project


def _is_inclusion_projection(spec: Mapping[str, Any], operators: Mapping[str, Any]) -> bool:
    """Return True if the projection includes fields, and False if the projection excludes fields."""
    fields = {name: value for name, value in spec.items() if name not in operators and name != "_id"}
    if fields:
        return _is_included(value := next(iter(fields.values()))) or not (isinstance(value, bool) or is_number(value))
    has_slice = any("$slice" in value for value in operators.values())
    return _is_included(spec.get("_id")) or (bool(operators) and not has_slice)


def _find_positional_path(spec: Mapping[str, Any]) -> list[str] | None:
    names = [name for name in spec if name.endswith(".$")]
    if not names:
        return None
    operators = [value for value in spec.values() if isinstance(value, dict)]
    if len(names) > 1 or not _is_included(spec[names[0]]) or any("$elemMatch" in value for value in operators):
        raise malformed(f"the positional projection {names[0]}")
    return names[0][:-2].split(".")


def _is_included(value: Any) -> bool:
    return (isinstance(value, bool) or is_number(value)) and bool(value)


def _is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"$meta"}


def _is_array_operator(value: Any) -> bool:
    return isinstance(value, dict) and (
        "$elemMatch" in value or ("$slice" in value and not _is_slice_expression(value["$slice"]))
    )


def _is_slice_expression(operand: Any) -> bool:
    return isinstance(operand, list) and (len(operand) == _SLICE_EXPRESSION_ARITY or not all(map(is_number, operand)))


def _compile_operator(name: str, value: Any, variables: Variables, is_inclusion: bool) -> Edit:
    if "$elemMatch" in value:
        if not isinstance(value["$elemMatch"], dict) or "." in name:
            raise malformed("$elemMatch")
        return _compile_elem_match(name, value["$elemMatch"], variables, set_last_value if is_inclusion else set_value)
    return _compile_slice(name.split("."), value["$slice"])


def _compile_elem_match(name: str, query: Any, variables: Variables, put: Callable[..., Document]) -> Edit:
    match = compile_filter({"v": {"$elemMatch": query}}, variables)

    def edit(document: Document, projected: Document) -> Document:
        array = document.get(name)
        items = [item for item in array if match({"v": [item]})] if isinstance(array, list) else []
        return put(projected, [name], items[:1] or MISSING)

    return edit


def _select_positional_element(
    document: Document, path: list[str], query: Mapping[str, Any], variables: Variables
) -> Document:
    """Return a copy of a document in which the first array of the path has only the element that the query matched."""
    array: Any = document
    for length, part in enumerate(path, 1):
        array = array.get(part) if isinstance(array, dict) else None
        if isinstance(array, list):
            index = find_matched_index(document, path[:length], query, variables)
            if index is None:
                raise error(51246, "Executor error during find command: positional operator '.$' couldn't find a "
                               "matching element in the array")  # fmt: skip
            return set_value(document, path[:length], [array[index]])
    return document


def _compile_slice(parts: list[str], operand: Any) -> Edit:
    numbers = operand if isinstance(operand, list) else [operand]
    if len(numbers) != (2 if isinstance(operand, list) else 1) or not all(map(is_number, numbers)):
        raise malformed("$slice")
    limit = trunc(numbers[-1])
    skip = trunc(numbers[0]) if len(numbers) == 2 else None
    if skip is not None and limit <= 0:
        raise malformed("$slice with a limit that is not positive")

    def slice_array(array: list[Any]) -> list[Any]:
        if skip is None:
            return array[:limit] if limit >= 0 else array[limit:]
        start = skip if skip >= 0 else max(0, len(array) + skip)
        return array[start : start + limit]

    def slice_at_path(value: Any, remaining: list[str]) -> Any:
        if isinstance(value, list) and not remaining:
            return slice_array(value)
        if isinstance(value, list):
            return [element if isinstance(element, list) else slice_at_path(element, remaining) for element in value]
        if remaining and isinstance(value, dict) and remaining[0] in value:
            return {**value, remaining[0]: slice_at_path(value[remaining[0]], remaining[1:])}
        return value

    return lambda document, projected: slice_at_path(projected, parts)
