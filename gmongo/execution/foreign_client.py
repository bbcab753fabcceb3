"""Executor of databases and collections whose client belongs to another library."""

from __future__ import annotations

from typing import NoReturn

from gmongo.errors import InvalidOperation


class UnsupportedClient:
    """Executor that rejects every operation that a class of another library inherits from gmongo."""

    def __init__(self, client: object) -> None:
        self._type = type(client)

    def with_timeout(self, timeout: float | None) -> UnsupportedClient:
        return self

    def deadline(self) -> None:
        """Return None, because the executor runs no operation."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InvalidOperation(
            f"gmongo cannot run this operation on {self._type.__module__}.{self._type.__qualname__}, which is another "
            "library's class: only a gmongo MongoClient sends operations"
        )
