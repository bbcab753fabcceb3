"""Collations, which compare strings under the rules of a language.

The module contains the Unicode root order of accents, ASCII letters, digits and ASCII punctuation.
Several languages use the root order. The comparison of other characters raises an error.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store.errors import type_mismatch
from gmongo.testing.store.fields import check_body
from gmongo.testing.store.values import is_number, to_long, type_name
from gmongo.testing.unsupported import not_supported

Fold = Callable[[str], str]
_DEFAULTS: Mapping[str, Any] = {
    "caseLevel": False, "caseFirst": "off", "strength": 3, "numericOrdering": False, "alternate": "non-ignorable",
    "maxVariable": "punct", "normalization": False, "backwards": False
}  # fmt: skip
_MAX_STRENGTH = 5
# The version of ICU that servers contain.
_ICU_VERSION = "57.1"
# The supported languages, which sort Latin letters in the root order of Unicode.
_LANGUAGES = frozenset({"de", "en", "fr", "ga", "id", "it", "ms", "nl", "pt", "sw", "zu"})
_EXCLUDED_LOCALES = frozenset({"en_US_POSIX", "fr_CA"})
# The supported ASCII characters except letters, in the root order.
_ORDERED_CHARACTERS = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
# The combining characters of the supported accents, in the root order.
_ACCENTS = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0327\u0328\u0304"
_BASE_KEYS = {letter: chr(number) for number, letter in enumerate(_ORDERED_CHARACTERS, 16)} | {
    letter: chr(200 + ord(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"
}
_ACCENT_KEYS = {accent: chr(number) for number, accent in enumerate(_ACCENTS, 16)}


@dataclass(frozen=True)
class Collation:
    """A compiled collation."""

    # A function that converts a string to a sort key. The order of sort keys by code point is the
    # order of the collation. None means the binary comparison of strings.
    fold: Fold | None = None
    # The collation document, completed with the defaults, as sorted pairs of name and value.
    spec: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def from_spec(cls, spec: Any, required: bool = False) -> Collation:
        """Compile the collation document of a command, collection or index. `required` forbids an empty document."""
        if not spec and not required:
            return BINARY
        _check_spec(spec)
        if spec["locale"] == "simple":
            return BINARY
        fields = {name: value for name, value in spec.items() if name != "version" and value is not None}
        completed_fields = {**_DEFAULTS, **fields}
        completed_fields["strength"] = to_long(completed_fields["strength"])
        return _compile_collation(tuple(sorted(completed_fields.items())))

    def describe(self) -> dict[str, Any]:
        """Return the collation document that ``listIndexes`` shows. The document of the binary order is empty."""
        spec = dict(self.spec)
        names = ("locale", "caseLevel", "caseFirst", "strength", "numericOrdering", "alternate", "maxVariable",
                 "normalization", "backwards")  # fmt: skip
        return {**{name: spec[name] for name in names}, "version": _ICU_VERSION} if spec else {}

    def apply(self, value: Any) -> Any:
        """Return the value with sort keys in place of strings. The binary order keeps strings."""
        if self.fold is None:
            return value
        if type(value) is str:
            return self.fold(value)
        if isinstance(value, dict):
            return {name: self.apply(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.apply(part) for part in value]
        return value


def _check_spec(spec: Any) -> None:
    if not isinstance(spec, dict):
        raise type_mismatch(f"BSON field 'collation' is the wrong type '{type_name(spec)}', expected type 'object'")
    strength = spec.get("strength")
    if is_number(strength) and not 0 <= to_long(strength) <= _MAX_STRENGTH:
        raise error(51024, f"BSON field 'strength' value must be >= 0 and <= 5, actual value '{strength}'")
    check_body("create.collation", spec, (6, 0))
    if spec.get("version", _ICU_VERSION) != _ICU_VERSION:
        raise error(161, f"Requested collation version {spec['version']}, and only {_ICU_VERSION} is available")
    other_options = {name for name, value in spec.items() if value not in (None, _DEFAULTS.get(name, value))} - {
        "strength"
    }
    locale = spec["locale"]
    is_known = locale == "simple" or (locale.partition("_")[0] in _LANGUAGES and locale not in _EXCLUDED_LOCALES)
    if other_options or "@" in locale or not is_known or (is_number(strength) and not 1 <= to_long(strength) <= 3):
        raise not_supported("a collation with an unsupported option or letter", str(spec))


@lru_cache(maxsize=64)
def _compile_collation(items: tuple[tuple[str, Any], ...]) -> Collation:
    strength = dict(items)["strength"]

    def fold(text: str) -> str:
        return _create_sort_key(unicodedata.normalize("NFD", text), strength)

    return Collation(fold, items)


def _create_sort_key(text: str, strength: int) -> str:
    """Return the sort key of a string: base letters, accents and letter cases, up to `strength`.

    Accents affect the order only if the base letters are equal. Letter cases affect the order only
    if the accents are equal. A letter sorts before the same letter with an accent.
    """
    bases: list[str] = []
    accents: list[str] = []
    cases = ""
    for character in text:
        if character in _ACCENT_KEYS and bases:
            accents[-1] += _ACCENT_KEYS[character]
            continue
        lowercase = character.lower()
        if lowercase not in _BASE_KEYS:
            raise not_supported("a collation with an unsupported option or letter", f"letter {lowercase!r}")
        bases.append(_BASE_KEYS[lowercase])
        accents.append("")
        cases += "\1" if character == lowercase else "\2"
    return "\0".join(["".join(bases), "\1".join(accents), cases][:strength])


BINARY = Collation()
