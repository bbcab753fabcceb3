"""CRC-32C, the optional checksum at the end of an OP_MSG. Sources: the OP_MSG specification and RFC 3720.

The driver sends no checksums. MongoDB servers send checksums only to clients that send checksums, but
some compatible servers always send checksums, which the driver verifies. This Python code is slow (about
8 MB per second), but needs no library.
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
_CHECKSUM_FORMAT = struct.Struct("<I")
CHECKSUM_SIZE = _CHECKSUM_FORMAT.size
# Number of bytes that one step processes. A step takes about 1 ms.
_STEP_SIZE = 8 * 1024

Buffer: TypeAlias = bytes | bytearray | memoryview


def crc32c(data: Buffer, value: int = 0) -> int:
    """Continue the CRC-32C `value` of earlier data with `data`, and return the result. May switch greenlets."""
    view, table, work = memoryview(data), _table(), LongWork()
    value ^= 0xFFFFFFFF
    for start in range(0, len(view), _STEP_SIZE):
        for byte in view[start : start + _STEP_SIZE]:
            value = table[(value ^ byte) & 0xFF] ^ value >> 8
        work.checkpoint()
    return value ^ 0xFFFFFFFF


@cache
def _table() -> Sequence[int]:
    """Return the CRC remainder of each possible byte."""
    remainders = []
    for byte in range(256):
        for _bit in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        remainders.append(byte)
    return remainders


def append_checksum(message: bytes) -> bytes:
    """Return `message` with its checksum. The length and the flags in `message` must already include the checksum."""
    return message + _CHECKSUM_FORMAT.pack(crc32c(message))


def verify(header: Buffer, payload: memoryview) -> None:
    """Raise ProtocolError if the checksum at the end of an OP_MSG is wrong."""
    actual = crc32c(payload[:-CHECKSUM_SIZE], crc32c(header))
    (stated,) = _CHECKSUM_FORMAT.unpack_from(payload, len(payload) - CHECKSUM_SIZE)
    if actual != stated:
        raise ProtocolError(f"OP_MSG has the checksum {stated:#010x}, but should have {actual:#010x}")
