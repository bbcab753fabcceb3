"""Stable API: versions of the server's commands with guaranteed behaviour."""

from __future__ import annotations

from gmongo._truncated_repr import short

__all__ = ["ServerApi", "ServerApiVersion"]


class ServerApiVersion:
    """The versions of the Stable API."""

    V1 = "1"
    """Version 1 of the Stable API."""


_VERSIONS = (ServerApiVersion.V1,)


class ServerApi:
    """Declaration that a client uses a version of the Stable API (MongoDB 5.0).

    ::

        MongoClient(server_api=ServerApi("1", strict=True))

    The object is immutable. The driver does not send a flag that is None. ``python -m gmongo.stable_api`` shows the
    features of a program that do not belong to the version.

    Specification: Stable API.

    :param version: the version: a value of :class:`ServerApiVersion`.
    :param strict: True lets the server reject commands outside the version; None (the default) means False.
    :param deprecation_errors: True lets the server reject deprecated features; None (the default) means False.
    :raises ValueError: `version` does not exist.
    :raises TypeError: `strict` or `deprecation_errors` is neither True, False nor None.
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
        """True if the server rejects commands that do not belong to the version. None uses the server's default."""
        return self._strict

    @property
    def deprecation_errors(self) -> bool | None:
        """True if the server rejects deprecated features of the version. None uses the server's default."""
        return self._deprecation_errors

    def __repr__(self) -> str:
        return f"ServerApi({self._version!r}, strict={self._strict}, deprecation_errors={self._deprecation_errors})"


def _checked_flag(name: str, value: bool | None) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"ServerApi {name} must be True, False or None, not {short(value)}")
    return value
