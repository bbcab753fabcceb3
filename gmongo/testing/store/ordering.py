"""Compile a sort specification to a function that sorts documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import bad_value, malformed
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.paths import ParallelArrays, leaves_at
from gmongo.testing.store.values import MISSING, Key, is_nan, is_number, key_of
from gmongo.testing.unsupported import not_supported

T = TypeVar("T")
Sort = Callable[[Iterable[T], Callable[[T], Any]], Iterable[T]]
Score = Callable[[Any], float | None]
_MOST_KEYS = 32
_BY_SCORE = 0


_OF_REFERENCES = ("$db", "$id", "$ref")


def compile_sort(order: Any, collation: Collation, pace: Pace | None = None, score: Score | None = None) -> Sort[Any]:
    """Return a stable function that sorts items by their documents."""
    if not isinstance(order, dict):
        raise malformed("a sort")
    directions = {path: _direction(path, spec, score) for path, spec in order.items()}
    if len(directions) > (1 if "$natural" in directions else _MOST_KEYS):
        raise malformed("a sort")
    if "$natural" in directions:
        return lambda items, _document_of: list(items)[:: directions["$natural"]]

    paced, backwards = pace or Pace(), set(directions.values()) == {-1}
    if _BY_SCORE in directions.values():
        if len(directions) > 1 or score is None:
            raise not_supported("a sort by metadata", "and by a field")
        return lambda items, document_of: paced.in_order(items, lambda item: -(score(document_of(item)) or 0.0))
    key = key_by_one(*directions.popitem(), collation) if len(directions) == 1 else _key_by_all(directions, collation)
    return lambda items, document_of: paced.in_order(items, lambda item: key(document_of(item)), backwards)


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


def key_by_one(path: str, direction: int, collation: Collation) -> Callable[[Any], Any]:
    """Return a function that returns the sort key of a document, for a sort by one field."""
    best = min if direction > 0 else max

    def key(document: Any) -> Key:
        found = leaves_at(document, [path])
        return _key(found[0][0], collation) if len(found) == 1 else best(_key(value, collation) for (value,) in found)

    return key


def _key_by_all(directions: Mapping[str, int], collation: Collation) -> Callable[[Any], Any]:
    if len(set(directions.values())) == 1:
        return lambda document: _sort_key(document, directions, collation)
    backwards = [direction < 0 for direction in directions.values()]

    def key(document: Any) -> Any:
        keys = _sort_key(document, directions, collation)
        return tuple(_Descending(key) if back else key for key, back in zip(keys, backwards, strict=True))

    return key


def _sort_key(document: Any, directions: Mapping[str, int], collation: Collation) -> tuple[Key, ...]:
    try:
        found = leaves_at(document, list(directions))
    except ParallelArrays:
        raise bad_value("cannot sort with keys that are parallel arrays") from None
    keys = [tuple(_key(value, collation) for value in values) for values in found]
    for number, direction in enumerate(directions.values()):
        if len(keys) > 1:
            best = (min if direction > 0 else max)(key[number] for key in keys)
            keys = [key for key in keys if key[number] == best]
    return keys[0]


def _key(value: Any, collation: Collation) -> Key:
    if value is MISSING:
        return key_of(None)
    return key_of(value if collation.fold is None else collation.folded(value))


def _direction(path: str, spec: Any, score: Score | None) -> int:
    """Return 1 for ascending order, -1 for descending order, and ``_BY_SCORE`` for the text score."""
    if isinstance(spec, dict):
        if spec != {"$meta": "textScore"} or score is None:
            raise not_supported("a sort by metadata", repr(spec))
        return _BY_SCORE
    parts = path.split(".")
    if path == "$natural":
        return 1 if not is_number(spec) or float(str(spec)) >= 0 else -1
    is_path = all(part and (not part.startswith("$") or part in _OF_REFERENCES) for part in parts)
    if not is_path or not is_number(spec) or is_nan(spec) or int(max(-2, min(2, float(str(spec))))) not in (1, -1):
        raise malformed("a sort")
    return int(float(str(spec)))
