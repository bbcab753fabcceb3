"""Check commands against a table of their fields, which ``python -m tests.simulation.fields`` records from a server."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bson

from gmongo.testing.command import CommandError, Request, error
from gmongo.testing.store.pacing import Pace
from gmongo.testing.store.values import is_nan, long_of, type_name

Version = tuple[int, ...]
_NUMBERS = ("int", "long", "double", "decimal")
_SIZES = ("one", "many", "zero", "negative", "large", "huge", "fraction", "nan")
_KINDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_NUMBERS, _SIZES),
    "string": ("text", "empty", "dollar"),
    "bool": ("true", "false"),
    "object": ("full", "empty"),
    "array": ("empty", "objects", "nulls", "strings", "ints", "longs", "others"),
    "binData": ("other", "uuid"),
    "timestamp": ("some", "null"),
}
_SINGLE = ("null", "objectId", "date", "regex", "javascript", "javascriptWithScope", "minKey", "maxKey")
LEAVES: tuple[str, ...] = (*(f"{kind}-{part}" for kind, parts in _KINDS.items() for part in parts), *_SINGLE)
"""The names of the kinds of values that the table distinguishes."""
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
_QUICK = {True: "bool-true", False: "bool-false"}


def kind_of_value(value: Any) -> str:
    """Return the name of the kind of a value, such as ``int-negative`` or ``array-empty``."""
    kind = type(value)
    if kind is str:
        return "string-text" if value and value[0] != "$" else "string-dollar" if value else "string-empty"
    if kind is bool:
        return _QUICK[value]
    if kind is dict:
        return "object-full" if value else "object-empty"
    name = type_name(value)
    if name in _NUMBERS:
        return f"{name}-{_size(value)}"
    if name == "array":
        return f"array-{_elements(value)}"
    if name == "binData":
        return "binData-uuid" if getattr(value, "subtype", 0) == 4 and len(value) == 16 else "binData-other"
    if name == "timestamp":
        return "timestamp-some" if value.time or value.inc else "timestamp-null"
    return name


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


def kinds_of_word(word: str) -> tuple[str, ...]:
    """Return the names of all kinds of values that a word in the rules of the table includes."""
    if word.endswith("positive"):
        return tuple(leaf for size in ("one", "many") for leaf in kinds_of_word(word.replace("positive", size)))
    if word == "number":
        return tuple(leaf for kind in _NUMBERS for leaf in kinds_of_word(kind))
    if word in _SIZES:
        return tuple(f"{kind}-{word}" for kind in _NUMBERS)
    return tuple(f"{word}-{part}" for part in _KINDS[word]) if word in _KINDS else (word,)


@dataclass
class Field:
    """The rules for the value of a field."""

    codes: Mapping[str, int]  # the error codes by kind of value. The error code of an accepted kind is 0
    since: Version = (0, 0)  # the server version that introduced the field
    # The rules for the fields of the value. If the value is an array, the rules apply to its elements.
    parts: Fields | None = None


@dataclass
class Fields:
    """The rules for the fields of a command or of an embedded document."""

    name: str  # the name of the command, or the path of the embedded document
    unknown: int = 0  # the error code for an unknown field; 0 if the command ignores unknown fields
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
                self.check_field(known, name, value, version)
            elif self.unknown and (known is not None or name not in generic):
                raise _unknown(self.name, name, self.unknown, version)
        for name, code in self.missing.items():
            if name not in body:
                raise error(code, f"BSON field '{self.name}.{name}' is missing but a required field")

    def check_field(self, known: Field, name: str, value: Any, version: Version) -> None:
        code = known.codes[kind_of_value(value)]
        if code:
            raise error(
                code, f"BSON field '{self.name}.{name}' is {value!r:.60} of the wrong type '{type_name(value)}'"
            )
        if known.parts is None:
            return
        if isinstance(value, dict):
            known.parts.check(value, version)
        elif isinstance(value, list) and known.codes["object-full"]:
            for part in Pace().through(value):
                if isinstance(part, dict):
                    known.parts.check(part, version)


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
            fields.check_field(fields.fields[name], name, body[name], version)


def _read() -> dict[str, Fields]:
    """Read the table from its file. A line has the rules for a command, or for an embedded document of a command."""
    table: dict[str, Fields] = {}
    kinds: dict[str, Mapping[str, int]] = {}
    for text in Path(__file__).with_name("fields.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        name, since = line["name"], {key: _version(value) for key, value in line.get("since", {}).items()}
        entry = Fields(name, line.get("unknown", 0), line.get("missing", {}))
        entry.admin, entry.without = line.get("admin", False), line.get("without", ())
        entry.since, entry.checks_session_first = since.get(name, (0, 0)), line.get("late", False)
        for key, rules in line["fields"].items():
            codes = kinds.setdefault(rules, compile_rules(rules))
            entry.fields[key] = Field(codes, since.get(key, (0, 0)))
        for key in since.keys() - entry.fields.keys() - {name}:  # a generic field that an older server refuses
            entry.fields[key] = Field(kinds.setdefault("0", compile_rules("0")), since[key])
        table[name] = entry
        parent, _, last = name.rpartition(".")
        if parent:
            table[parent].fields[last].parts = entry
    return table


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


def compile_rules(rules: str) -> dict[str, int]:
    """Return the error codes by kind of value. The error code of an accepted kind is 0."""
    codes: dict[str, int] = {}
    default = 0
    for rule in rules.split(", "):
        words = rule.split()
        code = int(words.pop(0)) if words[0].lstrip("-").isdigit() else 0
        if not words:
            default = code
        for word in words:
            codes.update(dict.fromkeys(kinds_of_word(word), code))
    return {leaf: codes.get(leaf, default) for leaf in LEAVES}


TABLE: Mapping[str, Fields] = _read()
