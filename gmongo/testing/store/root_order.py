"""Collations without ICU: the root order of Unicode for Latin letters, digits and ASCII punctuation.

Several languages use the root order. A comparison of all other characters raises an error.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from gmongo.testing.unsupported import not_supported

Fold = Callable[[str], str]
# The languages that sort Latin letters in the root order of Unicode.
_LANGUAGES = frozenset({"de", "en", "fr", "ga", "id", "it", "ms", "nl", "pt", "sw", "zu"})
_OTHER_ORDERS = frozenset({"en_US_POSIX"})
# The ASCII characters except letters, in the root order.
_ORDER = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
# The combining characters of accents, in the root order.
_ACCENTS = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0327\u0328\u0304"
_PRIMARY = {letter: chr(number) for number, letter in enumerate(_ORDER, 16)} | {
    letter: chr(200 + ord(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"
}
_SECONDARY = {accent: chr(number) for number, accent in enumerate(_ACCENTS, 16)}
# The characters that a collation with `alternate: shifted` compares only in the fourth level, by
# the value of `maxVariable`.
_VARIABLE: Mapping[str, str] = {"space": _ORDER[: _ORDER.index("_")], "punct": _ORDER[: _ORDER.index("`")]}
_LAST = "\uffff"
_PIECES = re.compile("[0-9]+|[^0-9]")
_ICU = "PyICU (pip install 'gmongo[icu]')"


def fold_of(spec: Mapping[str, Any]) -> Fold:
    """Return a function that converts a string to a sort key.

    A sort key is a string. The code points of sort keys sort in the order of the collation.

    :param spec: the collation document, completed with the defaults.
    """
    locale = spec["locale"]
    if locale.partition("_")[0] not in _LANGUAGES or locale in _OTHER_ORDERS or "@" in locale:
        return _refusing_fold(locale)
    variable = _VARIABLE[spec["maxVariable"]] if spec["alternate"] == "shifted" else ""
    cases = ("\2", "\1") if spec["caseFirst"] == "upper" else ("\1", "\2")

    def fold(text: str) -> str:
        levels = _Levels(variable, cases)
        normal = unicodedata.normalize("NFD", text)
        for piece in _PIECES.findall(normal) if spec["numericOrdering"] else normal:
            levels.add(piece, bool(spec["numericOrdering"]))
        return levels.joined(spec, normal)

    return fold


def _refusing_fold(locale: str) -> Fold:
    def fold(_text: str) -> str:
        raise not_supported("a collation of another language", f"locale {locale!r}, without {_ICU}")

    return fold


class _Levels:
    """The comparison levels of a string: base letters, accents, letter cases and shifted characters.

    :param variable: the characters that the collation compares only in the fourth level.
    :param cases: the keys of a lowercase letter and of an uppercase letter in the third level.
    """

    def __init__(self, variable: str, cases: tuple[str, str]) -> None:
        self._variable = variable
        self._cases = cases
        self._bases: list[str] = []
        self._accents: list[str] = []
        self._letter_cases: list[str] = []
        self._shifted: list[str] = []

    def add(self, piece: str, numeric: bool) -> None:
        """Add a letter, an accent of the previous letter, or a number to the levels.

        :param piece: the character, or the digits of the number.
        :param numeric: True if the collation compares numbers by value (``numericOrdering``).
        """
        if piece in _SECONDARY and self._bases:
            self._accents[-1] += _SECONDARY[piece]
            return
        lower = piece.lower()
        if lower in self._variable:
            self._shifted.append(_PRIMARY[lower])
            return
        self._bases.append(_number_key(piece) if numeric and piece[0] in "0123456789" else _base_key(lower))
        self._shifted.append(_LAST)
        self._accents.append("")
        self._letter_cases.append(self._cases[piece != lower])

    def joined(self, spec: Mapping[str, Any], normal: str) -> str:
        """Return the sort key of a string.

        A level affects the order of two strings only if all previous levels are equal. A letter sorts before the same
        letter with an accent.

        :param spec: the collation document, completed with the defaults.
        :param normal: the string in the normal form NFD.
        """
        strength, direction = spec["strength"], -1 if spec["backwards"] else 1
        levels = ["".join(self._bases), "\1".join(self._accents[::direction])][:strength]
        if spec["caseLevel"] or strength > 2:
            levels.append("".join(self._letter_cases))
        if strength > 3 and self._variable:
            levels.append("".join(self._shifted))
        return "\0".join([*levels, normal] if strength == 5 else levels)


def _base_key(letter: str) -> str:
    if letter not in _PRIMARY:
        raise not_supported("a collation of another language", f"letter {letter!r}, without {_ICU}")
    return _PRIMARY[letter]


def _number_key(digits: str) -> str:
    significant = digits.lstrip("0") or "0"
    return f"{_PRIMARY['0']}{chr(1000 + len(significant))}{significant}"
