"""Projections of ``find``: the projections of ``$project``, and operators that select array elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.environment import Document, with_last, with_value
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.expressions import Scope, Variables, compile_expression
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.operators import is_operators
from gmongo.testing.store.paths import split
from gmongo.testing.store.positions import positional_index
from gmongo.testing.store.projection import compile_project
from gmongo.testing.store.text_search import Score
from gmongo.testing.store.values import MISSING, is_number, whole

Edit = Callable[[Document, Document], Document]
_WITH_ARRAY = 3  # a $slice with this number of arguments is always an expression


def compile_projection(
    spec: Mapping[str, Any] | None, query: Mapping[str, Any], variables: Variables, score: Score | None = None
) -> Callable[[Document], Document]:
    """Return a function that applies the projection of a ``find`` to a document.

    :param query: the filter of the ``find``, which determines the array element of a positional operator.
    """
    if not spec:
        return lambda document: document
    scope = Scope(frozenset(variables), score=score)
    metadata = {name: compile_expression(value, scope) for name, value in spec.items() if _is_metadata(value)}
    spec = dict(_flattened({name: value for name, value in spec.items() if name not in metadata}))
    position = _positional_path(spec)
    if position is not None and ".".join(position) in spec:
        raise malformed(f"a path collision at {'.'.join(position)}")
    special = {name: value for name, value in spec.items() if _is_array_operator(value)}
    including = _is_including(spec, special)
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
            projected = with_value(projected, split(name), expression({**variables, "ROOT": document}))
        return projected

    return project


def _is_including(spec: Mapping[str, Any], special: Mapping[str, Any]) -> bool:
    """Return True if the projection includes fields, and False if the projection excludes fields.

    The first field except ``_id`` and array operators determines the result.
    """
    others = {name: value for name, value in spec.items() if name not in special and name != "_id"}
    if others:
        return _is_inclusion(value := next(iter(others.values()))) or not (isinstance(value, bool) or is_number(value))
    sliced = any("$slice" in value for value in special.values())
    return _is_inclusion(spec.get("_id")) or (bool(special) and not sliced)


def _flattened(spec: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths and values of a projection. The path of an array operator in a nested document is complete."""
    for name, value in spec.items():
        if isinstance(value, dict) and not is_operators(value) and any(map(_has_array_operator, value.values())):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _has_array_operator(value: Any) -> bool:
    return isinstance(value, dict) and (_is_array_operator(value) or any(map(_has_array_operator, value.values())))


def _positional_path(spec: Mapping[str, Any]) -> list[str] | None:
    found = [name for name in spec if name.endswith(".$")]
    if not found:
        return None
    operators = [value for value in spec.values() if isinstance(value, dict)]
    if len(found) > 1 or not _is_inclusion(spec[found[0]]) or any("$elemMatch" in value for value in operators):
        raise malformed(f"the positional projection {found[0]}")
    return split(found[0][:-2])


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
    return _slice(split(name), value["$slice"])


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
            if index is None or index >= len(array):
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
