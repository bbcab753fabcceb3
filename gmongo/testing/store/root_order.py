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
_PIECES = re.compile("[0-9]+|[^0-9]")
_SUPPORTED = {"alternate": "non-ignorable", "backwards": False, "caseFirst": "off", "caseLevel": False}
_ICU = "PyICU (pip install 'gmongo[icu]')"


def fold_of(spec: Mapping[str, Any]) -> Fold:
    """Return a function that converts a string to a sort key.

    A sort key is a string. The code points of sort keys sort in the order of the collation.

    :param spec: the collation document, completed with the defaults.
    """
    locale = spec["locale"]
    is_supported = spec["strength"] <= 3 and _SUPPORTED.items() <= spec.items()
    if not is_supported or locale.partition("_")[0] not in _LANGUAGES or locale in _OTHER_ORDERS or "@" in locale:
        return _refusing_fold(locale)
    return lambda text: _sort_key(unicodedata.normalize("NFD", text), spec["strength"], spec["numericOrdering"])


def _refusing_fold(locale: str) -> Fold:
    def fold(_text: str) -> str:
        raise not_supported("a collation of another language", f"locale {locale!r}, without {_ICU}")

    return fold


def _sort_key(text: str, strength: int, numeric: bool) -> str:
    """Return the sort key of a string: the base letters, the accents and the letter cases.

    A level affects the order of two strings only if all previous levels are equal. A letter sorts before the same
    letter with an accent.

    :param numeric: True if the collation compares numbers by value (``numericOrdering``).
    """
    bases: list[str] = []
    accents: list[str] = []
    cases = ""
    for piece in _PIECES.findall(text) if numeric else text:
        if piece in _SECONDARY and bases:
            accents[-1] += _SECONDARY[piece]
            continue
        lower = piece.lower()
        bases.append(_number_key(piece) if numeric and piece[0] in "0123456789" else _base_key(lower))
        accents.append("")
        cases += "\1" if piece == lower else "\2"
    return "\0".join(["".join(bases), "\1".join(accents), cases][:strength])


def _base_key(letter: str) -> str:
    if letter not in _PRIMARY:
        raise not_supported("a collation of another language", f"letter {letter!r}, without {_ICU}")
    return _PRIMARY[letter]


def _number_key(digits: str) -> str:
    significant = digits.lstrip("0") or "0"
    return f"{_PRIMARY['0']}{chr(1000 + len(significant))}{significant}"
