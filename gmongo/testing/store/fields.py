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
from gmongo.testing.store.values import is_nan, long_of, type_name

Version = tuple[int, ...]
_NUMBERS = ("int", "long", "double", "decimal")
ALIASES: Mapping[str, str] = {
    **{"buildinfo": "buildInfo", "collstats": "collStats", "dbstats": "dbStats", "findandmodify": "findAndModify"},
    "ismaster": "isMaster",
}
# The generic fields, which each command accepts, in the order in which a server checks these fields.
_FIRST = ("apiVersion", "apiStrict", "apiDeprecationErrors")
_NEXT = ("$readPreference", "$clusterTime")
_OF_SESSIONS = ("lsid", "txnNumber", "autocommit", "startTransaction", "stmtId", "stmtIds")
_LAST = ("maxTimeMS", "readConcern", "writeConcern")
_READS_IN_TRANSACTIONS = frozenset({"distinct", "find", "getMore"})


def _kinds(value: Any, name: str) -> set[str]:
    """Return the words of the table that describe a value of the type `name`, such as ``int`` and ``int-many``."""
    if name in _NUMBERS:
        size = _size(value)
        return {name, "number", size, f"{name}-{size}", "positive" if size in ("one", "many") else size}
    part = ""
    if name == "string":
        part = "empty" if not value else "dollar" if value[0] == "$" else "text"
    elif name == "bool":
        part = str(value).lower()
    elif name == "array":
        part = _elements(value)
    elif name == "binData":
        part = "uuid" if getattr(value, "subtype", 0) == 4 and len(value) == 16 else "other"
    return {name, f"{name}-{part}"}


def _size(value: Any) -> str:
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


def _elements(values: list[Any]) -> str:
    others = {type_name(value) for value in Pace().through(values) if not isinstance(value, dict)}
    if not others:
        return "objects" if values else "empty"
    names = {"null": "nulls", "string": "strings", "int": "ints", "long": "longs"}
    return names.get(others.pop(), "others") if len(others) == 1 else "others"


@dataclass
class Field:
    """The rules for the value of a field."""

    accepted: frozenset[str]  # the words for accepted values, or an empty set if the field accepts all values
    refused: frozenset[str]  # the words for the values that the field refuses although `accepted` contains a word
    since: Version = (0, 0)  # the server version that introduced the field
    # The rules for the fields of the value. If the value is an array, the rules apply to its elements.
    parts: Fields | None = None

    def check(self, path: str, value: Any, version: Version) -> None:
        name = type_name(value)
        if self.refused or (self.accepted and name not in self.accepted):
            kinds = _kinds(value, name)
            if not self.refused.isdisjoint(kinds) or (self.accepted and self.accepted.isdisjoint(kinds)):
                raise malformed(f"{path} with {value!r:.60} of the type {name}")
        if self.parts is not None:
            for part in Pace().through(value) if isinstance(value, list) else [value]:
                if isinstance(part, dict):
                    self.parts.check(part, version)


@dataclass
class Fields:
    """The rules for the fields of a command or of an embedded document."""

    name: str  # the name of the command, or the path of the embedded document
    unknown: int = 0  # the error code for an unknown field, or 0 if the command ignores unknown fields
    # The error codes for missing fields, by the name of the required field.
    missing: Mapping[str, int] = field(default_factory=dict)
    admin: bool = False  # True if only the `admin` database has the command
    # The fields among `readConcern` and `writeConcern` that the command refuses. The read concern level `local` is
    # always accepted.
    without: Sequence[str] = ()
    since: Version = (0, 0)  # the server version that introduced the command
    checks_session_first: bool = False  # True if a server checks the session fields before the other fields
    fields: dict[str, Field] = field(default_factory=dict)  # the rules by field name

    def check(self, body: Mapping[str, Any], version: Version, generic: Container[str] = ()) -> None:
        """Check all fields of a document."""
        for name, value in body.items():
            known = self.fields.get(name)
            if known is not None and version >= known.since:
                known.check(f"{self.name}.{name}", value, version)
            elif self.unknown and (known is not None or name not in generic):
                raise _unknown(self.name, name, self.unknown, version)
        for name, code in self.missing.items():
            if name not in body:
                raise error(code, f"BSON field '{self.name}.{name}' is missing but a required field")


