"""Write concern: the acknowledgement that a write waits for."""

from __future__ import annotations

from gmongo._documents import DocumentDict
from gmongo._truncated_repr import short
from gmongo.errors import ConfigurationError

__all__ = ["DEFAULT_WRITE_CONCERN", "WriteConcern"]


class WriteConcern:
    """Acknowledgement that each write waits for.

    ::

        orders.with_options(write_concern=WriteConcern("majority", wtimeout=5000))

    Specification: Read and Write Concern, "Write Concern".

    :param w: the number of members that must acknowledge a write (0 for none), ``"majority"``, or a
        name in the replica set configuration. None (the default) uses the server's default.
    :param wtimeout: the server's time limit in milliseconds; 0 and None (the default) mean no
        limit. After the time limit, the write remains in effect, and an operation that is no bulk
        write raises :class:`~gmongo.errors.WTimeoutError`.
    :param j: True requires the write in the journal. None (the default) uses the server's default.
    :param fsync: True requires a flush of the server's files. The parameter is deprecated; use `j`. None by default.
    :raises TypeError: a parameter has the wrong type.
    :raises ValueError: `w` or `wtimeout` is negative.
    :raises ConfigurationError: `w` is 0 and `j` is True, or `j` and `fsync` are both True.
    """

    __slots__ = ("__acknowledged", "__document")

    def __init__(
        self, w: int | str | None = None, wtimeout: int | None = None, j: bool | None = None, fsync: bool | None = None
    ) -> None:
        if j and fsync:
            raise ConfigurationError("j=True and fsync=True cannot be used together")
        if w == 0 and j:
            raise ConfigurationError("w=0 and j=True contradict each other: w=0 means no acknowledgement")
        fields = {
            "wtimeout": _checked_non_negative("wtimeout", wtimeout, "an integer"),
            "j": _checked_flag("j", j),
            "fsync": _checked_flag("fsync", fsync),
            "w": w if isinstance(w, str) else _checked_non_negative("w", w, "an integer or a string"),
        }
        self.__document = {field: value for field, value in fields.items() if value is not None}
        self.__acknowledged = w != 0

    @property
    def is_server_default(self) -> bool:
        """True if `document` is empty, so that the server's default applies."""
        return not self.__document

    @property
    def document(self) -> DocumentDict:
        """The write concern as a document, such as ``{"w": 1}``, without arguments that are None."""
        return self.__document.copy()

    @property
    def acknowledged(self) -> bool:
        """True unless `w` is 0. The server replies only to acknowledged writes."""
        return self.__acknowledged

    def __eq__(self, other: object) -> bool:
        return self.__document == other.document if isinstance(other, WriteConcern) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields_text = ", ".join(f"{field}={short(value)}" for field, value in self.__document.items())
        return f"WriteConcern({fields_text})"


def _checked_non_negative(name: str, value: object, expected: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int):
        raise TypeError(f"{name} must be {expected}, not {short(value)}")
    if value < 0:
        raise ValueError(f"{name} must be at least 0, not {value}")
    return value


def _checked_flag(name: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise TypeError(f"{name} must be True or False, not {short(value)}")


DEFAULT_WRITE_CONCERN = WriteConcern()
"""The write concern of a client that sets no write concern."""
