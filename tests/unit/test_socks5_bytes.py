"""SOCKS5 byte by byte (RFC 1928 and 1929): what is sent to a proxy, and what becomes of its answers."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.wire.socks5 import Proxy, ProxyError, connect_through
from gmongo.wire.transport import TransportError
from tests.unit.test_numbers import NUMBERS

PLAIN = Proxy(("proxy", 1080))
WITH_ACCOUNT = Proxy(("proxy", 1080), "user", "pässword")
ACCOUNT = b"\x01\x04user\x09p\xc3\xa4ssword"
LOCAL = bytes(4) + b"\x00\x07"  # where the proxy connects from
GRANTED = b"\x05\x00\x00\x01" + LOCAL
NAMED = b"\x05\x01\x00\x03\x02db" + b"\x69\x89"
TO_A_NAME = ("db", 27017)


class Played:
    """A transport to a proxy that answers so."""

    def __init__(self, answers: bytes) -> None:
        self.left = answers
        self.sent = b""

    def send_raw(self, data: bytes) -> None:
        self.sent += data

    def read_raw(self, size: int) -> bytes:
        if len(self.left) < size:
            raise TransportError("closed")
        found, self.left = self.left[:size], self.left[size:]
        return found


@pytest.mark.parametrize(
    ("proxy", "destination", "answers", "sent"),
    [
        (PLAIN, TO_A_NAME, b"\x05\x00" + GRANTED, b"\x05\x01\x00" + NAMED),
        (WITH_ACCOUNT, TO_A_NAME, b"\x05\x00" + GRANTED, b"\x05\x02\x00\x02" + NAMED),
        (WITH_ACCOUNT, TO_A_NAME, b"\x05\x02\x01\x00" + GRANTED, b"\x05\x02\x00\x02" + ACCOUNT + NAMED),
        (
            Proxy(("proxy", 1080), "user"),
            TO_A_NAME,
            b"\x05\x02\x01\x00" + GRANTED,
            b"\x05\x02\x00\x02\x01\x04user\x00" + NAMED,
        ),
        (
            PLAIN,
            ("1.2.3.4", 258),
            b"\x05\x00" + GRANTED,
            b"\x05\x01\x00\x05\x01\x00\x01\x01\x02\x03\x04\x01\x02",
        ),
        (
            PLAIN,
            ("::5", 258),
            b"\x05\x00" + GRANTED,
            b"\x05\x01\x00\x05\x01\x00\x04" + bytes(15) + b"\x05\x01\x02",
        ),
        (PLAIN, TO_A_NAME, b"\x05\x00\x05\x00\x00\x04" + bytes(18), b"\x05\x01\x00" + NAMED),
        (PLAIN, TO_A_NAME, b"\x05\x00\x05\x00\x00\x03\x03abc\x00\x07", b"\x05\x01\x00" + NAMED),
    ],
)
def test_a_proxy_that_connects_on(proxy: Proxy, destination: Any, answers: bytes, sent: bytes) -> None:
    transport: Any = Played(answers)
    connect_through(proxy, transport, destination)
    assert transport.sent == sent and transport.left == b""


REFUSALS: Any = {**NUMBERS["wire.socks5"]["_REFUSALS"], 9: "refused with code 9"}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("proxy", "destination", "answers", "why"),
    [
        (PLAIN, TO_A_NAME, b"\x04\x00", "it does not speak SOCKS5 (version 4)"),
        (PLAIN, TO_A_NAME, b"\x05\x00\x04\x00\x00\x01", "it does not speak SOCKS5 (version 4)"),
        (
            PLAIN, TO_A_NAME, b"\x05\xff",
            "the proxy requires a username and password, but gmongo offers the methods [0]",
        ),
        (WITH_ACCOUNT, TO_A_NAME, b"\x05\x01", "the proxy requires the method 1, but gmongo offers the methods [0, 2]"),
        (PLAIN, TO_A_NAME, b"\x05\x02", "the proxy requires the method 2, but gmongo offers the methods [0]"),
        (WITH_ACCOUNT, TO_A_NAME, b"\x05\x02\x01\x01", "it refused proxyUsername and proxyPassword"),
        (PLAIN, TO_A_NAME, b"\x05\x00\x05\x00\x00\x02", "its reply has an address of the unknown kind 2"),
        (PLAIN, TO_A_NAME, b"\x05\x00\x05\x00\x00\x01\x00", "closed"),
        (PLAIN, TO_A_NAME, b"", "closed"),
        (PLAIN, ("h" * 256, 1), b"\x05\x00", "the host name is 256 bytes long, but SOCKS5 takes 255"),
        (
            Proxy(("proxy", 1080), "u" * 256, "p"), TO_A_NAME, b"\x05\x02",
            "the username is 256 bytes long, but SOCKS5 takes 255",
        ),
        (
            Proxy(("proxy", 1080), "u", "p" * 256), TO_A_NAME, b"\x05\x02",
            "the password is 256 bytes long, but SOCKS5 takes 255",
        ),
        *((PLAIN, TO_A_NAME, bytes([5, 0, 5, code, 0, 1]), f"db:27017: {why}") for code, why in REFUSALS.items()),
    ],
)  # fmt: skip
def test_a_proxy_that_does_not(proxy: Proxy, destination: Any, answers: bytes, why: str) -> None:
    with pytest.raises(ProxyError) as caught:
        connect_through(proxy, Played(answers), destination)  # type: ignore[arg-type]
    assert str(caught.value) == f"SOCKS5 proxy proxy:1080: {why}"


@pytest.mark.parametrize("length", [0, 255])
def test_the_longest_name(length: int) -> None:
    transport: Any = Played(b"\x05\x00" + GRANTED)
    connect_through(PLAIN, transport, ("h" * length, 1))
    assert transport.sent[6:] == b"\x03" + bytes([length]) + b"h" * length + b"\x00\x01"


def test_a_proxy_does_not_show_its_account() -> None:
    assert "user" not in repr(WITH_ACCOUNT) and "ssword" not in repr(WITH_ACCOUNT)
