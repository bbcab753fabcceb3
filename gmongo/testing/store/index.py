"""An index of a collection: sorted entries that refer to records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.matching import Match, compile_filter
from gmongo.testing.store.optional_deps import SortedDict
from gmongo.testing.store.paths import ParallelArrays, find_leaves, find_values
from gmongo.testing.store.values import MISSING, Key, is_number, make_key
from gmongo.testing.unsupported import not_supported

Document = dict[str, Any]
# A pair of an index entry (a sort key) and the values of the indexed fields.
EntryAndValues = tuple[Key, tuple[Any, ...]]
# A key that sorts after the keys of all values.
HIGHEST_KEY = (1000,)
_BATCH_SIZE = 512  # the number of entries that `find_between` reads in one step


@dataclass
class Index:
    """An index of a collection. An index with a text, hashed or geospatial field has no entries."""

    name: str  # the name of the index
    keys: Mapping[str, Any]  # the directions or kinds of the indexed fields by path, such as `1` or `"text"`
    # The other fields of the index specification, such as `unique`.
    options: Mapping[str, Any] = field(default_factory=dict)
    tree: Any = field(default_factory=SortedDict)  # the keys of records by entry
    is_multikey: bool = False  # True if a document has had several entries since the index's creation

    @property
    def unique(self) -> bool:
        return self.is_id_index or bool(self.options.get("unique") or self.options.get("prepareUnique"))

    @property
    def is_id_index(self) -> bool:
        """True if the index is the ``_id`` index, which every collection has."""
        return self.name == "_id_"

    @property
    def needs_duplicate_check(self) -> bool:
        """True if writes must check the index for duplicates. The ``_id`` index needs no check."""
        return self.unique and not self.is_id_index

    @cached_property
    def is_ordered(self) -> bool:
        """True if all fields of the index are ascending or descending."""
        return all(is_number(direction) for direction in self.keys.values())

    @cached_property
    def collation(self) -> Collation:
        return Collation.from_spec(self.options.get("collation"))

    @cached_property
    def _partial_filter(self) -> Match | None:
        condition = self.options.get("partialFilterExpression")
        return None if condition is None else compile_filter(condition, collation=self.collation)

    @cached_property
    def _kinds(self) -> dict[str, Any]:
        return {path: kind for path, kind in self.keys.items() if not is_number(kind)}

    @cached_property
    def _paths(self) -> list[str]:
        return list(self.keys)

    def describe(self) -> Document:
        return {"v": 2, "key": dict(self.keys), "name": self.name, **self.options}

    def entries(self, document: Document) -> list[EntryAndValues]:
        if self._partial_filter is not None and not self._partial_filter(document):
            return []
        if not self.is_ordered:
            self._check_kinds(document)
            return []
        try:
            leaves = find_leaves(document, self._paths)
        except ParallelArrays:
            raise error(171, f"cannot index parallel arrays {self._paths}") from None
        if self.options.get("sparse") and all(value is MISSING for values in leaves for value in values):
            return []
        return [(tuple(map(self._key, values)), values) for values in leaves]

    def _check_kinds(self, document: Document) -> None:
        """Check a document for an index with text, hashed or geospatial fields."""
        if "text" in self._kinds.values() and _has_language_field(document):
            raise not_supported("a text search beyond plain English words", "field language")
        for path, kind in self._kinds.items():
            if kind == "hashed":
                self._check_no_array(document)
            elif kind in ("2d", "2dsphere") and any(
                value is not None and value is not MISSING for value in find_values(document, path.split("."))
            ):
                raise not_supported("a document in a geospatial index", self.name)

    def _check_no_array(self, document: Document) -> None:
        for path in self._paths:
            value: Any = document
            for part in path.split("."):
                value = value.get(part) if isinstance(value, dict) else None
                if isinstance(value, list):
                    raise error(16766, f"Error: hashed indexes do not currently support array values: {path}")

    def _key(self, value: Any) -> Key:
        return make_key(None if value is MISSING else self.collation.apply(value))

    def contains(self, document: Document) -> bool:
        """Return True if the index contains the document. A sparse or partial index omits some documents."""
        is_partial = self.options.get("sparse") or "partialFilterExpression" in self.options
        return not is_partial or not self.is_ordered or bool(self.entries(document))

    def add(self, key: Key, document: Document) -> None:
        entries = self.entries(document)
        self.is_multikey = self.is_multikey or len(entries) > 1
        for entry, _ in entries:
            self.tree.setdefault(entry, {})[key] = None

    def discard(self, key: Key, document: Document) -> None:
        for entry, _ in self.entries(document):
            keys = self.tree.get(entry)
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del self.tree[entry]

    def find_record_keys(self, entry: Key) -> Iterable[Key]:
        keys: Iterable[Key] = self.tree.get(entry, ())
        return keys

    def find_between(self, prefix: Key, low: Key = (), high: Key = (HIGHEST_KEY,)) -> Iterator[Key]:
        """Yield the keys of the records in a range of entries. The index may change during the iteration."""
        if len(prefix) == len(self.keys):
            yield from list(self.find_record_keys(prefix))
            return
        lowest, end, is_inclusive = (*prefix, *low), (*prefix, *high), True
        while entries := list(islice(self.tree.irange(lowest, end, (is_inclusive, False)), _BATCH_SIZE)):
            for entry in entries:
                yield from list(self.find_record_keys(entry))
            lowest, is_inclusive = entries[-1], False


def _has_language_field(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict) and "language" in value) or any(map(_has_language_field, parts))


def create_id_index(collation: Collation) -> Index:
    """Return the ``_id`` index of a collection."""
    document = collation.describe()
    return Index("_id_", {"_id": 1}, {"collation": document} if document else {})
