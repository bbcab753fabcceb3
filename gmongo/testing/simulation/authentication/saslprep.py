"""Prepare passwords with SASLprep (RFC 4013)."""

from __future__ import annotations

import stringprep
import unicodedata

_PROHIBITED = (
    stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3,
    stringprep.in_table_c4, stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7,
    stringprep.in_table_c8, stringprep.in_table_c9
)  # fmt: skip


def saslprep(text: str) -> str:
    """Return the form of a password that SASLprep defines.

    :raises ValueError: the password has a prohibited character.
    """
    if text.isascii() and text.isprintable():
        return text
    spaced = (" " if stringprep.in_table_c12(char) else char for char in text)
    mapped = "".join(char for char in spaced if not stringprep.in_table_b1(char))
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for char in prepared:
        if any(prohibited(char) for prohibited in _PROHIBITED):
            raise ValueError(f"the password has the character {char!r}, which SASLprep prohibits")
    return prepared
