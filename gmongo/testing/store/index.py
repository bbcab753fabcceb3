"""An index: the entries of a collection's documents, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from gmongo.testing.command import CommandError
from gmongo.testing.store.collation import Collation
from gmongo.testing.store.errors import location
from gmongo.testing.store.matching import Match, compile_filter
from gmongo.testing.store.optional_deps import SortedDict
from gmongo.testing.store.paths import ParallelArrays, leaves_at, value_at
from gmongo.testing.store.values import MISSING, Key, is_number, key_of
from gmongo.testing.unsupported import not_supported

Document = dict[str, Any]
# An entry's key, and the values that it is made of.
Entry = tuple[Key, tuple[Any, ...]]
# Above the key of every value.
TOP = (1000,)
_PIECE = 512


@dataclass
class Index:
    """An index. Those of ascending and descending fields have entries; those of other kinds are known by name only.

    :param keys: the fields, with their directions or kinds.
    :param options: all other fields of its description, such as ``unique``.
    :ivar multikey: whether a document has, or has had, several entries.
    """

    name: str
    keys: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    tree: Any = field(default_factory=SortedDict)
    multikey: bool = False

    @property
    def unique(self) -> bool:
        """Whether no two documents may have the same values."""
        return self.is_identity or bool(self.options.get("unique") or self.options.get("prepareUnique"))

    @property
    def is_identity(self) -> bool:
        """Whether it is the index of ``_id`` that every collection has."""
        return self.name == "_id_"

    @property
    def guards(self) -> bool:
        """Whether its entries show duplicates; those of ``_id`` show in the keys of the records."""
        return self.unique and not self.is_identity

    @cached_property
    def is_ordered(self) -> bool:
        """Whether it has entries."""
        return all(is_number(direction) for direction in self.keys.values())

    @cached_property
    def collation(self) -> Collation:
        """How it compares strings."""
        return Collation.of(self.options.get("collation"))

    @cached_property
    def _partial(self) -> Match | None:
        condition = self.options.get("partialFilterExpression")
        return None if condition is None else compile_filter(condition, collation=self.collation)

    @cached_property
    def _kinds(self) -> dict[str, Any]:
        return {path: kind for path, kind in self.keys.items() if not is_number(kind)}

    @cached_property
    def _paths(self) -> list[str]:
        return list(self.keys)

    def description(self) -> Document:
        """As ``listIndexes`` shows it."""
        return {"v": 2, "key": dict(self.keys), "name": self.name, **self.options}

    def entries(self, document: Document) -> list[Entry]:
        """The document's entries.

        :raises CommandError: 171, two of the fields are in different arrays; 16766, the index is hashed and one is in
            an array.
        """
        if self._partial is not None and not self._partial(document):
            return []
        if not self.is_ordered:
            self._check_kinds(document)
            return []
        try:
            found = leaves_at(document, self._paths)
        except ParallelArrays:
            raise CommandError(
                171, "CannotIndexParallelArrays", f"cannot index parallel arrays {self._paths}"
            ) from None
        if self.options.get("sparse") and all(value is MISSING for values in found for value in values):
            return []
        return [(tuple(map(self._key, values)), values) for values in found]

    def _check_kinds(self, document: Document) -> None:
        """Check what the fields of other kinds than ascending and descending take."""
        if "text" in self._kinds.values() and _has_language(document):
            raise not_supported("a text search beyond English words", "field language")
        for path, kind in self._kinds.items():
            if kind == "hashed":
                self._check_no_array(document)
            elif kind in ("2d", "2dsphere") and value_at(document, path) not in (None, MISSING):
                raise not_supported("a document in a geospatial index", self.name)

    def _check_no_array(self, document: Document) -> None:
        for path in self._paths:
            value: Any = document
            for part in path.split("."):
                value = value.get(part) if isinstance(value, dict) else None
                if isinstance(value, list):
                    raise location(16766, f"Error: hashed indexes do not currently support array values: {path}")

    def _key(self, value: Any) -> Key:
        return key_of(None if value is MISSING else self.collation.folded(value))

    def holds(self, document: Document) -> bool:
        """Whether the document is one of those that the index knows."""
        sparse = "sparse" in self.options or "partialFilterExpression" in self.options
        return not sparse or not self.is_ordered or bool(self.entries(document))

    def add(self, key: Key, document: Document) -> None:
        """Enter a document under the key of its record."""
        entries = self.entries(document)
        self.multikey = self.multikey or len(entries) > 1
        for entry, _ in entries:
            self.tree.setdefault(entry, {})[key] = None

    def discard(self, key: Key, document: Document) -> None:
        """Remove a document's entries."""
        for entry, _ in self.entries(document):
            holders = self.tree.get(entry)
            if holders is not None:
                holders.pop(key, None)
                if not holders:
                    del self.tree[entry]

    def forget_one(self) -> bool:
        """Let go of the last entry; False if there is none."""
        if self.tree:
            self.tree.popitem()
            return True
        return False

    def holders(self, entry: Key) -> Iterable[Key]:
        """The records with an entry."""
        found: Iterable[Key] = self.tree.get(entry, ())
        return found

    def between(self, prefix: Key, low: Key = (), high: Key = (TOP,)) -> Iterator[Key]:
        """The records whose entries begin with the prefix, followed by what is at least `low`, and below `high`.

        The index may change between two of them.
        """
        if len(prefix) == len(self.keys):
            yield from list(self.holders(prefix))
            return
        first, last, included = (*prefix, *low), (*prefix, *high), True
        while entries := list(islice(self.tree.irange(first, last, (included, False)), _PIECE)):
            for entry in entries:
                yield from list(self.holders(entry))
            first, included = entries[-1], False


def _has_language(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict) and "language" in value) or any(map(_has_language, parts))


def identity_index(collation: Collation) -> Index:
    """The index that every collection has."""
    shown = collation.description()
    return Index("_id_", {"_id": 1}, {"collation": shown} if shown else {})
