"""SASLprep converts the examples of RFC 4013, section 3, and of the driver specification correctly."""

from __future__ import annotations

import pytest

from gmongo.auth.saslprep import saslprep


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("", ""),
        ("user", "user"),
        ("USER", "USER"),
        ("I\u00adX", "IX"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("\u2163", "IV"),
        ("I\u00adV", "IV"),
        ("a\u00a0b", "a b"),
        ("a\u1680b", "a b"),
        ("\u0627\u0628", "\u0627\u0628"),
        ("p\u00e4ss", "p\u00e4ss"),
        ("pa\u0308ss", "p\u00e4ss"),
    ],
)
def test_saslprep_normalizes_text(text, prepared):
    assert saslprep(text) == prepared


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\u0007", "control character"),
        ("a\x7fb", "control character"),
        ("\u0627\u0031", "but its first or last character is not"),
        ("\u0627a\u0628", "mixes"),
        ("\ue000", "private use"),
        ("\ufffd", "not for plain text"),
        ("\U0001f600", "not assigned"),
    ],
)
def test_prohibited_character_raises_value_error(text, message):
    with pytest.raises(ValueError, match=message):
        saslprep(text)
