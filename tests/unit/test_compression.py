"""OP_COMPRESSED: compression, decompression and malformed messages."""

from __future__ import annotations

import struct
import threading
import zlib

import bson
import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gmongo.errors import ProtocolError
from gmongo.wire import compression
from gmongo.wire.compression import (
    Compressor,
    choose_compressor,
    compress_message,
    decompress_message,
    make_compressor,
    missing_package,
)
from gmongo.wire.message import OP_COMPRESSED, OP_MSG, encode_op_msg, encode_op_query
from tests.support.cases import with_cases

COMPRESSOR_NAMES = ["snappy", "zlib", "zstd"]
COMPRESSOR_IDS = {"snappy": 1, "zlib": 2, "zstd": 3}
MAX_MESSAGE_SIZE = 48_000_000


SENSITIVE_COMMANDS = [
    "hello", "isMaster", "ismaster", "saslStart", "saslContinue", "getnonce", "authenticate",
    "createUser", "updateUser", "copydbSaslStart", "copydbgetnonce", "copydb",
]  # fmt: skip


@pytest.fixture(autouse=True)
def require_compression_libraries():
    for name in COMPRESSOR_NAMES:
        if missing_package(name):
            pytest.skip(f"{name} is not installed")


def op_compressed(content, size, identifier=2, opcode=OP_MSG):
    return memoryview(struct.pack("<iiB", opcode, size, identifier) + content)


@pytest.mark.parametrize("name", COMPRESSOR_NAMES)
@settings(max_examples=60)
@given(
    fields=st.dictionaries(st.text("abc", min_size=1, max_size=5), st.text() | st.binary(max_size=2000), max_size=5),
    documents=st.lists(st.binary(max_size=500), max_size=5),
)
def test_decompression_restores_compressed_message(name, fields, documents):
    body = bson.encode({"insert": "c", **{f"f{key}": value for key, value in fields.items()}})
    encoded_documents = [bson.encode({"d": document}) for document in documents]
    plain = b"".join(encode_op_msg(7, 0, body, [("documents", encoded_documents)] if encoded_documents else ()))
    [message] = compress_message([plain[:40], plain[40:]] if len(plain) > 50 else [plain], make_compressor(name, -1))
    length, request_id, response_to, opcode = struct.unpack_from("<iiii", message)
    assert (length, request_id, response_to, opcode) == (len(message), 7, 0, OP_COMPRESSED)
    assert message[24] == COMPRESSOR_IDS[name]
    opcode, payload = decompress_message(memoryview(message)[16:], MAX_MESSAGE_SIZE)
    assert opcode == OP_MSG
    assert bytes(payload) == plain[16:]


@pytest.mark.parametrize("step", ["compressing", "decompressing"])
@pytest.mark.parametrize("size", [10_000, 10_000_000])
def test_only_long_message_is_compressed_in_thread(monkeypatch, step, size):
    """Check that the event loop runs while a thread compresses or decompresses a long message."""
    gate, thread_ids = threading.Event(), []

    def fake_codec(data, *_size):
        thread_ids.append(threading.get_ident())
        assert size == 10_000 or gate.wait(20), "the event loop is blocked"
        return b"x" * size

    body = bson.encode({"insert": "c", "data": b"x" * size})
    monkeypatch.setitem(compression._DECOMPRESSORS, compression.ZLIB, fake_codec)
    greenlet = gevent.spawn(gate.set)
    if step == "compressing":
        [message] = compress_message(encode_op_msg(7, 0, body), Compressor(compression.ZLIB, fake_codec))
        assert message.endswith(b"x" * size)
    else:
        wrapper = struct.pack("<iiB", OP_MSG, size, compression.ZLIB)
        assert bytes(decompress_message(memoryview(wrapper + b"x"), MAX_MESSAGE_SIZE)[1]) == b"x" * size
    assert (thread_ids == [threading.get_ident()]) is (size == 10_000)
    greenlet.join()


def test_sensitive_command_and_legacy_hello_are_not_compressed():
    messages = [encode_op_msg(7, 0, bson.encode({command: 1, "pwd": "secret"})) for command in SENSITIVE_COMMANDS]
    for buffers in [*messages, encode_op_query(7, "admin.$cmd", bson.encode({"ismaster": 1}))]:
        assert compress_message(buffers, make_compressor("zlib", -1)) is buffers


