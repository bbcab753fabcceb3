"""Check commands against a table of their fields, which was recorded from a server."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bson

from gmongo.testing.command import CommandError, Request, error
from gmongo.testing.store.errors import malformed
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import is_nan, to_long, type_name

Version = tuple[int, ...]
_NUMBER_TYPES = ("int", "long", "double", "decimal")
ALIASES: Mapping[str, str] = {
    **{"buildinfo": "buildInfo", "collstats": "collStats", "dbstats": "dbStats", "findandmodify": "findAndModify"},
    "ismaster": "isMaster",
}
# The generic fields of commands, in the order in which a server checks the fields.
_STABLE_API_FIELDS = ("apiVersion", "apiStrict", "apiDeprecationErrors")
_CLUSTER_FIELDS = ("$readPreference", "$clusterTime")
_SESSION_FIELDS = ("lsid", "txnNumber", "autocommit", "startTransaction", "stmtId", "stmtIds")
_CONCERN_FIELDS = ("maxTimeMS", "readConcern", "writeConcern")
_READS_IN_TRANSACTIONS = frozenset({"distinct", "find", "getMore"})


def _describe_value(value: Any, value_type: str) -> set[str]:
    """Return the words, such as ``int`` and ``int-many``, that the field table uses for a value."""
    if value_type in _NUMBER_TYPES:
        word = _describe_number(value)
        return {value_type, "number", word, f"{value_type}-{word}", "positive" if word in ("one", "many") else word}
    detail = ""
    if value_type == "string":
        detail = "empty" if not value else "dollar" if value[0] == "$" else "text"
    elif value_type == "bool":
        detail = str(value).lower()
    elif value_type == "array":
        detail = _describe_elements(value)
    elif value_type == "binData":
        detail = "uuid" if getattr(value, "subtype", 0) == 4 and len(value) == 16 else "other"
    return {value_type, f"{value_type}-{detail}"}


def _describe_number(value: Any) -> str:
    if is_nan(value):
        return "nan"
    number = value.to_decimal() if isinstance(value, bson.Decimal128) else value
    if abs(number) >= 2**63:
        return "huge"
    if number % 1:
        return "fraction"
    if number < 0:
        return "negative"
    return "large" if number >= 2**31 else "many" if number > 1 else "one" if number else "zero"


def _describe_elements(values: list[Any]) -> str:
    kinds = {type_name(value) for value in Pace().iterate(values) if not isinstance(value, dict)}
    if not kinds:
        return "objects" if values else "empty"
    names = {"null": "nulls", "string": "strings", "int": "ints", "long": "longs"}
    return names.get(kinds.pop(), "others") if len(kinds) == 1 else "others"


@dataclass
class Field:
    """The rules for the value of a field."""

    accepted_words: frozenset[str]  # the words for accepted values, or an empty set if all words are accepted
    refused_words: frozenset[str]  # the words for refused values, which override `accepted_words`
    min_version: Version = (0, 0)  # the server version that introduced the field
    # The rules for the fields of an embedded document, or of each document in an array.
    embedded_fields: Fields | None = None

    def check(self, path: str, value: Any, version: Version) -> None:
        value_type = type_name(value)
        if self.refused_words or (self.accepted_words and value_type not in self.accepted_words):
            words = _describe_value(value, value_type)
            if words & self.refused_words or (self.accepted_words and not words & self.accepted_words):
                raise malformed(f"{path} with {value!r:.60} of the type {value_type}")
        if self.embedded_fields is not None:
            for element in Pace().iterate(value) if isinstance(value, list) else [value]:
                if isinstance(element, dict):
                    self.embedded_fields.check(element, version)


@dataclass
class Fields:
    """The rules for the fields of a command or of an embedded document."""

    name: str  # the name of the command, or the path of the embedded document
    unknown_code: int = 0  # the error code for an unknown field, or 0 if the command ignores unknown fields
    # The error codes for missing fields, by the name of the required field.
    missing_codes: Mapping[str, int] = field(default_factory=dict)
    is_admin_only: bool = False  # True if the command may run only on the database `admin`
    # The fields among `readConcern` and `writeConcern` that the command refuses. A server still
    # accepts the read concern level `local`.
    refused_concerns: Sequence[str] = ()
    min_version: Version = (0, 0)  # the server version that introduced the command
    checks_session_first: bool = False  # True if a server checks session fields before other fields
    fields: dict[str, Field] = field(default_factory=dict)  # the rules by field name

    def check(self, body: Mapping[str, Any], version: Version, generic_fields: Container[str] = ()) -> None:
        for name, value in body.items():
            known_field = self.fields.get(name)
            if known_field is not None and version >= known_field.min_version:
                known_field.check(f"{self.name}.{name}", value, version)
            elif self.unknown_code and (known_field is not None or name not in generic_fields):
                raise _create_unknown_field_error(self.name, name, self.unknown_code, version)
        for name, code in self.missing_codes.items():
            if name not in body:
                raise error(code, f"BSON field '{self.name}.{name}' is missing but a required field")


def _create_unknown_field_error(path: str, name: str, code: int, version: Version) -> CommandError:
    if version < (5, 0) and path in ("find", "aggregate"):
        word = "Unrecognized" if path == "find" else "unrecognized"
        return error(9, f"{word} field '{name}'")
    if version < (5, 0) and path == "findAndModify":
        return error(code, f"BSON field '{name}' is an unknown field.")
    return error(code, f"BSON field '{path}.{name}' is an unknown field.")


def check_duplicate_and_stable_api_fields(request: Request, version: Version) -> None:
    """Refuse duplicate fields. Then check the fields of the Stable API, before the other fields."""
    if request.repeated is not None:
        raise error(40413, f"BSON field '{request.repeated}' is a duplicate field")
    _check_generic(_STABLE_API_FIELDS, request.body, version)


def check_command(request: Request, version: Version) -> None:
    """Check the database and the fields of a command. Convert ``maxTimeMS`` to an integer."""
    name = ALIASES.get(request.name, request.name)
    fields = TABLE.get(name)
    if fields is not None and version < fields.min_version:
        raise error(59, f"no such command: '{name}'")
    if fields is not None and fields.is_admin_only and request.database != "admin":
        raise error(13, f"{name} may only be run against the admin database.")
    _check_generic(_CLUSTER_FIELDS, request.body, version)
    if fields is not None and not fields.checks_session_first:
        check_body(name, replace_alias(request), version)
    _check_generic(_SESSION_FIELDS, request.body, version)
    _check_session(request.body)
    if fields is not None and fields.checks_session_first:
        check_body(name, request.body, version)
    _check_generic(_CONCERN_FIELDS, request.body, version)
    is_refused_later = "autocommit" in request.body and name not in _READS_IN_TRANSACTIONS
    has_write_concern = bool(request.body.get("writeConcern")) and not is_refused_later
    if has_write_concern and fields is not None and "writeConcern" in fields.refused_concerns:
        raise error(72, "Command does not support writeConcern")
    time_limit = request.body.get("maxTimeMS")
    if time_limit is not None and not isinstance(time_limit, int):
        request.body = {**request.body, "maxTimeMS": to_long(time_limit)}


def _check_session(body: Mapping[str, Any]) -> None:
    number, autocommit, start = (body.get(name) for name in ("txnNumber", "autocommit", "startTransaction"))
    for is_wrong, message in (
        (
            number is not None and body.get("lsid") is None,
            "Transaction number requires a session ID to also be specified",
        ),
        (autocommit is not None and number is None, "'autocommit' field requires a transaction number"),
        (number is not None and number < 0, "Transaction number cannot be negative"),
        (start is not None and autocommit is None, "'startTransaction' field requires 'autocommit' field"),
        (autocommit is True, "Specifying autocommit=true is not allowed."),
        (start is False, "Specifying startTransaction=false is not allowed."),
    ):
        if is_wrong:
            raise error(72, message)


def replace_alias(request: Request) -> dict[str, Any]:
    """Return the body of a command, with the current command name in place of an alias."""
    name = ALIASES.get(request.name)
    if name is None:
        return request.body
    return {name if field == request.name else field: value for field, value in request.body.items()}


def check_body(name: str, body: Mapping[str, Any], version: Version) -> None:
    """Check the fields of a command or of an embedded document. A command may have generic fields."""
    TABLE[name].check(body, version, () if "-" in name else TABLE["generic"].fields)


def _check_generic(names: tuple[str, ...], body: Mapping[str, Any], version: Version) -> None:
    fields = TABLE["generic"]
    for name in names:
        if name in body and name in fields.fields:
            fields.fields[name].check(name, body[name], version)


def _read_table() -> dict[str, Fields]:
    """Read the table of fields. Each line contains the rules for one ``Fields`` object.

    The words of a rule describe accepted values of a field. A ``!`` marks a word for refused values.
    """
    table: dict[str, Fields] = {}
    for line in Path(__file__).with_name("fields.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        name, versions = row["name"], {key: _parse_version(value) for key, value in row.get("since", {}).items()}
        fields = Fields(name, row.get("unknown", 0), row.get("missing", {}))
        fields.is_admin_only, fields.refused_concerns = row.get("admin", False), row.get("without", ())
        fields.min_version = versions.pop(name, (0, 0))
        fields.checks_session_first = row.get("late", False)
        # `versions` also names generic fields, such as `comment`, that older servers refuse.
        for key, rule in {**dict.fromkeys(versions, ""), **row["fields"]}.items():
            words = frozenset(rule.split())
            refused = frozenset(word[1:] for word in words if word[0] == "!")
            fields.fields[key] = Field(words - {f"!{word}" for word in refused}, refused, versions.get(key, (0, 0)))
        table[name] = fields
        parent, _, field_name = name.rpartition(".")
        if parent:
            table[parent].fields[field_name].embedded_fields = fields
    return table


def _parse_version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


TABLE: Mapping[str, Fields] = _read_table()
