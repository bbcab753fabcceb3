"""The bytes of SOCKS5 requests (RFC 1928 and 1929), and the reactions of the driver to replies of a
proxy.
"""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.wire.socks5 import Proxy, ProxyError, connect_through
from gmongo.wire.transport import TransportError
from tests.support.cases import with_cases

PROXY = Proxy(("proxy", 1080))
LOGIN_PROXY = Proxy(("proxy", 1080), "user", "pässword")
ACCOUNT_REQUEST = b"\x01\x04user\x09p\xc3\xa4ssword"
BOUND_ADDRESS = bytes(4) + b"\x00\x07"  # address and port from which the proxy connects to the server
GRANT_REPLY = b"\x05\x00\x00\x01" + BOUND_ADDRESS


class FixedProxyTransport:
    """A transport that records sent bytes, and reads the fixed replies of a proxy."""

    def __init__(self, replies: bytes) -> None:
        self.unread_replies = replies
        self.sent = b""

    def send_raw(self, data: bytes) -> None:
        self.sent += data

    def read_raw(self, size: int) -> bytes:
        if len(self.unread_replies) < size:
            raise TransportError("closed")
        data, self.unread_replies = self.unread_replies[:size], self.unread_replies[size:]
        return data


@with_cases
def test_connection_through_proxy_sends_expected_requests(
    account: list[str], replies: bytes, sent_bytes: bytes
) -> None:
    transport: Any = FixedProxyTransport(replies)
    connect_through(Proxy(("proxy", 1080), *account), transport, ("db", 27017))
    assert transport.sent == sent_bytes and transport.unread_replies == b""


@pytest.mark.parametrize(
    ("destination", "request_end"),
    [
        (("10.0.0.1", 27017), b"\x01\x0a\x00\x00\x01\x69\x89"),
        (("::1", 80), b"\x04" + bytes(15) + b"\x01\x00\x50"),
        (("db.example", 65535), b"\x03\x0adb.example\xff\xff"),
    ],
)
@pytest.mark.parametrize(
    "bound_address_reply",
    [GRANT_REPLY, b"\x05\x00\x00\x03\x02ab\x00\x01", b"\x05\x00\x00\x04" + bytes(18)],
)
@pytest.mark.parametrize("has_account", [False, True])
def test_each_kind_of_destination_and_bound_address_is_accepted(
    destination: Any, request_end: bytes, bound_address_reply: bytes, has_account: bool
) -> None:
    transport: Any = FixedProxyTransport(
        (b"\x05\x02\x01\x00" if has_account else b"\x05\x00") + bound_address_reply + b"rest"
    )
    connect_through(LOGIN_PROXY if has_account else PROXY, transport, destination)
    first_requests = b"\x05\x02\x00\x02" + ACCOUNT_REQUEST if has_account else b"\x05\x01\x00"
    assert transport.sent == first_requests + b"\x05\x01\x00" + request_end and transport.unread_replies == b"rest"


@with_cases
def test_refusal_or_invalid_reply_of_proxy_raises_proxy_error(
    account: list[str], host: str, replies: bytes, reason: str
) -> None:
    with pytest.raises(ProxyError) as caught:
        connect_through(Proxy(("proxy", 1080), *account), FixedProxyTransport(replies), (host, 27017))  # type: ignore[arg-type]
    assert str(caught.value) == f"SOCKS5 proxy proxy:1080: {reason}"


@pytest.mark.parametrize("length", [0, 255])
def test_host_name_of_up_to_255_bytes_is_sent(length: int) -> None:
    transport: Any = FixedProxyTransport(b"\x05\x00" + GRANT_REPLY)
    connect_through(PROXY, transport, ("h" * length, 1))
    assert transport.sent[6:] == b"\x03" + bytes([length]) + b"h" * length + b"\x00\x01"


def test_repr_of_proxy_hides_username_and_password() -> None:
    assert "user" not in repr(LOGIN_PROXY) and "ssword" not in repr(LOGIN_PROXY)
