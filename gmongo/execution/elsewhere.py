"""What there is in an executor's place where operations do not run here."""

from __future__ import annotations

from typing import NoReturn

from gmongo.errors import InvalidOperation


class Elsewhere:
    """The executor of databases and collections whose client is another library's, as Ming's and mongomock's are.

    Such libraries keep documents in memory. They derive classes from PyMongo's, override what they can do, and leave
    the rest, which is refused here.

    :param client: the other library's client, or what has it.
    """

    def __init__(self, client: object) -> None:
        self._kind = type(client)

    def limited(self, timeout: float | None) -> Elsewhere:
        """Itself: no operation runs that `timeout` could end."""
        return self

    def deadline(self) -> None:
        """None: there is no limit."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise InvalidOperation(
            f"gmongo cannot run this operation on {self._kind.__module__}.{self._kind.__qualname__}, which is another "
            "library's class, and the library does not run it either: only a MongoClient of gmongo's sends operations"
        )
