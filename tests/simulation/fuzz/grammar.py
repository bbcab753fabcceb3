"""Random values that follow the grammar rules in ``grammar.json``."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

RULES: dict[str, list[Any]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_RULE_REFERENCE = re.compile(r"<([a-z ]+)>")
# Above this depth of nested rules, use the first alternative of each rule, which ends the nesting.
_MAX_DEPTH = 8
_REPEAT_COUNTS = {"*": (0, 1, 2, 3), "...": (1, 2, 2, 3)}


class Grammar:
    """A generator of random values from the rules in ``grammar.json``. A rule is a list of alternatives.

    A random alternative of a rule replaces a string ``<rule>``. If ``<rule>`` is only a part of a
    string, such as ``$<rule>``, the alternative must be a text. In a list, zero to three
    alternatives replace ``<rule>*``, and one to three alternatives replace ``<rule>...``. A field
    ``name?`` occurs in a third of the documents, and a field ``name?2`` in three quarters. A field
    ``+`` stands for the fields of its value. If the values of ``+`` fields are lists, a list of all
    their elements replaces the document. Digits after the ``+`` make the names of fields unique.

    A `limit` of `$filter` in a validator crashes `mongod` 6.0.5. Therefore only rules that validators
    do not use contain the `limit`.

    :param rng: the source of the random choices.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def value(self, rule: str, depth: int = 0) -> Any:
        """Return a random value that follows a rule, in the notation of the recorded answers."""
        alternatives = RULES[rule]
        chosen = alternatives[0] if depth > _MAX_DEPTH else self._rng.choice(alternatives)
        return self._expand(chosen, depth + 1)

    def case(self, rule: str) -> dict[str, Any]:
        """Return the fields of a random case. The ``_id`` of each document is its index in the list
        of documents.
        """
        fields = self.value(rule)
        for name in ("documents", "others"):
            if name in fields:
                fields[name] = [{"_id": number, **document} for number, document in enumerate(fields[name])]
        return fields

    def choice(self, rule: str) -> str:
        """Return a random alternative of `rule` that is the name of a rule, or `rule` if no
        alternative is the name of a rule.
        """
        names = [name for name in RULES[rule] if isinstance(name, str) and name in RULES]
        return self._rng.choice(names) if names else rule

    def _expand(self, part: Any, depth: int) -> Any:
        if isinstance(part, str):
            return self._expand_text(part, depth)
        if isinstance(part, list):
            return [element for member in part for element in self._expand_elements(member, depth)]
        if not isinstance(part, dict):
            return part
        if part and all(name[0] == "+" for name in part):
            merged = [self._expand(value, depth) for value in part.values()]
            if isinstance(merged[0], list):
                return [element for elements in merged for element in elements]
        return self._expand_fields(part, depth)

    def _expand_fields(self, part: dict[str, Any], depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, value in part.items():
            if name[0] == "+":
                fields |= {key: inner for key, inner in self._expand(value, depth).items() if key not in fields}
                continue
            text, optional, often = name.partition("?")
            if not optional or self._rng.random() < (0.75 if often else 0.33):
                fields[self._expand_text(text, depth)] = self._expand(value, depth)
        return fields

    def _expand_elements(self, part: Any, depth: int) -> list[Any]:
        for suffix, counts in _REPEAT_COUNTS.items():
            if isinstance(part, str) and part.endswith(">" + suffix):
                count = self._rng.choice(counts) if depth <= _MAX_DEPTH else counts[0]
                return [self._expand(part.removesuffix(suffix), depth) for _ in range(count)]
        return [self._expand(part, depth)]

    def _expand_text(self, text: str, depth: int) -> Any:
        reference = _RULE_REFERENCE.fullmatch(text)
        if reference:
            return self.value(reference[1], depth)
        return _RULE_REFERENCE.sub(lambda match: str(self.value(match[1], depth)), text)
