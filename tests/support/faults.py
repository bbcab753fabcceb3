"""Faults: functions that a scripted server calls instead of sending a reply."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from gevent.event import Event

from tests.support.framing import BODY_OFFSETS, HEADER

if TYPE_CHECKING:
    from tests.support.scripted_server import ServerConnection

Fault = Callable[["ServerConnection", bytes], None]


def cut_reply(byte_count: int) -> Fault:
    """Return a fault that sends the first `byte_count` bytes of the reply and then closes the
    connection.
    """

    def fault(peer: ServerConnection, message: bytes) -> None:
        peer.send(message[:byte_count])
        peer.close()

    return fault


def with_false_header(length: int | None = None, response_to: int | None = None, opcode: int | None = None) -> Fault:
    """Return a fault that sends the reply with the given wrong values in the message header.

    If an argument is None, the header field keeps its correct value.
    """

    def fault(peer: ServerConnection, message: bytes) -> None:
        real_fields = HEADER.unpack_from(message)
        forged_fields = (length, None, response_to, opcode)
        fields = (new if new is not None else old for new, old in zip(forged_fields, real_fields, strict=True))
        peer.send(HEADER.pack(*fields) + message[16:])

    return fault


def send_malformed_reply(peer: ServerConnection, message: bytes) -> None:
    """Send a reply whose message header is valid and whose document is not valid BSON."""
    start = BODY_OFFSETS[HEADER.unpack_from(message)[3]]
    body_length = len(message) - start
    peer.send(message[:start] + struct.pack("<i", body_length) + b"\xee" * (body_length - 5) + b"\x00")


def send_no_reply(peer: ServerConnection, message: bytes) -> None:
    """Send nothing, and keep the connection open."""


def hold_reply(gate: Event) -> Fault:
    """Return a fault that sends the reply after the test has set `gate`."""

    def fault(peer: ServerConnection, message: bytes) -> None:
        gate.wait()
        peer.send(message)

    return fault
