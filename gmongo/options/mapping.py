"""Case-insensitive mapping of options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from gmongo._documents import Document, DocumentDict
from gmongo.options.table import SECRET


class Options(MutableMapping[str, Any]):
    """Mapping of options with case-insensitive names. Iteration yields lower-case names, and `repr` hides secrets."""

    __slots__ = ("_items",)

    def __init__(self, items: Document | Iterable[tuple[str, Any]] = ()) -> None:
        self._items: DocumentDict = {}
        self.update(items)

    def __getitem__(self, name: str) -> Any:
        return self._items[name.lower()]

    def __setitem__(self, name: str, value: object) -> None:
        self._items[name.lower()] = value

    def __delitem__(self, name: str) -> None:
        del self._items[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return self._items == {name.lower(): value for name, value in other.items()}
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr({name: "<hidden>" if name in SECRET else value for name, value in self._items.items()})

    def copy(self) -> Options:
        """Return a shallow copy."""
        return Options(self._items)
