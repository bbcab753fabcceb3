"""Compile a sort specification to a function that sorts documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import bad_value, malformed
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.paths import ParallelArrays, find_leaves
from gmongo.testing.store.values import DBREF_FIELDS, MISSING, Key, is_nan, is_number, make_key
from gmongo.testing.unsupported import not_supported

T = TypeVar("T")
Sort = Callable[[Iterable[T], Callable[[T], Any]], Iterable[T]]
Score = Callable[[Any], float | None]
_MAX_KEYS = 32
_SCORE_DIRECTION = 0


def compile_sort(order: Any, collation: Collation, pace: Pace | None = None, score: Score | None = None) -> Sort[Any]:
    """Return a function that sorts items by their documents. The sort is stable."""
    if not isinstance(order, dict):
        raise malformed("a sort")
    directions = {path: _parse_direction(path, spec, score) for path, spec in order.items()}
    if len(directions) > (1 if "$natural" in directions else _MAX_KEYS):
        raise malformed("a sort")
    if "$natural" in directions:
        return lambda items, _document_of: list(items)[:: directions["$natural"]]

    sort_pace, is_descending = pace or Pace(), set(directions.values()) == {-1}
    if _SCORE_DIRECTION in directions.values():
        if len(directions) > 1 or score is None:
            raise not_supported("a sort by metadata", "and by a field")
        return lambda items, document_of: sort_pace.sort(items, lambda item: -(score(document_of(item)) or 0.0))
    create_key = (
        create_field_key_function(*directions.popitem(), collation)
        if len(directions) == 1
        else _create_fields_key_function(directions, collation)
    )
    return lambda items, document_of: sort_pace.sort(items, lambda item: create_key(document_of(item)), is_descending)


class _Descending:
    """A sort key that sorts in descending order."""

    __slots__ = ("_key",)

    def __init__(self, key: Key) -> None:
        self._key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self._key == other._key

    def __lt__(self, other: _Descending) -> bool:
        return other._key < self._key

    __hash__ = None  # type: ignore[assignment]


def create_field_key_function(path: str, direction: int, collation: Collation) -> Callable[[Any], Any]:
    """Return a function that returns the sort key of a document, for a sort by one field."""
    select_extreme = min if direction > 0 else max

    def create_key(document: Any) -> Key:
        leaves = find_leaves(document, [path])
        if len(leaves) == 1:
            return _create_key(leaves[0][0], collation)
        return select_extreme(_create_key(value, collation) for (value,) in leaves)

    return create_key


def _create_fields_key_function(directions: Mapping[str, int], collation: Collation) -> Callable[[Any], Any]:
    if len(set(directions.values())) == 1:
        return lambda document: _create_sort_key(document, directions, collation)
    are_descending = [direction < 0 for direction in directions.values()]

    def create_key(document: Any) -> Any:
        keys = _create_sort_key(document, directions, collation)
        return tuple(
            _Descending(key) if is_descending else key for key, is_descending in zip(keys, are_descending, strict=True)
        )

    return create_key


def _create_sort_key(document: Any, directions: Mapping[str, int], collation: Collation) -> tuple[Key, ...]:
    try:
        leaves = find_leaves(document, list(directions))
    except ParallelArrays:
        raise bad_value("cannot sort with keys that are parallel arrays") from None
    keys = [tuple(_create_key(value, collation) for value in values) for values in leaves]
    for position, direction in enumerate(directions.values()):
        if len(keys) > 1:
            best_key = (min if direction > 0 else max)(key[position] for key in keys)
            keys = [key for key in keys if key[position] == best_key]
    return keys[0]


def _create_key(value: Any, collation: Collation) -> Key:
    if value is MISSING:
        return make_key(None)
    return make_key(value if collation.fold is None else collation.apply(value))


def _parse_direction(path: str, spec: Any, score: Score | None) -> int:
    """Return 1 for ascending order, -1 for descending order, and ``_SCORE_DIRECTION`` for the text score."""
    if isinstance(spec, dict):
        if spec != {"$meta": "textScore"} or score is None:
            raise not_supported("a sort by metadata", repr(spec))
        return _SCORE_DIRECTION
    parts = path.split(".")
    if path == "$natural":
        return 1 if not is_number(spec) or float(str(spec)) >= 0 else -1
    is_path = all(part and (not part.startswith("$") or part in DBREF_FIELDS) for part in parts)
    if not is_path or not is_number(spec) or is_nan(spec) or int(max(-2, min(2, float(str(spec))))) not in (1, -1):
        raise malformed("a sort")
    return int(float(str(spec)))
