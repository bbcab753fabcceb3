"""Make the table of command fields: send a value of each kind in each field to a server, and record the error code."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

from gmongo.testing import command
from gmongo.testing.command import NO_CODE
from gmongo.testing.store import fields
from gmongo.testing.store.fields import LEAVES, kind_of_value, kinds_of_word

from .cases import FREE, TEMPLATES, Case, Template, templates
from .compare import Client

_SIZES = {"one": "1", "many": "2", "zero": "0", "negative": "-1", "fraction": "1.5", "nan": "NaN", "huge": "1E20"}
_MAKERS: dict[str, Any] = {"double": float, "decimal": Decimal128, "int": int, "long": lambda text: Int64(int(text))}
PROBES: list[Any] = [
    *(make(text) for kind, make in _MAKERS.items() for size, text in _SIZES.items()
      if kind in ("double", "decimal") or size in ("one", "many", "zero", "negative")),
    2.0**40, Decimal128(str(2**40)), Int64(2**40), "x", "", "$x", True, False, {"a": 1}, {}, [], [{}], [None], ["x"],
    [1], [Int64(1)], [1.5], Binary(b"x"), Binary(b"0" * 16, 4), Timestamp(1, 1), Timestamp(0, 0), None,
    ObjectId(), Regex("a"), datetime.datetime(2020, 1, 1), Code("x"), Code("x", {}), MinKey(), MaxKey()
]  # fmt: skip
_WORDS = ("number", "int", "long", "double", "decimal", "string", "bool", "object", "array", "binData", "timestamp",
          "positive", "zero", "negative", "large", "huge", "fraction", "nan")  # fmt: skip
_CONCERNS = (("writeConcern", {"w": 1}), ("readConcern", {"level": "majority"}))
_EXPIRED = 50
_MISSING = object()
# The table has no rules for the parts inside these fields. The code of each simulated command checks the parts.
_OPAQUE = (*FREE, "documents", "update", "pipeline", "collation", "hint", "indexes", "storageEngine", "encryptedFields",
           "indexOptionDefaults", "idIndex", "timeseries.granularity")  # fmt: skip
GENERIC = "generic"
DOCUMENTED = TEMPLATES.with_name("documented.jsonl")
NAMES = Path(command.__file__).with_name("error_names.json")
TABLE = Path(fields.__file__).with_name("fields.jsonl")


class Recorder:
    """Sends variants of the template commands to a server, and derives the lines of the table from the error codes."""

    def __init__(self, address: str) -> None:
        self._client = Client(address)
        self._dirty = True
        self._lines: dict[str, dict[str, Any]] = {}
        self.names: dict[int, str] = {}

    def lines(self) -> Iterable[dict[str, Any]]:
        """Return the lines of the table, sorted by their names."""
        found = templates()
        for template in sorted(found, key=lambda template: template.name != GENERIC):
            self._record_command(template)
        for line in map(json.loads, DOCUMENTED.read_text(encoding="utf-8").splitlines()):
            old = self._line(line["name"])
            fields = old["fields"] | line.get("fields", {})
            old |= {**line, "fields": fields}
        return sorted(self._lines.values(), key=lambda line: line["name"])

    def _error_code_of(self, template: Template, pairs: list[tuple[str, Any]], database: str | None = None) -> int:
        """Send a command.

        Return its error code, or 0 if the reply has ``ok: 1`` or the time limit of the command expired.
        """
        if self._dirty:
            self._client.reset()
        case = Case(template.first, "", database or template.database, pairs)
        reply = self._client.reply_to(case.encoded())
        self._dirty = bool(reply.get("ok")) and template.changes
        code = 0 if reply.get("ok") else reply.get("code", NO_CODE)
        if "codeName" in reply:
            self.names[code] = reply["codeName"]
        return 0 if code == _EXPIRED else code

    def _record_command(self, template: Template) -> None:
        command = template.command
        base = [(name, value) for name, value in command.items() if name in (template.first, *template.needed)]
        valid_code = self._error_code_of(template, base)
        line = self._line(template.name)
        if template.name != GENERIC and self._error_code_of(template, [*base, ("fooField", 1)]) not in (0, valid_code):
            line["unknown"] = self._error_code_of(template, [*base, ("fooField", 1)])
        refused = [
            name
            for name, value in _CONCERNS
            if self._error_code_of(template, [*base, (name, value)]) == 72 != valid_code
        ]
        if refused and template.name != GENERIC:
            line["without"] = refused
        if self._error_code_of(template, [*base, ("fooField", 1), ("txnNumber", Int64(1))]) == 72 and "unknown" in line:
            line["late"] = True
        other = self._error_code_of(template, base, "gmongo_fields" if template.database == "admin" else "admin")
        if other == 13 and valid_code != 13:
            line["admin"] = True
        for name, value in command.items():
            if name in template.skipped or (template.name == GENERIC and name == template.first):
                continue
            pairs = [pair for pair in command.items() if pair in base or pair[0] == name]
            pair_index = [pair[0] for pair in pairs].index(name)
            self._record_field(template, valid_code, pairs, pair_index, [name], value, line)

    def _line(self, name: str) -> dict[str, Any]:
        return self._lines.setdefault(name, {"name": name, "fields": {}})

    def _record_field(
        self,
        template: Template,
        valid_code: int,
        pairs: list[Any],
        pair_index: int,
        path: list[str],
        value: Any,
        line: Any,
    ) -> None:
        """Record the rules for the values of one field, and of each field inside its value.

        :param valid_code: the error code of the unchanged command, which is no error of a field.
        :param pair_index: the index of the pair that contains the field.
        :param path: the field names from the command to this field.
        :param line: the table line of the command or document that contains the field.
        """

        def ask(changed: Any) -> int:
            name, whole = pairs[pair_index]
            made = (
                [] if changed is _MISSING and len(path) == 1 else [(name, with_replaced_part(whole, path[1:], changed))]
            )
            code = self._error_code_of(template, pairs[:pair_index] + made + pairs[pair_index + 1 :])
            return 0 if code == valid_code else code

        codes = {kind_of_value(probe): ask(probe) for probe in PROBES}
        name = path[-1]
        rules = rules_of_field(codes, value, template.also.get(".".join(path), ""))
        generic = self._lines.get(GENERIC, {"fields": {}})["fields"]
        if template.name != GENERIC and len(path) == 1 and name in generic:
            # The line of a command repeats a generic field only if the command has other rules for the field.
            if name in ("maxTimeMS", "readConcern") and generic[name] != rules:
                line["fields"][name] = rules
            return
        line["fields"][name] = rules
        if (len(path) > 1 or pair_index) and (code := ask(_MISSING)):
            line.setdefault("missing", {})[name] = code
        document = value[0] if isinstance(value, list) and value else value
        if (
            (name in _OPAQUE and (template.name, name) != ("create", "collation"))
            or not isinstance(document, dict)
            or not document
        ):
            return
        below = self._line(f"{line['name']}.{name}")
        if code := ask(with_replaced_part(value, [], {**document, "fooField": 1}, in_array=isinstance(value, list))):
            below["unknown"] = code
        for part in document:
            self._record_field(template, valid_code, pairs, pair_index, [*path, part], document[part], below)


def with_replaced_part(value: Any, path: list[str], changed: Any, in_array: bool = False) -> Any:
    """Return a copy of `value`, in which `changed` replaces the part at a path.

    If a value on the path is an array, continue with its first element, and omit the other elements.

    :param changed: The new part, or ``_MISSING`` to remove the part.
    :param in_array: True to return the new part as the only element of an array.
    """
    if not path:
        return [changed] if in_array else changed
    if isinstance(value, list):
        return [with_replaced_part(value[0], path, changed)]
    if changed is _MISSING and len(path) == 1:
        return {name: part for name, part in value.items() if name != path[0]}
    return {**value, path[0]: with_replaced_part(value[path[0]], path[1:], changed)}


def rules_of_field(codes: dict[str, int], value: Any, further_kinds: str) -> str:
    """Return the rules of a field as text: the kinds of values that the server rejects, by error code.

    The field accepts a type if the template or the server accepts one value of the type. If the
    server rejects another value of this type, such as another string, the rules ignore the error.
    The code of the simulated command then checks the content.
    """
    codes = dict(codes)
    for word in further_kinds.split():
        codes.update(dict.fromkeys(kinds_of_word(word), 0))
    valid = kind_of_value(value)
    for kind in {leaf.split("-")[0] for leaf in LEAVES}:
        parts = [leaf for leaf in codes if leaf.split("-")[0] == kind]
        if valid.split("-")[0] != kind and all(codes[leaf] for leaf in parts):
            continue
        if kind == "array" and codes["array-objects"] != codes["array-others"]:
            codes["array-objects"] = 0
        free = kind in ("bool", "object", "timestamp") or (kind == "string" and codes["string-text"] != 0)
        for leaf in parts:
            if free or leaf in (valid, "string-text"):
                codes[leaf] = 0
    return shortest_rules(codes)


def shortest_rules(codes: dict[str, int]) -> str:
    """Return the shortest rule text from which the error code of each kind of value follows."""
    return min((_words(codes, default) for default in sorted(set(codes.values()))), key=len)


def _words(codes: dict[str, int], default: int) -> str:
    rules = []
    for code in sorted(set(codes.values()) - {default}):
        rest = [leaf for leaf in codes if codes[leaf] == code]
        words = []
        for word in _WORDS:
            parts = [leaf for leaf in kinds_of_word(word) if leaf in codes]
            if parts and all(leaf in rest for leaf in parts):
                words.append(word)
                rest = [leaf for leaf in rest if leaf not in parts]
        rules.append(" ".join([*([str(code)] if code else []), *words, *rest]))
    return ", ".join([*rules, *([str(default)] if default or not rules else [])])
