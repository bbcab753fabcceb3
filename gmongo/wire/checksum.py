"""CRC-32C, the optional checksum at the end of an OP_MSG. Sources: the OP_MSG specification and RFC 3720.

A MongoDB server sends checksums only to a client that sends checksums. gmongo sends no checksums, but verifies the
checksums of other servers. This Python code is slow (about 10 MB per second), but needs no library.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from gmongo._background import LongWork
from gmongo.errors import ProtocolError

# Castagnoli polynomial of CRC-32C, with its bits in reverse order.
_POLYNOMIAL = 0x82F63B78
_WORDS = struct.Struct("<II")
_CHECKSUM = struct.Struct("<I")
CHECKSUM_SIZE = _CHECKSUM.size
# Number of bytes that one step processes. A step takes about 1 ms.
_PIECE = 8 * 1024

Buffer: TypeAlias = bytes | bytearray | memoryview


def crc32c(data: Buffer, value: int = 0) -> int:
    """Return the CRC-32C of `data`. `value` is the CRC-32C of all data before `data`. May switch greenlets."""
    view = memoryview(data)
    work = LongWork()
    value ^= 0xFFFFFFFF
    for start in range(0, len(view), _PIECE):
        value = _add_piece(view[start : start + _PIECE], value)
        work.checkpoint()
    return value ^ 0xFFFFFFFF


def _add_piece(piece: memoryview, value: int) -> int:
    t0, t1, t2, t3, t4, t5, t6, t7 = _tables()
    aligned = len(piece) - len(piece) % _WORDS.size
    for low, high in _WORDS.iter_unpack(piece[:aligned]):
        low ^= value
        value = (
            t7[low & 0xFF] ^ t6[low >> 8 & 0xFF] ^ t5[low >> 16 & 0xFF] ^ t4[low >> 24]
            ^ t3[high & 0xFF] ^ t2[high >> 8 & 0xFF] ^ t1[high >> 16 & 0xFF] ^ t0[high >> 24]
        )  # fmt: skip
    for byte in piece[aligned:]:
        value = t0[(value ^ byte) & 0xFF] ^ value >> 8
    return value


@cache
def _tables() -> Sequence[Sequence[int]]:
    """Return eight tables. For each byte, table n contains the CRC remainder of this byte followed by n zero bytes."""
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
    """Append the checksum to a message. The length and the flags of `message` must already include the checksum."""
    return message + _CHECKSUM.pack(crc32c(message))


def verify(header: Buffer, payload: memoryview) -> None:
    """Raise ProtocolError if the checksum at the end of an OP_MSG is wrong."""
    actual = crc32c(payload[:-CHECKSUM_SIZE], crc32c(header))
    (stated,) = _CHECKSUM.unpack_from(payload, len(payload) - CHECKSUM_SIZE)
    if actual != stated:
        raise ProtocolError(f"OP_MSG has the checksum {stated:#010x}, but should have {actual:#010x}")
