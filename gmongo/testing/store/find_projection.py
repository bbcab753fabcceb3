"""A find's projection: that of ``$project``, and the operators that choose elements of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions import Scope, Variables
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.paths import split
from gmongo.testing.store.positions import matched_index
from gmongo.testing.store.projection import compile_project
from gmongo.testing.store.surroundings import Document, with_value
from gmongo.testing.store.values import MISSING, is_number, whole

Edit = Callable[[Document, Document], Document]


def compile_projection(
    spec: Mapping[str, Any] | None, query: Mapping[str, Any], variables: Variables
) -> Callable[[Document], Document]:
    """The function that a find projects its documents with.

    :raises CommandError: if fields are both included and excluded, or an operator is not supported.
    """
    if not spec:
        return lambda document: document
    for name in spec:
        if ".$." in name:
            raise location(31394, f"The positional operator of a projection must be at the end of the path: {name}")
    plain = {name: value for name, value in spec.items() if not _is_array_operator(name, value)}
    special = {name: value for name, value in spec.items() if name not in plain}
    if any(name.endswith(".$") or "$elemMatch" in value for name, value in special.items()) or any(
        map(_is_inclusion, spec.values())
    ):
        plain.update((name[:-2] if name.endswith(".$") else name, 1) for name in special)
    chosen = compile_project(plain, Scope(frozenset(variables))) if plain else None
    edits = [_array_operator(name, value, query, variables) for name, value in special.items()]

    def project(document: Document) -> Document:
        projected = document if chosen is None else chosen(document, variables)
        for edit in edits:
            projected = edit(document, projected)
        return projected

    return project


def _is_inclusion(value: Any) -> bool:
    return (isinstance(value, bool) or is_number(value)) and bool(value)


def _is_array_operator(name: str, value: Any) -> bool:
    if isinstance(value, dict) and "$meta" in value:
        raise not_supported("$meta in a projection")
    by_value = isinstance(value, dict) and (
        "$elemMatch" in value or ("$slice" in value and not _is_slice_expression(value["$slice"]))
    )
    return name.endswith(".$") or by_value


def _is_slice_expression(operand: Any) -> bool:
    return isinstance(operand, list) and not all(is_number(part) for part in operand)


def _array_operator(name: str, value: Any, query: Mapping[str, Any], variables: Variables) -> Edit:
    if name.endswith(".$"):
        return _positional(name[:-2], query, variables)
    if "$elemMatch" in value:
        if "." in name:
            raise location(31275, "Cannot use $elemMatch projection on a nested field")
        return _first_element(name, value["$elemMatch"], variables)
    return _slice(split(name), value["$slice"])


def _first_element(name: str, query: Any, variables: Variables) -> Edit:
    match = compile_filter({"v": {"$elemMatch": query}}, variables)

    def edit(document: Document, projected: Document) -> Document:
        array = document.get(name)
        elements = [one for one in array if match({"v": [one]})] if isinstance(array, list) else []
        return with_value(projected, [name], elements[:1] or MISSING)

    return edit


def _positional(name: str, query: Mapping[str, Any], variables: Variables) -> Edit:
    parts = split(name)

    def edit(document: Document, projected: Document) -> Document:
        array: Any = document
        for part in parts:
            if isinstance(array, list):
                raise not_supported(f"the positional projection {name!r} through several arrays")
            array = array.get(part) if isinstance(array, dict) else None
        if not isinstance(array, list):
            return projected
        index = matched_index(document, parts, query, variables)
        if index is None:
            raise location(51246, "Executor error during find command: positional operator '.$' couldn't find a "
                           "matching element in the array")  # fmt: skip
        return with_value(projected, parts, [array[index]])

    return edit


def _slice(parts: list[str], operand: Any) -> Edit:
    numbers = operand if isinstance(operand, list) else [operand]
    if (
        not 1 <= len(numbers) <= 2
        or not all(map(is_number, numbers))
        or (len(numbers) == 1) == isinstance(operand, list)
    ):
        raise location(28667, "Invalid $slice syntax: it takes a number, or an array of two numbers")
    limit = whole(numbers[-1])
    skip = whole(numbers[0]) if len(numbers) == 2 else None
    if skip is not None and limit <= 0:
        raise location(28724, "First argument to $slice projection: limit must be positive")

    def sliced(array: list[Any]) -> list[Any]:
        if skip is None:
            return array[:limit] if limit >= 0 else array[limit:]
        start = skip if skip >= 0 else max(0, len(array) + skip)
        return array[start : start + limit]

    def within(value: Any, rest: list[str]) -> Any:
        if isinstance(value, list):
            return sliced(value) if not rest else [within(element, rest) for element in value]
        if rest and isinstance(value, dict) and rest[0] in value:
            return {**value, rest[0]: within(value[rest[0]], rest[1:])}
        return value

    return lambda document, projected: within(projected, parts)
