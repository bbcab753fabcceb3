"""Invalid commands.

A template is a valid command. Each invalid command contains fields of a template, and one fault, such
as a field of a wrong type.
"""

from __future__ import annotations

import datetime
import json
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bson
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from tests.simulation.answers.notation import from_json

TEMPLATE_FILE = Path(__file__).with_name("templates.jsonl")
DATABASE_NAME = "gmongo_fields"
DOCUMENTS = [{"_id": number, "a": number} for number in range(4)]
_NUMBERS = (1, 0, -1, 3, 2**31, -(2**40))
# Values that replace the value of a field, in lists of equal or similar BSON types.
VALUES_BY_TYPE: list[list[Any]] = [
    [1, 0, -1, 5, 100, -5],
    [Int64(number) for number in (*_NUMBERS, 2**62)],
    [1.0, 0.0, -1.0, 1.5, -0.5, float("nan"), float("inf"), 1e20, 2.0**31],
    [Decimal128(text) for text in ("1", "0", "-1", "1.5", "NaN", "1E20")],
    ["x", "", "a.b", "$x", "1", "w"],
    [True, False],
    [None],
    [{}, {"a": 1}, {"x": {"y": 1}}, {"$a": 1}],
    [[], [1], ["x"], [{}], [{"a": 1}], [None]],
    [Binary(b"x"), Binary(b"0" * 16, 4), Binary(b"")],
    [ObjectId("5f0000000000000000000001")],
    [datetime.datetime(2020, 1, 1)],
    [Regex("a"), Regex("")],
    [Code("x"), Code("x", {"a": 1})],
    [Timestamp(1, 1), Timestamp(0, 0)],
    [MinKey(), MaxKey()],
]
# Fields whose value is a document with any field names, such as a filter.
FREE_FIELDS = ("filter", "query", "sort", "projection", "fields", "let", "min", "max", "keyPattern", "explain",
               "customData", "validator", "storageEngine", "q", "u", "key", "document")  # fmt: skip


@dataclass
class Template:
    """A valid command, from which :func:`random_case` derives commands with one fault."""

    command: dict[str, Any]
    database: str = DATABASE_NAME
    required_fields: Sequence[str] = ()
    fixed_fields: Sequence[str] = ()  # fields that keep their value: another value would change the server's state

    @property
    def command_name(self) -> str:
        return next(iter(self.command))


@dataclass
class Case:
    """A command with one fault.

    :param pairs: the name and value of each field. Two fields can have the same name.
    """

    name: str
    fault: str
    database: str
    pairs: list[tuple[str, Any]]

    def encode(self) -> bytes:
        """Return the command as BSON, with the additional field ``$db``."""
        elements = b"".join(bson.encode({name: value})[4:-1] for name, value in [*self.pairs, ("$db", self.database)])
        return (len(elements) + 5).to_bytes(4, "little") + elements + b"\0"


def templates() -> list[Template]:
    """Read the templates from their file."""
    lines = TEMPLATE_FILE.read_text(encoding="utf-8").splitlines()
    loaded = [Template(**{**fields, "command": from_json(fields["command"])}) for fields in map(json.loads, lines)]
    for template in loaded:
        # Use a new session ID, because a server may have cached the session of an earlier run.
        if "lsid" in template.command:
            template.command["lsid"] = {"id": Binary(uuid.uuid4().bytes, 4)}
    return loaded


def random_cases(seed: int) -> Iterator[Case]:
    """Yield an unlimited number of random cases."""
    rng = random.Random(seed)
    known = templates()
    weights = [len(template.command) + 1 for template in known]
    while True:
        yield random_case(rng, rng.choices(known, weights)[0])


def random_case(rng: random.Random, template: Template) -> Case:
    """Return a command that has some fields of a template, and one fault."""
    share = rng.choice((0, 0.3, 1))
    target = rng.choice(list(template.command))
    kept = {template.command_name, target, *template.required_fields}
    pairs = [(name, value) for name, value in template.command.items() if name in kept or rng.random() < share]
    kind = rng.choices(("value", "part", "missing", "unknown", "twice", "database"), (70, 16, 5, 3, 5, 1))[0]
    database, target_index = template.database, [name for name, _ in pairs].index(target)
    value = template.command[target]
    if kind == "part" and (target in FREE_FIELDS or not isinstance(value, (dict, list)) or not value):
        kind = "value"
    if (kind in ("value", "part") and target in template.fixed_fields) or (kind == "missing" and not target_index):
        kind = "unknown"
    if kind == "value":
        pairs[target_index] = (target, random_value(rng))
    elif kind == "part":
        pairs[target_index] = (target, insert_fault(rng, value))
    elif kind == "missing":
        del pairs[target_index]
    elif kind == "unknown":
        pairs.insert(rng.randrange(1, len(pairs) + 1), ("fooField", random_value(rng)))
    elif kind == "twice":
        pairs.insert(
            rng.randrange(target_index + 1, len(pairs) + 1),
            (target, rng.choice((value, random_value(rng)))),
        )
    else:
        database = DATABASE_NAME if database == "admin" else "admin"
    return Case(template.command_name, f"{kind} {target}", database, pairs)


def random_value(rng: random.Random) -> Any:
    """Return a random value of a random BSON type."""
    return rng.choice(rng.choice(VALUES_BY_TYPE))


def insert_fault(rng: random.Random, value: Any) -> Any:
    """Return a copy with a fault in one field of a document, or in the first element of an array."""
    if isinstance(value, list):
        document = value[0] if isinstance(value[0], dict) else None
        return [insert_fault(rng, document) if document else random_value(rng), *value[1:]]
    name = rng.choice(list(value))
    kind = rng.choices(("value", "missing", "unknown"), (80, 10, 10))[0]
    if kind == "unknown":
        return {**value, "fooField": random_value(rng)}
    if kind == "missing":
        return {key: part for key, part in value.items() if key != name}
    part = value[name]
    deeper = name not in FREE_FIELDS and isinstance(part, (dict, list)) and part and rng.random() < 0.3
    return {**value, name: insert_fault(rng, part) if deeper else random_value(rng)}
