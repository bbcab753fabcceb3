"""The server side of OP_COMPRESSED. snappy and zstd need additional Python packages."""

from __future__ import annotations

import importlib.util
import struct
import zlib
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import NamedTuple

from gmongo.testing.simulation.framing import HEADER, MalformedMessage
from gmongo.wire.message import HEADER_SIZE, OP_COMPRESSED

_COMPRESSED_FIELDS = struct.Struct("<iiB")
_MAX_SIZE = 48_000_000


class Compressor(NamedTuple):
    """A compression algorithm."""

    name: str  # the name of the algorithm in the handshake
    number: int  # the number of the algorithm in OP_COMPRESSED
    module: str  # the name of the Python module that implements the algorithm
    compress: Callable[[bytes], bytes]  # the function that compresses bytes
    decompress: Callable[[bytes], bytes]  # the function that decompresses bytes


_COMPRESSORS = (
    Compressor("noop", 0, "zlib", bytes, bytes),
    Compressor(
        "snappy", 1, "snappy",
        lambda data: bytes(import_module("snappy").compress(data)),
        lambda data: bytes(import_module("snappy").uncompress(data)),
    ),
    Compressor("zlib", 2, "zlib", zlib.compress, zlib.decompress),
    Compressor(
        "zstd", 3, "zstandard",
        lambda data: bytes(import_module("zstandard").compress(data)),
        lambda data: bytes(import_module("zstandard").ZstdDecompressor().decompress(data, max_output_size=_MAX_SIZE)),
    ),
)  # fmt: skip
COMPRESSORS_BY_NAME = {each.name: each for each in _COMPRESSORS}
_COMPRESSORS_BY_NUMBER = {each.number: each for each in _COMPRESSORS}


def check_compressors(names: Iterable[str]) -> tuple[str, ...]:
    """Check that the server can use the compressors, and return the names as a tuple."""
    compressors = tuple(names)
    for name in compressors:
        if name not in COMPRESSORS_BY_NAME or name == "noop":
            raise ValueError(f"compressors has {name!r}, which is none of 'snappy', 'zlib', 'zstd'")
        if importlib.util.find_spec(COMPRESSORS_BY_NAME[name].module) is None:
            module = COMPRESSORS_BY_NAME[name].module
            raise RuntimeError(f"compressor {name!r} needs the module {module!r}, which is not installed")
    return compressors


def decompress(payload: bytes) -> tuple[int, bytes, Compressor]:
    """Return the original opcode, the decompressed payload and the compressor of an OP_COMPRESSED message."""
    try:
        opcode, size, number = _COMPRESSED_FIELDS.unpack_from(payload)
        compressor = _COMPRESSORS_BY_NUMBER[number]
        data = compressor.decompress(payload[_COMPRESSED_FIELDS.size :])
    except Exception as error:  # each compression library raises exceptions of its own classes
        raise MalformedMessage(f"OP_COMPRESSED cannot be read: {error!r}") from error
    if len(data) != size:
        raise MalformedMessage(f"OP_COMPRESSED has {len(data)} bytes, but its header has the size {size}")
    return opcode, data, compressor


def compress(message: bytes, compressor: Compressor) -> bytes:
    """Return the OP_COMPRESSED message that contains `message`."""
    _length, request_id, response_to, opcode = HEADER.unpack_from(message)
    size = len(message) - HEADER_SIZE
    payload = _COMPRESSED_FIELDS.pack(opcode, size, compressor.number) + compressor.compress(message[HEADER_SIZE:])
    return HEADER.pack(HEADER_SIZE + len(payload), request_id, response_to, OP_COMPRESSED) + payload
