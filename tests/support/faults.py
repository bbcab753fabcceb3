"""Faults of replies. A fault replaces the transmission of a message on a connection."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from gevent.event import Event

from tests.support.framing import BODY_AT, HEADER

if TYPE_CHECKING:
    from tests.support.scripted_server import ServerConnection

Fault = Callable[["ServerConnection", bytes], None]


def cut(at: int) -> Fault:
    """Close the connection after `at` bytes of the reply."""

    def fault(peer: ServerConnection, message: bytes) -> None:
        peer.send(message[:at])
        peer.close()

    return fault


def with_false_header(length: int | None = None, response_to: int | None = None, opcode: int | None = None) -> Fault:
    """Send the reply with false fields in its header."""

    def fault(peer: ServerConnection, message: bytes) -> None:
        real = HEADER.unpack_from(message)
        forged_fields = (length, None, response_to, opcode)
        fields = (new if new is not None else old for new, old in zip(forged_fields, real, strict=True))
        peer.send(HEADER.pack(*fields) + message[16:])

    return fault


def malformed(peer: ServerConnection, message: bytes) -> None:
    """Send a reply with valid framing and a malformed document."""
    start = BODY_AT[HEADER.unpack_from(message)[3]]
    body = len(message) - start
    peer.send(message[:start] + struct.pack("<i", body) + b"\xee" * (body - 5) + b"\x00")


def silent(peer: ServerConnection, message: bytes) -> None:
    """Send no reply."""


def held(gate: Event) -> Fault:
    """Send the reply when `gate` opens."""

    def fault(peer: ServerConnection, message: bytes) -> None:
        gate.wait()
        peer.send(message)

    return fault
