"""Metadata of a library that uses the driver."""

from __future__ import annotations

from typing import NamedTuple

from gmongo._truncated_repr import short

__all__ = ["DriverInfo"]

_DELIMITER = "|"


class _DriverInfoFields(NamedTuple):
    name: str | None
    version: str | None = None
    platform: str | None = None


class DriverInfo(_DriverInfoFields):
    """Name, version and platform of a library that wraps the driver.

    In the handshake of each connection, the driver appends this metadata to its own metadata.

    ::

        MongoClient(driver=DriverInfo("OurMapper", "1.2"))

    Specification: MongoDB Handshake, "Supporting Wrapping Libraries".

    :param name: the name of the library, such as ``"OurMapper"``, or None.
    :param version: the version of the library, or None (the default).
    :param platform: the platform of the library, or None (the default).
    :raises TypeError: a parameter is neither a string nor None.
    :raises ValueError: a parameter contains ``|``. The handshake separates the metadata of several libraries by ``|``.
    """

    __slots__ = ()

    def __new__(cls, name: str | None, version: str | None = None, platform: str | None = None) -> DriverInfo:
        info = super().__new__(cls, name, version, platform)
        for field, value in info._asdict().items():
            if value is not None and not isinstance(value, str):
                raise TypeError(f"DriverInfo {field} must be a string or None, not {short(value)}")
            if value and _DELIMITER in value:
                raise ValueError(f"DriverInfo {field} must not contain {_DELIMITER!r}, was {short(value)}")
        return info
