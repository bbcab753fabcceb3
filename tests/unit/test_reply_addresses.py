"""The driver parses addresses in replies, raises an error for an invalid address, and converts
addresses to text.
"""

from __future__ import annotations

import pytest

from gmongo.wire.address import Address, address_text, parse_address
from tests.support.cases import with_cases


@with_cases
def test_valid_address_is_parsed(text: str, address: Address) -> None:
    assert parse_address(text) == address


@with_cases
def test_invalid_address_raises_value_error(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_address(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["a:27017", "10.0.0.1:5", "/tmp/x.sock"])
def test_text_of_parsed_address_equals_original_text(text: str) -> None:
    assert address_text(parse_address(text)) == text
