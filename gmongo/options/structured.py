"""Validators of structured values: write concerns, tags, authentication properties, compressors, codec options.

:mod:`gmongo.options.validators` describes the arguments, results and exceptions of validators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote_plus

from bson.binary import UuidRepresentation
from bson.codec_options import DatetimeConversion

from gmongo._documents import DocumentDict
from gmongo.options.notices import notice
from gmongo.options.validators import INT32_MAX, Rejected, integer

COMPRESSORS = ("snappy", "zlib", "zstd")
MECHANISMS = (
    "DEFAULT",
    "GSSAPI",
    "MONGODB-AWS",
    "MONGODB-OIDC",
    "MONGODB-X509",
    "PLAIN",
    "SCRAM-SHA-1",
    "SCRAM-SHA-256",
)
READ_PREFERENCE_MODES = ("primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest")
STRING_PROPERTIES = (
    "AWS_SESSION_TOKEN",
    "CANONICALIZE_HOST_NAME",
    "ENVIRONMENT",
    "SERVICE_HOST",
    "SERVICE_NAME",
    "SERVICE_REALM",
    "TOKEN_RESOURCE",
)
# Properties whose values `repr` may show. Other properties may contain secrets.
SHOWN_PROPERTIES = frozenset(STRING_PROPERTIES) - {"AWS_SESSION_TOKEN"}
OBJECT_PROPERTIES = ("ALLOWED_HOSTS", "OIDC_CALLBACK", "OIDC_HUMAN_CALLBACK")
RESERVED_TOP_LEVEL_NAMES = frozenset(
    ("corp", "example", "home", "internal", "invalid", "local", "localhost", "mail", "test")
)

_UUID_REPRESENTATIONS = {
    "unspecified": UuidRepresentation.UNSPECIFIED,
    "standard": UuidRepresentation.STANDARD,
    "pythonLegacy": UuidRepresentation.PYTHON_LEGACY,
    "javaLegacy": UuidRepresentation.JAVA_LEGACY,
    "csharpLegacy": UuidRepresentation.CSHARP_LEGACY,
}
_DATETIME_CONVERSIONS = {conversion.name: conversion for conversion in DatetimeConversion}


def write_acknowledgement(value: object) -> int | str:
    """Check the option ``w``: a number of members, or the name of a mode such as ``majority``."""
    if isinstance(value, str) and not value.removeprefix("-").isdecimal():
        return value
    try:
        number: int = integer(0)(value)
    except Rejected as refusal:
        rule = f"an integer from 0 to {INT32_MAX}, or the name of a mode"
        raise Rejected(rule, refusal.wrong_type) from None
    return number


def tag_sets(value: object) -> list[dict[str, str]]:
    """Convert a tag set such as ``dc:ny,rack:1``, or a list of tag sets. An empty string becomes an empty tag set.

    Commas in names and values, and colons in names, must be percent-encoded.
    """
    entries = value if isinstance(value, (list, tuple)) else [value]
    return [_parse_tag_set(entry) for entry in entries]


def mechanism_properties(value: object) -> DocumentDict:
    """Convert the properties of an authentication mechanism: a string ``NAME:value,NAME:value``, or a mapping.

    Only a mapping may contain callbacks and ``ALLOWED_HOSTS``. Names are case-insensitive. The names
    in the result are in upper case.
    """
    if isinstance(value, str):
        properties: DocumentDict = dict(_split_pairs(value, "comma-separated NAME:value pairs"))
        allowed_names: tuple[str, ...] = STRING_PROPERTIES
    elif isinstance(value, Mapping):
        properties, allowed_names = dict(value), STRING_PROPERTIES + OBJECT_PROPERTIES
    else:
        raise Rejected("NAME:value pairs or a mapping", wrong_type=True)
    properties = {str(name).upper(): value for name, value in properties.items()}
    unknown_name = next((name for name in properties if name not in allowed_names), None)
    if unknown_name is not None:
        raise Rejected(f"made only of the properties {', '.join(allowed_names)}")
    return properties


def compressors(value: object) -> list[str]:
    """Convert a list or string of compressor names, in the order of preference. Omit unknown names with a warning."""
    if isinstance(value, str):
        names = value.split(",")
    elif isinstance(value, Iterable):
        names = list(value)
    else:
        raise Rejected("a list of compressors, or their comma-separated names", wrong_type=True)
    known = [name for name in names if name in COMPRESSORS]
    if len(known) < len(names):
        notice(f"compressors must be some of {', '.join(COMPRESSORS)}; ignored names: {len(names) - len(known)}")
    return known


def uuid_representation(value: object) -> int:
    """Convert a UUID representation's name to the number of ``bson.binary.UuidRepresentation``."""
    if not isinstance(value, str) or value not in _UUID_REPRESENTATIONS:
        raise Rejected(f"one of {', '.join(_UUID_REPRESENTATIONS)}")
    return _UUID_REPRESENTATIONS[value]


def datetime_conversion(value: object) -> DatetimeConversion:
    """Convert a :class:`bson.codec_options.DatetimeConversion`, its name or its number. None means ``DATETIME``."""
    if value is None:
        return DatetimeConversion.DATETIME
    if isinstance(value, str) and value in _DATETIME_CONVERSIONS:
        return _DATETIME_CONVERSIONS[value]
    try:
        return DatetimeConversion(integer(0)(value))
    except (ValueError, Rejected):
        rule = f"one of {', '.join(_DATETIME_CONVERSIONS)}"
        raise Rejected(rule, wrong_type=not isinstance(value, (int, str))) from None


def allowed_hosts_suffix(value: object) -> str:
    """Convert the option ``srvAllowedHostsSuffix`` to lower case without a dot at the start or end.

    A single label must be in `RESERVED_TOP_LEVEL_NAMES`. Public suffixes like ``co.uk`` are accepted.
    """
    if not isinstance(value, str):
        raise Rejected("a domain name", wrong_type=True)
    suffix = value.lower().removeprefix(".").removesuffix(".")
    labels = suffix.split(".")
    if not all(labels) or any(character.isspace() for character in suffix):
        raise Rejected("a domain name")
    if len(labels) < 2 and suffix not in RESERVED_TOP_LEVEL_NAMES:
        raise Rejected("a domain name of at least two labels")
    return suffix


def _parse_tag_set(entry: object) -> dict[str, str]:
    if isinstance(entry, Mapping):
        return dict(entry)
    if not isinstance(entry, str):
        raise Rejected("tag sets such as 'dc:ny,rack:1'")
    pairs = _split_pairs(entry, "tag sets such as 'dc:ny,rack:1'") if entry else []
    return {unquote_plus(name): unquote_plus(value) for name, value in pairs}


def _split_pairs(text: str, rule: str) -> list[tuple[str, str]]:
    pairs = [entry.partition(":") for entry in text.split(",")]
    if any(not name or not colon for name, colon, _ in pairs):
        raise Rejected(rule)
    return [(name, value) for name, _, value in pairs]
