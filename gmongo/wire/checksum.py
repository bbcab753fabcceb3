"""CRC-32C, the checksum that an OP_MSG may end with (OP_MSG specification, "sections"; RFC 3720, appendix B.4).

Servers send it only to clients that send it, and gmongo does not; so what is here is for the message that has one all
the same. That is why it is in Python, at some 10 MB in a second, rather than a library that every user would have to
install.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from gmongo._background import LongWork
from gmongo.errors import ProtocolError

# Of Castagnoli, with its bits reversed.
_POLYNOMIAL = 0x82F63B78
_WORDS = struct.Struct("<II")
_CHECKSUM = struct.Struct("<I")
CHECKSUM_SIZE = _CHECKSUM.size
# About a millisecond of work; a multiple of the size of two words.
_PIECE = 8 * 1024

Buffer: TypeAlias = bytes | bytearray | memoryview


def crc32c(data: Buffer, value: int = 0) -> int:
    """The CRC-32C of `data`. Others have their turns while it is computed.

    :param value: the checksum of what comes before.
    """
    view = memoryview(data)
    work = LongWork()
    value ^= 0xFFFFFFFF
    for start in range(0, len(view), _PIECE):
        value = _continued(view[start : start + _PIECE], value)
        work.checkpoint()
    return value ^ 0xFFFFFFFF


def _continued(piece: memoryview, value: int) -> int:
    t0, t1, t2, t3, t4, t5, t6, t7 = _tables()
    whole = len(piece) - len(piece) % _WORDS.size
    for low, high in _WORDS.iter_unpack(piece[:whole]):
        low ^= value
        value = (
            t7[low & 0xFF] ^ t6[low >> 8 & 0xFF] ^ t5[low >> 16 & 0xFF] ^ t4[low >> 24]
            ^ t3[high & 0xFF] ^ t2[high >> 8 & 0xFF] ^ t1[high >> 16 & 0xFF] ^ t0[high >> 24]
        )  # fmt: skip
    for byte in piece[whole:]:
        value = t0[(value ^ byte) & 0xFF] ^ value >> 8
    return value


@cache
def _tables() -> Sequence[Sequence[int]]:
    """The first has the remainder of each byte, each further one that of a byte with one more zero byte behind it."""
    first = []
    for byte in range(256):
        for _bit in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        first.append(byte)
    tables = [first]
    for _ in range(7):
        tables.append([first[value & 0xFF] ^ value >> 8 for value in tables[-1]])
    return tables


def with_checksum(message: bytes) -> bytes:
    """A message whose length and flags take a checksum into account already, with that checksum at its end."""
    return message + _CHECKSUM.pack(crc32c(message))


def verify(header: Buffer, payload: memoryview) -> None:
    """Check the checksum at the end of a message.

    :param header: of the message.
    :param payload: what follows the header.
    :raises ProtocolError: it is another one than that of the message.
    """
    found = crc32c(payload[:-CHECKSUM_SIZE], crc32c(header))
    (stated,) = _CHECKSUM.unpack_from(payload, len(payload) - CHECKSUM_SIZE)
    if found != stated:
        raise ProtocolError(f"OP_MSG has the checksum {stated:#010x}, but its bytes have {found:#010x}")
