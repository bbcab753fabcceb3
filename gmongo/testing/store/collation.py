"""Collations, which compare strings under the rules of a language.

If PyICU is installed, the collations use ICU. If PyICU is not installed, the collations
use :mod:`gmongo.testing.store.root_order`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gmongo.testing.command import error
from gmongo.testing.store import root_order
from gmongo.testing.store.errors import bad_value, type_mismatch
from gmongo.testing.store.fields import check_body
from gmongo.testing.store.root_order import Fold
from gmongo.testing.store.values import is_number, long_of, type_name

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
# The options whose default in a locale of ICU differs from the general default.
_LOCALE_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "da": {"caseFirst": "upper"},
    "fr_CA": {"backwards": True},
    "mt": {"caseFirst": "upper"},
    "th": {"alternate": "shifted", "normalization": True},
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "caseFirst": ("off", "upper", "lower"),
    "alternate": ("non-ignorable", "shifted"),
    "maxVariable": ("punct", "space"),
}
_MOST_STRENGTH = 5
# The version of ICU that servers contain.
_VERSION = "57.1"
# The languages for which ICU has collations.
_LANGUAGES = """af am ar as az be bg bn bo bs ca chr cs cy da de dsb dz ee el en eo es et fa fi fil fo fr ga gl gu
    ha haw he hi hr hsb hu hy id ig is it ja ka kk kl km kn ko kok ky lb lkt ln lo lt lv mk ml mn mr ms
    mt my nb ne nl nn om or pa pl ps pt ro ru se si sk sl smn sq sr sv sw ta te th to tr ug uk ur vi wae
    yi yo zh zu"""


@dataclass(frozen=True)
class Collation:
    """A compiled collation.

    :param fold: a function that converts a string to a sort key, a string whose code points sort in the order of the
        collation. None means the binary comparison of strings.
    :param spec: the collation document, completed with the defaults, as sorted pairs of name and value.
    """

    fold: Fold | None = None
    spec: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, spec: Any, required: bool = False) -> Collation:
        """Compile the collation document of a command, a collection or an index.

        :param spec: the collation document. If there is no document, the result is the binary comparison.
        :param required: True if an empty document is an error.
        """
        if not spec and not required:
            return BINARY
        _check_spec(spec)
        if spec["locale"] == "simple":
            return BINARY
        given = {name: value for name, value in spec.items() if name != "version" and value is not None}
        full = {**_DEFAULTS, **_LOCALE_DEFAULTS.get(spec["locale"], {}), **given}
        full["strength"] = long_of(full["strength"])
        _check_combination(full)
        return _compiled(tuple(sorted(full.items())))

    def description(self) -> dict[str, Any]:
        """Return the collation document that ``listIndexes`` and ``listCollections`` show.

        The document is empty for the binary comparison.
        """
        spec = dict(self.spec)
        names = ("locale", "caseLevel", "caseFirst", "strength", "numericOrdering", "alternate", "maxVariable",
                 "normalization", "backwards")  # fmt: skip
        return {**{name: spec[name] for name in names}, "version": _VERSION} if spec else {}

    def folded(self, value: Any) -> Any:
        """Return a copy of a value in which sort keys of the collation replace all strings."""
        if self.fold is None:
            return value
        if type(value) is str:
            return self.fold(value)
        if isinstance(value, dict):
            return {name: self.folded(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.folded(part) for part in value]
        return value


def _check_spec(spec: Any) -> None:
    if not isinstance(spec, dict):
        raise type_mismatch(f"BSON field 'collation' is the wrong type '{type_name(spec)}', expected type 'object'")
    strength = spec.get("strength")
    if is_number(strength) and not 0 <= long_of(strength) <= _MOST_STRENGTH:
        raise error(51024, f"BSON field 'strength' value must be >= 0 and <= 5, actual value '{strength}'")
    check_body("create.collation", spec, (6, 0))
    for name, value in spec.items():
        value = long_of(value) if is_number(value) else value
        choices: tuple[Any, ...] = (1, 2, 3, 4, 5) if name == "strength" else _CHOICES.get(name, (value,))
        if value is not None and value not in choices:
            raise bad_value(f"Enumeration value '{value}' for field 'collation.{name}' is not a valid value.")
    if spec["locale"] != "simple" and spec["locale"].partition("@")[0].partition("_")[0] not in _LANGUAGES.split():
        raise bad_value(f"Field 'locale' is invalid in: {spec}")
    if spec.get("version", _VERSION) != _VERSION:
        raise error(161, f"Requested collation version {spec['version']} but "
                           f"the only available collator version was {_VERSION}")  # fmt: skip


def _check_combination(full: Mapping[str, Any]) -> None:
    if full["backwards"] and full["strength"] == 1:
        raise bad_value("'backwards' is invalid with 'strength' of 1")
    if full["caseFirst"] != "off" and not full["caseLevel"] and full["strength"] < 3:
        raise bad_value("'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2")


@lru_cache(maxsize=64)
def _compiled(items: tuple[tuple[str, Any], ...]) -> Collation:
    spec = dict(items)
    icu = _icu()
    if icu is not None:
        return Collation(_icu_fold(icu, spec), items)
    return Collation(root_order.fold_of(spec), items)


def _icu() -> Any:
    try:
        return importlib.import_module("icu")
    except ImportError:
        return None


def _icu_fold(icu: Any, spec: Mapping[str, Any]) -> Fold:
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
    for name, expected in settings.items():
        collator.setAttribute(name, expected)
    # A string that is decoded as latin-1 sorts like the bytes of the sort key.
    return lambda text: collator.getSortKey(text).decode("latin-1")


BINARY = Collation()
