"""SASLprep converts the examples of RFC 4013, section 3, and of the driver specification correctly."""

from __future__ import annotations

import pytest

from gmongo.auth.saslprep import saslprep


@pytest.mark.cases
def test_saslprep_normalizes_text(text, prepared):
    assert saslprep(text) == prepared


@pytest.mark.cases
def test_prohibited_character_raises_value_error(text, message):
    with pytest.raises(ValueError, match=message):
        saslprep(text)
