"""Scanning a collection: what plainly has another value is passed over, without a call for each record."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bson.int64 import Int64
from bson.objectid import ObjectId

from gmongo.testing.store.collation import BINARY, Collation
from gmongo.testing.store.data import Record
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import Key

# A value of these types matches a plain one only if Python calls the two equal.
_WANTED = frozenset({str, int, Int64, ObjectId})
# One that is not plain, such as an array or a decimal number, has to be looked at.
_PLAIN = _WANTED | {bool, float, dict, type(None), datetime.datetime}
_AT_ONCE = 512


def scanned(records: Mapping[Key, Record], query: Any, collation: Collation, pace: Pace) -> Iterable[Key]:
    """The keys of all records that the query may select, in natural order."""
    keys = list(records)
    for field, wanted in query.items():
        is_path = field.startswith("$") or "." in field
        if not is_path and wanted.__class__ in _WANTED and (collation == BINARY or wanted.__class__ is not str):
            return _not_passed_over(records, keys, field, wanted, pace)
    return keys


def _not_passed_over(
    records: Mapping[Key, Record], keys: list[Key], field: str, wanted: Any, pace: Pace
) -> Iterator[Key]:
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        yield from [
            key
            for key, record in zip(some, map(records.get, some), strict=True)
            if record is not None and ((value := record[1].get(field)) == wanted or value.__class__ not in _PLAIN)
        ]
        pace.breathe()
