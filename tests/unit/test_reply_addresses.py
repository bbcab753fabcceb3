"""Addresses in replies are parsed, invalid addresses raise an error, and addresses have a text form."""

from __future__ import annotations

import pytest

from gmongo.wire.address import Address, address_text, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("a", ("a", 27017)),
        ("A.Example.ORG", ("a.example.org", 27017)),
        ("a:1", ("a", 1)),
        ("A:65535", ("a", 65535)),
        ("127.0.0.1:27018", ("127.0.0.1", 27018)),
        ("[::1]", ("::1", 27017)),
        ("[::1]:5", ("::1", 5)),
        ("[FE80::1%Eth0]:27017", ("fe80::1%eth0", 27017)),
        ("/tmp/MongoDB-27017.sock", ("/tmp/MongoDB-27017.sock", None)),
    ],
)
def test_valid_address_is_parsed(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' has no host"),
        (":27017", "':27017' has no host"),
        ("[]:5", "'[]:5' has no host"),
        ("a:0", "':0' is not a port"),
        ("a:65536", "':65536' is not a port"),
        ("a:", "':' is not a port"),
        ("a:x", "':x' is not a port"),
        ("a:-1", "':-1' is not a port"),
        ("a:\u0665", "':\u0665' is not a port"),  # a digit outside ASCII
        ("a:\u00b2", "':\u00b2' is not a port"),
        ("[::1]5", "'5' is not a port"),
        ("[::1]x5", "'x5' is not a port"),
        ("a\nb:5", "'a\\nb:5' cannot be printed"),
        ("a\x1b[31m", "'a\\x1b[31m' cannot be printed"),
    ],
)
def test_invalid_address_raises_value_error(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_address(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["a:27017", "10.0.0.1:5", "/tmp/x.sock"])
def test_text_of_parsed_address_equals_original_text(text: str) -> None:
    assert address_text(parse_address(text)) == text
