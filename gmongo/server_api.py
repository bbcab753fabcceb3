"""Stable API: versioned sets of server commands with guaranteed behaviour."""

from __future__ import annotations

from dataclasses import dataclass

from gmongo._truncated_repr import short

__all__ = ["ServerApi", "ServerApiVersion"]


class ServerApiVersion:
    """The versions of the Stable API."""

    V1 = "1"
    """Version 1 of the Stable API."""


_VERSIONS = (ServerApiVersion.V1,)


@dataclass(frozen=True, eq=False, slots=True)
class ServerApi:
    """Declaration that a client uses a version of the Stable API (MongoDB 5.0).

    ::

        MongoClient(server_api=ServerApi("1", strict=True))

    The object is immutable. The driver does not send a flag that is None. Specification: Stable API.
    ``python -m gmongo.stable_api`` lists the features of a program that are outside of version 1.

    :param version: the version: a value of :class:`ServerApiVersion`.
    :param strict: True lets the server reject commands that do not belong to the version; None (the
        default) means False.
    :param deprecation_errors: True lets the server reject deprecated features; None (the default) means False.
    :raises ValueError: `version` does not exist.
    :raises TypeError: `strict` or `deprecation_errors` is neither True, False nor None.
    """

    version: str
    strict: bool | None = None
    deprecation_errors: bool | None = None

    def __post_init__(self) -> None:
        if self.version not in _VERSIONS:
            raise ValueError(f"ServerApi version must be one of {', '.join(_VERSIONS)}, was {short(self.version)}")
        for name in ("strict", "deprecation_errors"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"ServerApi {name} must be True, False or None, not {short(value)}")
