"""Specifications of wildcard indexes: which fields they leave to the wildcard, and which are named beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from gmongo.testing.store.errors import bad_value, failed_to_parse, location
from gmongo.testing.store.values import is_number, is_true

Path = tuple[str, ...]


def is_wildcard(path: str) -> bool:
    """Whether a field of an index stands for several."""
    return path == "$**" or path.endswith(".$**")


def check_keys(keys: Mapping[str, Any]) -> None:
    """Check the fields of a wildcard index.

    :raises CommandError: it has several wildcards, or one that a field beside it is in.
    """
    wild = [path for path in keys if is_wildcard(path)]
    if len(wild) > 1:
        raise location(7246201, "Index Key can contain only one wildcard index field")
    above = _split(wild[0])[:-1]
    for field in _beside(keys):
        if above and _holds(above, field):
            raise location(7246204, f"A wildcard index field should not overlap with an index key field, however "
                           f"'{'.'.join(field)}' is overlapping with the wildcard index field.")  # fmt: skip


def check_projection(projection: Mapping[str, Any], keys: Mapping[str, Any]) -> None:
    """Check the ``wildcardProjection`` of an index.

    :raises CommandError: the index can have none, or not this one.
    """
    if not any(map(is_wildcard, keys)):
        raise bad_value("The field 'wildcardProjection' is only allowed in 'wildcard' indexes")
    if "$**" not in keys:
        raise failed_to_parse("The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}")
    if not projection:
        raise failed_to_parse("The 'wildcardProjection' field can't be an empty object")
    flat = list(_flat(projection, ()))
    for _, wanted in flat:
        if not isinstance(wanted, bool) and not is_number(wanted):
            raise location(51271, "Bad projection specification, cannot use computed fields when parsing a spec")
    included = sorted(path for path, wanted in flat if is_true(wanted))
    excluded = sorted(path for path, wanted in flat if not is_true(wanted))
    if len(keys) > 1:
        _check_compound(included, excluded, _beside(keys))
    elif any(path != ("_id",) for path in included) and any(path != ("_id",) for path in excluded):
        first = next(wanted for path, wanted in flat if path != ("_id",))
        raise location(
            31254 if is_true(first) else 31253, "Cannot do inclusion and exclusion in one wildcardProjection"
        )


def _check_compound(included: list[Path], excluded: list[Path], fields: list[Path]) -> None:
    """Check the projection of an index with fields beside the wildcard, which it must not stand for."""
    if included and excluded:
        if [("_id",)] not in (included, excluded):
            raise location(7246211, "Inclusion and exclusion statements cannot combine in the wildcardProjection with "
                           "an exception of explicitly including _id field")  # fmt: skip
        included, excluded = ([], excluded) if included == [("_id",)] else (included, [])
    for paths in (included, excluded):
        for first, second in pairwise(paths):
            if _holds(first, second):
                raise location(7246200, f"Fields in Wildcard Projection cannot overlap, however '{'.'.join(first)}' is "
                               f"overlapped with '{'.'.join(second)}'")  # fmt: skip
    for field in fields:
        if any(_holds(path, field) for path in included):
            raise location(7246208, "Index Key and Wildcard Projection cannot contain overlapping fields, however "
                           f"'{'.'.join(field)}' is in both")  # fmt: skip
    if excluded:
        _check_excluded(excluded, fields)


def _check_excluded(excluded: Sequence[Path], fields: Sequence[Path]) -> None:
    for field in fields:
        if any(_holds(path, field) for path in excluded):
            continue
        # A server walks through both in their order, and has another code for a field after the last path.
        code = 7246209 if any(path > field for path in excluded) else 7246210
        raise location(code, "wildcardProjection paths must exclude all regular index fields, however "
                       f"'{'.'.join(field)}' is not excluded.")  # fmt: skip


def _flat(projection: Mapping[str, Any], above: Path) -> list[tuple[Path, Any]]:
    found: list[tuple[Path, Any]] = []
    for name, wanted in projection.items():
        path = (*above, *_split(name))
        is_inner = isinstance(wanted, dict) and wanted and not next(iter(wanted)).startswith("$")
        found += _flat(wanted, path) if is_inner else [(path, wanted)]
    return found


def _beside(keys: Mapping[str, Any]) -> list[Path]:
    """The fields beside the wildcard, in the order of their names."""
    return sorted(_split(path) for path in keys if not is_wildcard(path))


def _split(path: str) -> Path:
    return tuple(path.split("."))


def _holds(path: Path, other: Path) -> bool:
    return other[: len(path)] == path
