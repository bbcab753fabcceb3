"""The Stable API: a promise of the server that commands keep behaving as they do."""

from __future__ import annotations

from gmongo._short_text import short

__all__ = ["ServerApi", "ServerApiVersion"]


class ServerApiVersion:
    """The versions of the Stable API."""

    V1 = "1"
    """Version 1."""


_VERSIONS = (ServerApiVersion.V1,)


class ServerApi:
    """Asks the server to hold to a version of the Stable API (MongoDB 5.0)::

        MongoClient(server_api=ServerApi("1", strict=True))

    It cannot be changed once made. What is left at None is not sent. ``python -m gmongo.stable_api`` shows what of a
    program is outside of the version.

    Specification: Stable API.

    :param version: a value of :class:`ServerApiVersion`.
    :param strict: whether the server refuses commands that are not part of the version; None is its default, which is
        False.
    :param deprecation_errors: whether the server refuses what is deprecated in the version; None is its default, which
        is False.
    :raises ValueError: there is no such version.
    :raises TypeError: a flag is neither True, False nor None.
    """

    __slots__ = ("_deprecation_errors", "_strict", "_version")

    def __init__(self, version: str, strict: bool | None = None, deprecation_errors: bool | None = None) -> None:
        if version not in _VERSIONS:
            raise ValueError(f"ServerApi version must be one of {', '.join(_VERSIONS)}, was {short(version)}")
        self._version = version
        self._strict = _checked_flag("strict", strict)
        self._deprecation_errors = _checked_flag("deprecation_errors", deprecation_errors)

    @property
    def version(self) -> str:
        """The version of the Stable API."""
        return self._version

    @property
    def strict(self) -> bool | None:
        """Whether the server refuses commands outside the version; None leaves it to the server."""
        return self._strict

    @property
    def deprecation_errors(self) -> bool | None:
        """Whether the server refuses what is deprecated; None leaves it to the server."""
        return self._deprecation_errors

    def __repr__(self) -> str:
        return f"ServerApi({self._version!r}, strict={self._strict}, deprecation_errors={self._deprecation_errors})"


def _checked_flag(name: str, value: bool | None) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"ServerApi {name} must be True, False or None, not {short(value)}")
    return value
