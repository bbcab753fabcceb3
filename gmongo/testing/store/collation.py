"""Collations: how strings compare under the rules of a language.

The root order of Unicode is known here for Latin letters, digits and the punctuation of ASCII; several languages
do not deviate from it. For everything else there is ICU, if PyICU is installed.
"""

from __future__ import annotations

import importlib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gmongo.testing.command import not_supported
from gmongo.testing.store.errors import bad_value

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
_DEFAULTS: Mapping[str, Any] = {
    "caseLevel": False,
    "caseFirst": "off",
    "strength": 3,
    "numericOrdering": False,
    "alternate": "non-ignorable",
    "maxVariable": "punct",
    "normalization": False,
    "backwards": False,
}
# Languages whose order of Latin letters is Unicode's root order.
_OF_ROOT_ORDER = frozenset({"de", "en", "fr", "ga", "id", "it", "ms", "nl", "pt", "sw", "zu"})
_NOT_OF_ROOT_ORDER = frozenset({"en_US_POSIX", "fr_CA"})
# The root order of ASCII, but for letters; and that of the accents by their combining characters.
_ORDER = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
_ACCENTS = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0327\u0328\u0304"
_PRIMARY = {letter: chr(number) for number, letter in enumerate(_ORDER, 16)} | {
    letter: chr(200 + ord(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"
}
_SECONDARY = {accent: chr(number) for number, accent in enumerate(_ACCENTS, 16)}

Fold = Callable[[str], str]


@dataclass(frozen=True)
class Collation:
    """How strings compare.

    :param fold: makes of a string another one, whose code points compare as the collation says; None for the
        binary comparison.
    :param spec: the collation as the command gave it, completed.
    """

    fold: Fold | None = None
    spec: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, spec: Any) -> Collation:
        """The collation that a command, a collection or an index names.

        :raises CommandError: if it is malformed, or is not supported.
        """
        if not spec:
            return BINARY
        if not isinstance(spec, dict) or not isinstance(spec.get("locale"), str):
            raise bad_value("a collation must be an object with a locale")
        unknown = set(spec) - _FIELDS
        if unknown:
            raise bad_value(f"BSON field 'collation.{unknown.pop()}' is an unknown field.")
        if spec["locale"] == "simple":
            return BINARY
        _check(spec)
        full = {**_DEFAULTS, **{name: value for name, value in spec.items() if name != "version"}}
        full["strength"] = int(full["strength"])
        return _made(tuple(sorted(full.items())))

    def description(self) -> dict[str, Any]:
        """As ``listIndexes`` and ``listCollections`` show it: completed. Empty for the binary comparison."""
        spec = dict(self.spec)
        names = ("locale", "caseLevel", "caseFirst", "strength", "numericOrdering", "alternate", "maxVariable",
                 "normalization", "backwards")  # fmt: skip
        return {**{name: spec[name] for name in names}, "version": "57.1"} if spec else {}

    def folded(self, value: Any) -> Any:
        """The value with its strings in a form that compares as the collation says."""
        if self.fold is None:
            return value
        if type(value) is str:
            return self.fold(value)
        if isinstance(value, dict):
            return {name: self.folded(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.folded(part) for part in value]
        return value


def _check(spec: Mapping[str, Any]) -> None:
    strength = spec.get("strength", 3)
    if isinstance(strength, bool) or strength not in (1, 2, 3, 4, 5):
        raise bad_value(f"Field 'strength' must be an integer 1 through 5, not {strength!r}")
    for name, choices in (("caseFirst", ("off", "upper", "lower")), ("alternate", ("non-ignorable", "shifted")),
                          ("maxVariable", ("punct", "space"))):  # fmt: skip
        if spec.get(name, choices[0]) not in choices:
            raise bad_value(f"Enumeration value '{spec[name]}' for field 'collation.{name}' is not a valid value.")


_ICU = "PyICU (pip install 'gmongo[icu]')"


@lru_cache(maxsize=64)
def _made(items: tuple[tuple[str, Any], ...]) -> Collation:
    spec = dict(items)
    icu = _icu()
    if icu is not None:
        return Collation(_of_icu(icu, spec), items)
    changed = [name for name, default in _DEFAULTS.items() if name != "strength" and spec[name] != default]
    if changed:
        raise not_supported(f"a collation with {changed[0]} {spec[changed[0]]!r} without {_ICU}")
    locale = spec["locale"]
    if locale.partition("_")[0] not in _OF_ROOT_ORDER or locale in _NOT_OF_ROOT_ORDER or "@" in locale:
        raise not_supported(f"a collation for the locale {locale!r} without {_ICU}")
    if spec["strength"] > 3:
        raise not_supported(f"a collation of strength {spec['strength']} without {_ICU}")
    return Collation(_of_root_order(spec["strength"]), items)


def _of_root_order(strength: int) -> Fold:
    def fold(text: str) -> str:
        bases: list[str] = []
        accents: list[str] = []
        cases: list[str] = []
        for letter in unicodedata.normalize("NFD", text):
            if letter in _SECONDARY and bases:
                accents[-1] += _SECONDARY[letter]
                continue
            lower = letter.lower()
            if lower not in _PRIMARY:
                raise not_supported(f"comparing the letter {letter!r} under a collation without {_ICU}")
            bases.append(_PRIMARY[lower])
            accents.append("")
            cases.append("\1" if letter == lower else "\2")
        # A level counts only where those before it are equal, and a letter without an accent is before one that has.
        levels = ["".join(bases), "\1".join(accents), "".join(cases)]
        return "\0".join(levels[:strength])

    return fold


def _icu() -> Any:
    try:
        return importlib.import_module("icu")
    except ImportError:
        return None


def _of_icu(icu: Any, spec: Mapping[str, Any]) -> Fold:
    collator = icu.Collator.createInstance(icu.Locale(spec["locale"]))
    attribute, value = icu.UCollAttribute, icu.UCollAttributeValue
    switch = {True: value.ON, False: value.OFF}
    strengths = (value.PRIMARY, value.SECONDARY, value.TERTIARY, value.QUATERNARY, value.IDENTICAL)
    settings = {
        attribute.STRENGTH: strengths[spec["strength"] - 1],
        attribute.CASE_LEVEL: switch[bool(spec["caseLevel"])],
        attribute.CASE_FIRST: {"off": value.OFF, "upper": value.UPPER_FIRST, "lower": value.LOWER_FIRST}[
            spec["caseFirst"]
        ],
        attribute.NUMERIC_COLLATION: switch[bool(spec["numericOrdering"])],
        attribute.ALTERNATE_HANDLING: {"non-ignorable": value.NON_IGNORABLE, "shifted": value.SHIFTED}[
            spec["alternate"]
        ],
        attribute.FRENCH_COLLATION: switch[bool(spec["backwards"]) or spec["locale"] == "fr_CA"],
    }
    for name, wanted in settings.items():
        collator.setAttribute(name, wanted)
    # Bytes as a string of the same code points, which compare as the bytes do.
    return lambda text: collator.getSortKey(text).decode("latin-1")


# Strings compare by their code points.
BINARY = Collation()
