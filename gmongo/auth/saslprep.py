"""SASLprep (RFC 4013): the canonical form of a password."""

from __future__ import annotations

import stringprep
import unicodedata
from collections.abc import Callable

# Tests and descriptions of the characters that RFC 4013, section 2.3 prohibits. `saslprep` replaces the prohibited
# non-ASCII spaces.
_PROHIBITED: tuple[tuple[Callable[[str], bool], str], ...] = (
    (stringprep.in_table_c21_c22, "a control character"),
    (stringprep.in_table_c3, "a character for private use"),
    (stringprep.in_table_c4, "a code point that is not a character"),
    (stringprep.in_table_c5, "a surrogate"),
    (stringprep.in_table_c6, "a character that is not for plain text"),
    (stringprep.in_table_c7, "a character that is not for canonical representation"),
    (stringprep.in_table_c8, "a character that changes the display"),
    (stringprep.in_table_c9, "a tagging character"),
    (stringprep.in_table_a1, "a character that is not assigned in Unicode 3.2"),
)


def saslprep(text: str) -> str:
    """Return the prepared form of a password. A ValueError does not quote the prohibited character, which is secret."""
    if text.isascii() and text.isprintable():
        return text
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in text
        if not stringprep.in_table_b1(character)
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for is_prohibited, description in _PROHIBITED:
        if any(map(is_prohibited, prepared)):
            raise ValueError(f"it has {description}")
    _check_directions(prepared)
    return prepared


def _check_directions(text: str) -> None:
    """Check that right-to-left text begins and ends with a right-to-left character (RFC 3454, section 6)."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    if any(map(stringprep.in_table_d2, text)):
        raise ValueError("it mixes left-to-right and right-to-left characters")
    if not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])):
        raise ValueError("it has right-to-left characters, but its first or last character is not right-to-left")
