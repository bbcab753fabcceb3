"""Compression of requests and decompression of replies (OP_COMPRESSED)."""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gevent import get_hub

from gmongo._native_threads import result_or_exception
from gmongo.errors import ProtocolError
from gmongo.wire.message import HEADER_SIZE, OP_COMPRESSED, OP_MSG

# Size in bytes. A native thread processes larger messages, which would block the event loop.
_THREAD_THRESHOLD = 128 * 1024
# Offset of the command name in an OP_MSG: after header, flags, section kind, document length and
# element type.
_NAME_OFFSET = HEADER_SIZE + 4 + 1 + 4 + 1
_UNCOMPRESSED_COMMANDS = frozenset(
    b"hello ismaster saslstart saslcontinue getnonce authenticate createuser updateuser copydbsaslstart "
    b"copydbgetnonce copydb".split()
)
_HEADER_AND_WRAPPER = struct.Struct("<iiiiiiB")
_WRAPPER = struct.Struct("<iiB")
_SNAPPY_MAX_VARINT_SIZE = 5

NOOP = 0
SNAPPY = 1
ZLIB = 2
ZSTD = 3
_COMPRESSOR_IDS = {"snappy": SNAPPY, "zlib": ZLIB, "zstd": ZSTD}
# Name of a compressor -> (Python module, pip requirement that installs the module).
_LIBRARIES = {"snappy": ("snappy", "gmongo[snappy]"), "zstd": ("zstandard", "gmongo[zstd]")}


class Compressor(NamedTuple):
    """Compressor of the requests of a connection, with its ID in OP_COMPRESSED."""

    id: int
    compress: Callable[[bytes], bytes]


def missing_package(name: str) -> str | None:
    """Return the pip requirement of a compressor whose module is missing, or None if no module is missing."""
    if name not in _LIBRARIES:
        return None
    module_name, requirement = _LIBRARIES[name]
    try:
        importlib.import_module(module_name)
    except ImportError:
        return requirement
    return None


def make_compressor(name: str, zlib_level: int) -> Compressor:
    """Return a compressor. `zlib_level` is 0 to 9 (best compression), or -1 for zlib's default."""
    if name == "zlib":
        return Compressor(ZLIB, lambda data: zlib.compress(data, zlib_level))
    if name == "snappy":
        return Compressor(SNAPPY, importlib.import_module("snappy").compress)
    zstandard = importlib.import_module("zstandard")
    # Compressor objects are not thread-safe, so each message needs a new object.
    return Compressor(ZSTD, lambda data: zstandard.ZstdCompressor().compress(data))


def compress_message(buffers: Sequence[bytes], compressor: Compressor) -> Sequence[bytes]:
    """Wrap a message in OP_COMPRESSED if its command allows compression. May switch greenlets."""
    first = buffers[0]
    if struct.unpack_from("<i", first, 12)[0] != OP_MSG:
        return buffers  # the message is an OP_QUERY with the legacy hello
    name = first[_NAME_OFFSET : first.index(0, _NAME_OFFSET)].lower()
    if name in _UNCOMPRESSED_COMMANDS:
        return buffers
    message = b"".join(buffers)
    _length, request_id, response_to, opcode = struct.unpack_from("<iiii", message)
    payload = _run_without_blocking(compressor.compress, message[HEADER_SIZE:], len(message))
    if isinstance(payload, Exception):
        raise payload
    size = len(message) - HEADER_SIZE
    length = _HEADER_AND_WRAPPER.size + len(payload)
    head = _HEADER_AND_WRAPPER.pack(length, request_id, response_to, OP_COMPRESSED, opcode, size, compressor.id)
    return [head + payload]


def decompress_message(payload: memoryview, max_message_size: int) -> tuple[int, memoryview]:
    """Return opcode and payload of a compressed message. May switch greenlets for a long message."""
    if len(payload) < _WRAPPER.size:
        raise ProtocolError(f"OP_COMPRESSED of {len(payload)} bytes after the header is too short")
    opcode, size, identifier = _WRAPPER.unpack_from(payload)
    if not 0 <= size <= max_message_size:
        raise ProtocolError(f"OP_COMPRESSED claims {size} bytes, which is not between 0 and {max_message_size}")
    if opcode == OP_COMPRESSED:
        raise ProtocolError("OP_COMPRESSED contains another OP_COMPRESSED")
    decompress = _DECOMPRESSORS.get(identifier)
    if decompress is None:
        raise ProtocolError(f"OP_COMPRESSED names the compressor {identifier}, which is unknown")
    content = bytes(payload[_WRAPPER.size :])
    # `_run_without_blocking` returns, but does not raise, an exception of `decompress`
    data = _run_without_blocking(decompress, content, size, size)
    if isinstance(data, ImportError):
        raise ProtocolError(f"OP_COMPRESSED needs a library that is not installed: {data}") from data
    if isinstance(data, Exception):  # each library has its own exception class
        raise ProtocolError(f"OP_COMPRESSED cannot be decompressed: {data or type(data).__name__}") from data
    if len(data) != size:
        raise ProtocolError(f"OP_COMPRESSED claims {size} bytes, but contains {len(data)}")
    return opcode, memoryview(data)


def _run_without_blocking(work: Callable[..., bytes], data: bytes, size: int, *arguments: int) -> bytes | Exception:
    """Return the result or the exception of `work`. A native thread processes large data."""
    if size < _THREAD_THRESHOLD:
        return result_or_exception(work, data, *arguments)
    outcome: bytes | Exception = get_hub().threadpool.apply(result_or_exception, (work, data, *arguments))
    return outcome


def _decompress_snappy(data: bytes, size: int) -> bytes:
    if (length := _read_snappy_length(data)) != size:
        raise ValueError(f"it announces {size} bytes, but its content begins with the length {length}")
    uncompressed: bytes = importlib.import_module("snappy").uncompress(data)
    return uncompressed


def _read_snappy_length(data: bytes) -> int:
    """Return the uncompressed length at the start of a snappy block (seven bits per byte)."""
    value = 0
    for position, byte in enumerate(data[:_SNAPPY_MAX_VARINT_SIZE]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value
    raise ValueError("its content begins with an invalid length")


def _decompress_zlib(data: bytes, size: int) -> bytes:
    stream = zlib.decompressobj()
    inflated = stream.decompress(data, size + 1)  # `zlib` interprets the limit 0 as no limit
    if not stream.eof and len(inflated) <= size:
        raise ValueError("it is truncated")
    return inflated


def _decompress_zstd(data: bytes, size: int) -> bytes:
    zstandard = importlib.import_module("zstandard")
    announced = zstandard.frame_content_size(data)
    if announced not in (-1, size):  # -1 means that the frame does not state its size
        raise ValueError(f"it announces {size} bytes, but its frame announces {announced}")
    uncompressed: bytes = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    return uncompressed


_DECOMPRESSORS: dict[int, Callable[[bytes, int], bytes]] = {
    NOOP: lambda data, _size: data,
    SNAPPY: _decompress_snappy,
    ZLIB: _decompress_zlib,
    ZSTD: _decompress_zstd,
}


def choose_compressor(offered: Sequence[str], accepted: object, zlib_level: int) -> Compressor | None:
    """Return the first compressor in `offered` that the server accepts, or None."""
    if not offered or not isinstance(accepted, (list, tuple)):
        return None
    name = next((name for name in offered if name in accepted and name in _COMPRESSOR_IDS), None)
    return None if name is None else make_compressor(name, zlib_level)