def _unknown(path: str, name: str, code: int, version: Version) -> CommandError:
    if version < (5, 0) and path in ("find", "aggregate"):
        word = "Unrecognized" if path == "find" else "unrecognized"
        return error(9, f"{word} field '{name}'")
    if version < (5, 0) and path == "findAndModify":
        return error(code, f"BSON field '{name}' is an unknown field.")
    return error(code, f"BSON field '{path}.{name}' is an unknown field.")


def check_first(request: Request, version: Version) -> None:
    """Check the fields that a server checks before all other fields: duplicate fields and the Stable API."""
    if request.repeated is not None:
        raise error(40413, f"BSON field '{request.repeated}' is a duplicate field")
    _check_generic(_FIRST, request.body, version)


def check(request: Request, version: Version) -> None:
    """Check the database and the fields of a command."""
    name = ALIASES.get(request.name, request.name)
    known = TABLE.get(name)
    if known is not None and version < known.since:
        raise error(59, f"no such command: '{name}'")
    if known is not None and known.admin and request.database != "admin":
        raise error(13, f"{name} may only be run against the admin database.")
    _check_generic(_NEXT, request.body, version)
    if known is not None and not known.checks_session_first:
        check_body(name, without_alias(request), version)
    _check_generic(_OF_SESSIONS, request.body, version)
    _check_session(request.body)
    if known is not None and known.checks_session_first:
        check_body(name, request.body, version)
    _check_generic(_LAST, request.body, version)
    is_refused_later = "autocommit" in request.body and name not in _READS_IN_TRANSACTIONS
    has_write_concern = bool(request.body.get("writeConcern")) and not is_refused_later
    if has_write_concern and known is not None and "writeConcern" in known.without:
        raise error(72, "Command does not support writeConcern")
    limit = request.body.get("maxTimeMS")
    if limit is not None and not isinstance(limit, int):
        request.body = {**request.body, "maxTimeMS": long_of(limit)}


def _check_session(body: Mapping[str, Any]) -> None:
    number, autocommit, starts = (body.get(name) for name in ("txnNumber", "autocommit", "startTransaction"))
    for is_wrong, message in (
        (
            number is not None and body.get("lsid") is None,
            "Transaction number requires a session ID to also be specified",
        ),
        (autocommit is not None and number is None, "'autocommit' field requires a transaction number"),
        (number is not None and number < 0, "Transaction number cannot be negative"),
        (starts is not None and autocommit is None, "'startTransaction' field requires 'autocommit' field"),
        (autocommit is True, "Specifying autocommit=true is not allowed."),
        (starts is False, "Specifying startTransaction=false is not allowed."),
    ):
        if is_wrong:
            raise error(72, message)


def without_alias(request: Request) -> dict[str, Any]:
    """Return the body of a command, in which the current name of the command replaces an old name."""
    name = ALIASES.get(request.name)
    if name is None:
        return request.body
    return {name if field == request.name else field: value for field, value in request.body.items()}


def check_body(name: str, body: Mapping[str, Any], version: Version) -> None:
    """Check the fields of a command or an embedded document, except the generic fields."""
    TABLE[name].check(body, version, () if "-" in name else TABLE["generic"].fields)


def _check_generic(names: tuple[str, ...], body: Mapping[str, Any], version: Version) -> None:
    fields = TABLE["generic"]
    for name in names:
        if name in body and name in fields.fields:
            fields.fields[name].check(name, body[name], version)


def _read() -> dict[str, Fields]:
    """Read the table. A line has the rules for a command, or for an embedded document of a command.

    A rule contains the words for the accepted values of a field, and ``!`` before the words for refused values.
    """
    table: dict[str, Fields] = {}
    for text in Path(__file__).with_name("fields.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        name, since = line["name"], {key: _version(value) for key, value in line.get("since", {}).items()}
        entry = Fields(name, line.get("unknown", 0), line.get("missing", {}))
        entry.admin, entry.without = line.get("admin", False), line.get("without", ())
        entry.since, entry.checks_session_first = since.pop(name, (0, 0)), line.get("late", False)
        # `since` also names generic fields that an older server refuses.
        for key, rule in {**dict.fromkeys(since, ""), **line["fields"]}.items():
            words = frozenset(rule.split())
            refused = frozenset(word[1:] for word in words if word[0] == "!")
            entry.fields[key] = Field(words - {f"!{word}" for word in refused}, refused, since.get(key, (0, 0)))
        table[name] = entry
        parent, _, last = name.rpartition(".")
        if parent:
            table[parent].fields[last].parts = entry
    return table


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


TABLE: Mapping[str, Fields] = _read()
