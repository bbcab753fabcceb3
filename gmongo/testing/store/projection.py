"""Include, exclude and compute fields: ``$project``, ``$addFields``, ``$unset``, and projections of ``find``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.environment import Document, with_last, with_value
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import with_document
from gmongo.testing.store.expressions.compiling import (
    Expression,
    Scope,
    Variables,
    compile_expression,
    is_expression,
    split_path,
)
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.positions import positional_index
from gmongo.testing.store.text_search import Score
from gmongo.testing.store.values import MISSING, is_number, is_true, whole

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
        *parents, last = split_path(path)
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
    if name == "$elemMatch":
        raise malformed("$elemMatch")
    if name is not None and not is_expression(name):
        raise error(31325, f"Invalid $project :: caused by :: Unknown expression {name}")
    return Computed(compile_expression(value, scope))


def _computed_node(value: Any, scope: Scope) -> Computed:
    if value == {}:
        raise malformed("an empty document of computed fields")
    return Computed(compile_expression(value, scope))


def _is_including(tree: Tree) -> bool:
    """Return True if the projection includes fields, and False if the projection excludes fields."""
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


Edit = Callable[[Document, Document], Document]
_WITH_ARRAY = 3  # a $slice with this number of arguments is always an expression


def compile_projection(
    spec: Mapping[str, Any] | None, query: Mapping[str, Any], variables: Variables, score: Score | None = None
) -> Callable[[Document], Document]:
    """Return a function that applies the projection of a ``find`` to a document."""
    if not spec:
        return lambda document: document
    scope = Scope(frozenset(variables), score=score)
    metadata = {name: compile_expression(value, scope) for name, value in spec.items() if _is_metadata(value)}
    spec = {name: value for name, value in spec.items() if name not in metadata}
    position = _positional_path(spec)
    if position is not None and ".".join(position) in spec:
        raise malformed(f"a path collision at {'.'.join(position)}")
    special = {name: value for name, value in spec.items() if _is_array_operator(value)}
    including = _find_includes(spec, special)
    plain: dict[str, Any] = {}
    for name, value in spec.items():
        if name in special:
            if including:
                plain[name] = 1
        elif including or name != "_id" or not _is_inclusion(value):
            plain[name.removesuffix(".$")] = value
    chosen = compile_project(plain, scope) if plain else None
    edits = [_array_operator(name, value, variables, including) for name, value in special.items()]

    def project(document: Document) -> Document:
        source = document if position is None else _with_positional_element(document, position, query, variables)
        projected = source if chosen is None else chosen(source, variables)
        for edit in edits:
            projected = edit(document, projected)
        for name, expression in metadata.items():
            projected = with_value(projected, name.split("."), expression({**variables, "ROOT": document}))
        return projected

    return project


def _find_includes(spec: Mapping[str, Any], special: Mapping[str, Any]) -> bool:
    """Return True if the projection includes fields, and False if the projection excludes fields."""
    others = {name: value for name, value in spec.items() if name not in special and name != "_id"}
    if others:
        return _is_inclusion(value := next(iter(others.values()))) or not (isinstance(value, bool) or is_number(value))
    sliced = any("$slice" in value for value in special.values())
    return _is_inclusion(spec.get("_id")) or (bool(special) and not sliced)


def _positional_path(spec: Mapping[str, Any]) -> list[str] | None:
    found = [name for name in spec if name.endswith(".$")]
    if not found:
        return None
    operators = [value for value in spec.values() if isinstance(value, dict)]
    if len(found) > 1 or not _is_inclusion(spec[found[0]]) or any("$elemMatch" in value for value in operators):
        raise malformed(f"the positional projection {found[0]}")
    return found[0][:-2].split(".")


def _is_inclusion(value: Any) -> bool:
    return (isinstance(value, bool) or is_number(value)) and bool(value)


def _is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"$meta"}


def _is_array_operator(value: Any) -> bool:
    return isinstance(value, dict) and (
        "$elemMatch" in value or ("$slice" in value and not _is_slice_expression(value["$slice"]))
    )


def _is_slice_expression(operand: Any) -> bool:
    return isinstance(operand, list) and (len(operand) == _WITH_ARRAY or not all(map(is_number, operand)))


def _array_operator(name: str, value: Any, variables: Variables, including: bool) -> Edit:
    if "$elemMatch" in value:
        if not isinstance(value["$elemMatch"], dict) or "." in name:
            raise malformed("$elemMatch")
        return _first_element(name, value["$elemMatch"], variables, with_last if including else with_value)
    return _slice(name.split("."), value["$slice"])


def _first_element(name: str, query: Any, variables: Variables, put: Callable[..., Document]) -> Edit:
    match = compile_filter({"v": {"$elemMatch": query}}, variables)

    def edit(document: Document, projected: Document) -> Document:
        array = document.get(name)
        elements = [one for one in array if match({"v": [one]})] if isinstance(array, list) else []
        return put(projected, [name], elements[:1] or MISSING)

    return edit


def _with_positional_element(
    document: Document, path: list[str], query: Mapping[str, Any], variables: Variables
) -> Document:
    """Return a copy of a document in which the first array of the path has only the element that the query matched."""
    array: Any = document
    for length, part in enumerate(path, 1):
        array = array.get(part) if isinstance(array, dict) else None
        if isinstance(array, list):
            index = positional_index(document, path[:length], query, variables)
            if index is None:
                raise error(51246, "Executor error during find command: positional operator '.$' couldn't find a "
                               "matching element in the array")  # fmt: skip
            return with_value(document, path[:length], [array[index]])
    return document


def _slice(parts: list[str], operand: Any) -> Edit:
    numbers = operand if isinstance(operand, list) else [operand]
    if (
        not 1 <= len(numbers) <= 2
        or not all(map(is_number, numbers))
        or (len(numbers) == 1) == isinstance(operand, list)
    ):
        raise malformed("$slice")
    limit = whole(numbers[-1])
    skip = whole(numbers[0]) if len(numbers) == 2 else None
    if skip is not None and limit <= 0:
        raise malformed("$slice with a negative limit")

    def sliced(array: list[Any]) -> list[Any]:
        if skip is None:
            return array[:limit] if limit >= 0 else array[limit:]
        start = skip if skip >= 0 else max(0, len(array) + skip)
        return array[start : start + limit]

    def within(value: Any, rest: list[str]) -> Any:
        if isinstance(value, list):
            return (
                sliced(value)
                if not rest
                else [element if isinstance(element, list) else within(element, rest) for element in value]
            )
        if rest and isinstance(value, dict) and rest[0] in value:
            return {**value, rest[0]: within(value[rest[0]], rest[1:])}
        return value

    return lambda document, projected: within(projected, parts)
