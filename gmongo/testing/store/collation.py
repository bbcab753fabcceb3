"""Collations: strings are folded before they are compared."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store.errors import bad_value
from gmongo.testing.store.matching import Match, compile_filter

_FIELDS = frozenset(
    {
        "locale",
        "caseLevel",
        "caseFirst",
        "strength",
        "numericOrdering",
        "alternate",
        "maxVariable",
        "normalization",
        "backwards",
        "version",
    }
)
_REFUSED = {"caseLevel": True, "numericOrdering": True, "backwards": True, "alternate": "shifted"}


@dataclass(frozen=True)
class Collation:
    """How strings compare.

    :param strength: 1 ignores case and accents, 2 case, 3 and more nothing; None compares code points.
    """

    strength: int | None = None

    @classmethod
    def of(cls, spec: Any) -> Collation:
        """The collation that a command or a collection names.

        :raises CommandError: if it is malformed, or has a rule that is not supported.
        """
        if not spec:
            return cls()
        if not isinstance(spec, dict) or not isinstance(spec.get("locale"), str):
            raise bad_value("a collation must be an object with a locale")
        unknown = set(spec) - _FIELDS
        if unknown:
            raise bad_value(f"BSON field 'collation.{unknown.pop()}' is an unknown field.")
        for name, value in _REFUSED.items():
            if spec.get(name) == value:
                raise not_supported(f"a collation with {name} {value!r}")
        return cls(None if spec["locale"] == "simple" else int(spec.get("strength", 3)))

    def compile_filter(self, query: Any, variables: Mapping[str, Any]) -> Match:
        """A function that tells whether a document matches under this collation."""
        if self.strength is None or self.strength > 2 or not isinstance(query, dict):
            return compile_filter(query, variables)
        match = compile_filter(self.folded(query), variables)
        return lambda document: match(self.folded(document))

    def folded(self, value: Any) -> Any:
        """The value with its strings in a form that compares as the collation says."""
        if self.strength is None:
            return value
        if isinstance(value, str) and type(value) is str:
            return self._folded_string(value)
        if isinstance(value, dict):
            return {name: self.folded(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.folded(part) for part in value]
        return value

    def _folded_string(self, text: str) -> str:
        if text.startswith("$"):
            return text
        folded = unicodedata.normalize("NFKD" if self.strength == 1 else "NFC", text.casefold())
        if self.strength == 1:
            return "".join(letter for letter in folded if not unicodedata.combining(letter))
        # Lower case sorts before upper case where nothing else differs.
        return folded if self.strength == 2 else f"{folded}\0{text.swapcase()}"


# Strings compare by their code points.
BINARY = Collation()