@pytest.mark.parametrize("level", [-1, 0, 1, 9])
def test_message_shrinks_at_each_zlib_level_except_0(level):
    buffers = encode_op_msg(7, 0, bson.encode({"insert": "c", "text": "abc" * 1000}))
    [message] = compress_message(buffers, make_compressor("zlib", level))
    assert (len(message) > 3000) is (level == 0)


@pytest.mark.parametrize("identifier", [0, 1, 2, 3])
@settings(max_examples=200)
@given(data=st.binary(max_size=200), size=st.integers(-10, 10_000))
def test_random_content_raises_protocol_error_or_has_stated_size(identifier, data, size):
    try:
        _opcode, payload = decompress_message(op_compressed(data, size, identifier), MAX_MESSAGE_SIZE)
    except ProtocolError:
        return
    assert len(payload) == size


def test_content_above_stated_or_permitted_size_raises():
    data = zlib.compress(bytes(60_000_000))
    with pytest.raises(ProtocolError, match="claims 100 bytes, but contains 101"):
        decompress_message(op_compressed(data, 100), MAX_MESSAGE_SIZE)
    with pytest.raises(ProtocolError, match="60000000 bytes, which is not between 0 and 48000000"):
        decompress_message(op_compressed(data, 60_000_000), MAX_MESSAGE_SIZE)


@pytest.mark.parametrize(
    ("payload", "error_text"),
    [
        (memoryview(b"12345678"), "too short"),
        (op_compressed(b"", -1), "-1 bytes"),
        (op_compressed(b"", 0, 4), "compressor 4, which is unknown"),
        (op_compressed(b"", 0, 0, OP_COMPRESSED), "contains another OP_COMPRESSED"),
    ],
)
def test_malformed_op_compressed_header_raises_protocol_error(payload, error_text):
    with pytest.raises(ProtocolError, match=rf"{error_text}(?!\w)"):
        decompress_message(payload, MAX_MESSAGE_SIZE)


def test_noop_compressor_returns_content_unchanged():
    assert bytes(decompress_message(op_compressed(b"abc", 3, 0), MAX_MESSAGE_SIZE)[1]) == b"abc"


def test_missing_library_is_named_and_raises_protocol_error(monkeypatch):
    def import_module(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(compression.importlib, "import_module", import_module)
    assert missing_package("zlib") is None
    assert missing_package("snappy") == "gmongo[snappy]"
    assert missing_package("zstd") == "gmongo[zstd]"
    with pytest.raises(ProtocolError, match="needs a library that is not installed"):
        decompress_message(op_compressed(b"abc", 3, 3), MAX_MESSAGE_SIZE)


CONTENT = b"x" * 5000


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("snappy", b"\x89\x27rest", "it announces 5000 bytes, but its content begins with the length 5001"),
        ("snappy", b"", "its content begins with an invalid length"),
        ("snappy", b"\x80\x80", "its content begins with an invalid length"),
        ("snappy", b"\x80" * 5 + b"\x01", "its content begins with an invalid length"),
        ("snappy", b"\x80" * 4 + b"\x01", "it announces 5000 bytes, but its content begins with the length 268435456"),
        ("zlib", zlib.compress(CONTENT)[:-6], "it is truncated"),
        ("zlib", zlib.compress(CONTENT)[:-1], "it is truncated"),
        ("zstd", make_compressor("zstd", -1).compress(CONTENT + b"x") if not missing_package("zstd") else b"",
         "it announces 5000 bytes, but its frame announces 5001"),
    ],
)  # fmt: skip
def test_error_of_malformed_compressed_content_states_reason(name, data, reason):
    with pytest.raises(ProtocolError) as caught:
        decompress_message(op_compressed(data, len(CONTENT), COMPRESSOR_IDS[name]), MAX_MESSAGE_SIZE)
    assert str(caught.value) == f"OP_COMPRESSED cannot be decompressed: {reason}"
    assert type(caught.value.__cause__) is ValueError


@with_cases
def test_first_offered_compressor_that_server_accepts_is_chosen(
    monkeypatch, offered_compressors, server_compressors, chosen_compressor
):
    compressor = choose_compressor(offered_compressors, server_compressors, -1)
    assert (compressor.id if compressor else None) == COMPRESSOR_IDS.get(chosen_compressor)
    monkeypatch.setattr(compression, "make_compressor", lambda name, level: (name, level))
    expected = None if chosen_compressor is None else (chosen_compressor, 7)
    assert choose_compressor(offered_compressors, server_compressors, 7) == expected
