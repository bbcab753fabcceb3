"""A protocol error states the invalid number in a malformed message, and the permitted values."""

from __future__ import annotations

import struct
from typing import Any

import bson
import pytest
from bson.codec_options import DEFAULT_CODEC_OPTIONS
from bson.raw_bson import RawBSONDocument

from gmongo.errors import ProtocolError
from gmongo.wire.checksum import append_checksum
from gmongo.wire.message import (
    OP_MSG,
    OP_REPLY,
    OutOfStepError,
    allows_stream,
    decode_header,
    decode_reply,
    encode_op_msg,
    encode_op_query,
    encode_single_document_op_msg,
    join_buffers,
)
from gmongo.wire.reply import Batch, cut_batch
from tests.support.cases import with_cases

EMPTY = bson.encode({})


def header(length: int, response_to: int) -> bytes:
    return struct.pack("<iiii", length, 7, response_to, OP_MSG)


@with_cases
def test_invalid_message_header_raises_out_of_step_error(
    length: int, response_to: int, other_request_id: int | None, message: str | None
) -> None:
    data = b"before" + header(length, response_to)
    if message is None:
        assert decode_header(data, 6, 100, 5, other_request_id) == (length, 7, response_to, OP_MSG)
        return
    with pytest.raises(OutOfStepError) as caught:
        decode_header(data, 6, 100, 5, other_request_id)
    assert str(caught.value) == message


def op_msg_payload(*sections: bytes, flags: int = 0) -> bytes:
    return struct.pack("<I", flags) + b"".join(sections)


def op_reply_payload(document_count: int, *encoded: bytes) -> bytes:
    return struct.pack("<iqii", 0, 0, 0, document_count) + b"".join(encoded)


BODY = b"\x00" + EMPTY
WITH_CHECKSUM = append_checksum(struct.pack("<iiiiIbi", 29, 0, 0, OP_MSG, 1, 0, 4))[16:]
SEQUENCE = b"\x01" + struct.pack("<i", 7) + b"ab\x00"


@pytest.mark.parametrize(
    ("opcode", "payload", "message"),
    [
        (2004, b"", "opcode 2004 is not the opcode of a reply (2013 or 1)"),
        (OP_MSG, b"", "OP_MSG of 0 bytes after the header is too short for a document"),
        (OP_MSG, op_msg_payload(BODY)[:-1], "OP_MSG of 9 bytes after the header is too short for a document"),
        (OP_MSG, op_msg_payload(BODY, flags=4), "OP_MSG flags 0x4 have an unknown required bit"),
        (OP_MSG, op_msg_payload(BODY, flags=1 << 15), "OP_MSG flags 0x8000 have an unknown required bit"),
        (OP_MSG, op_msg_payload(SEQUENCE), "OP_MSG has no body section"),
        (OP_MSG, WITH_CHECKSUM, "OP_MSG section length 4 is not between 5 and the 4 bytes that remain"),
        (OP_MSG, op_msg_payload(BODY, BODY), "OP_MSG has a section of kind 0 where a document sequence was expected"),
        (
            OP_MSG,
            op_msg_payload(b"\x02" + EMPTY),
            "OP_MSG has a section of kind 2 where a document sequence was expected",
        ),
        *(
            (
                OP_MSG,
                op_msg_payload(BODY, b"\x01" + bytes(count)),
                f"OP_MSG section length {-1 if count < 4 else 0} is not between 5 and the {count} bytes that remain",
            )
            for count in range(6)
        ),
        *(
            (
                OP_MSG,
                op_msg_payload(BODY, b"\x01" + struct.pack("<i", size) + b"\x00" * 4),
                f"OP_MSG section length {size} is not between 5 and the 8 bytes that remain",
            )
            for size in (-1, 4, 9)
        ),
        *(
            (
                OP_MSG,
                op_msg_payload(b"\x00" + struct.pack("<i", size) + b"\x00"),
                f"OP_MSG section length {size} is not between 5 and the 5 bytes that remain",
            )
            for size in (-1, 4, 6)
        ),
        (
            OP_REPLY,
            op_reply_payload(1, EMPTY)[:-1],
            "OP_REPLY of 24 bytes after the header is too short for a document",
        ),
        (
            OP_REPLY,
            op_reply_payload(0, EMPTY),
            "OP_REPLY must have one document of 5 bytes, but has 0 documents, the first of 5 bytes",
        ),
        (
            OP_REPLY,
            op_reply_payload(2, EMPTY),
            "OP_REPLY must have one document of 5 bytes, but has 2 documents, the first of 5 bytes",
        ),
        (
            OP_REPLY,
            op_reply_payload(1, EMPTY, EMPTY),
            "OP_REPLY must have one document of 10 bytes, but has 1 documents, the first of 5 bytes",
        ),
    ],
)
def test_malformed_reply_raises_protocol_error(opcode: int, payload: bytes, message: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_reply(opcode, memoryview(payload))
    assert str(caught.value) == message


def test_op_query_is_encoded_with_its_header_and_fields() -> None:
    [query] = encode_op_query(7, "admin.$cmd", EMPTY)
    assert query == struct.pack("<iiiii", 44, 7, 0, 2004, 4) + b"admin.$cmd\x00" + struct.pack("<ii", 0, -1) + EMPTY


@pytest.mark.parametrize("flags", [0, 1, 2, 1 << 16, 3 | 1 << 16])
def test_request_allows_stream_of_replies_if_exhaust_flag_is_set(flags: int) -> None:
    assert allows_stream(encode_op_msg(1, flags, EMPTY)) is bool(flags >> 16)


@with_cases
def test_small_buffers_are_joined_up_to_64_kib(sizes: list[int], joined_sizes: list[int]) -> None:
    assert [len(piece) for piece in join_buffers(bytes(size) for size in sizes)] == joined_sizes


@pytest.mark.parametrize(("size", "is_joined"), [(65535, True), (65536, True), (65537, False), (100_000, False)])
def test_encoder_does_not_copy_documents_of_message_above_64_kib(size: int, is_joined: bool) -> None:
    documents = [EMPTY, bytes(size - 41 - len(EMPTY))]
    buffers = encode_op_msg(7, 0, EMPTY, [("documents", documents)])
    whole_message = b"".join(buffers)
    assert struct.unpack_from("<i", whole_message)[0] == len(whole_message) == size
    assert len(buffers) == (1 if is_joined else 3)
    other_buffers = encode_single_document_op_msg(7, 0, EMPTY, b"documents\x00", documents[1] + EMPTY)
    assert b"".join(other_buffers) == b"".join(encode_op_msg(7, 0, EMPTY, [("documents", [documents[1] + EMPTY])]))
    assert len(other_buffers) == (1 if is_joined else 2)


def document_with_field(bson_type: int, value: bytes, name: bytes = b"cursor") -> bytes:
    content = bytes([bson_type]) + name + b"\x00" + value + b"\x00"
    return struct.pack("<i", len(content) + 4) + content


TWO_CURSORS = b"\x03cursor\x00" + bson.encode({"firstBatch": [], "id": 0}) + b"\x10cursor\x00\x01\x00\x00\x00"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"", "a reply of 0 bytes does not have the length that it states"),
        (b"\x05\x00\x00\x00", "a reply of 4 bytes does not have the length that it states"),
        (EMPTY + b"\x00", "a reply of 6 bytes does not have the length that it states"),
        (document_with_field(0x20, b""), "a reply has an element of the unknown BSON type 0x20"),
        (document_with_field(2, struct.pack("<i", -1)), "a reply has an element with the length -1"),
        (document_with_field(3, struct.pack("<i", 4)), "a reply has an element with the length 4"),
        (document_with_field(4, struct.pack("<i", 0)), "a reply has an element with the length 0"),
        (document_with_field(1, b"1234567"), "a reply has an element of 16 bytes, but only 15 bytes remain"),
        (
            document_with_field(3, struct.pack("<i", 100)),
            "a reply has an element of 108 bytes, but only 12 bytes remain",
        ),
        (document_with_field(3, b""), "a reply ends inside an element"),
        (struct.pack("<i", 6) + b"\x01x", "a reply ends inside an element"),
        (
            struct.pack("<i", len(TWO_CURSORS) + 5) + TWO_CURSORS + b"\x00",
            "a reply has two fields with the name 'cursor'",
        ),
    ],
)
def test_malformed_field_of_reply_raises_protocol_error(reply: bytes, message: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        cut_batch(reply, DEFAULT_CODEC_OPTIONS)
    assert str(caught.value) == message


class CustomDict(dict[str, Any]):
    """A custom document class."""


def test_error_reply_is_dict_if_document_class_is_no_dict() -> None:
    reply = bson.encode({"ok": 0, "errmsg": "no"})
    options = DEFAULT_CODEC_OPTIONS.with_options(document_class=RawBSONDocument)
    assert type(cut_batch(reply, options)) is dict
    assert cut_batch(reply, DEFAULT_CODEC_OPTIONS, options) == {"ok": 0, "errmsg": "no"}


def batch_of(*sizes: int) -> Batch:
    documents = {str(number): {"x": bytes(size)} for number, size in enumerate(sizes)}
    return Batch(bson.encode(documents), DEFAULT_CODEC_OPTIONS)


@with_cases
def test_batch_is_decoded_in_runs_of_32_kib(sizes: list[int], run_lengths: list[int]) -> None:
    batch, second_batch = batch_of(*sizes), batch_of(*sizes)
    decoded_runs = []
    while run := batch.decode_run():
        decoded_runs.append([len(document["x"]) for document in run])
    assert [len(run) for run in decoded_runs] == run_lengths and [size for run in decoded_runs for size in run] == sizes
    assert batch.decode_run() == [] and len(list(batch)) == len(sizes) == second_batch.count()
    ahead_count = 0
    while second_batch.decode_ahead():
        ahead_count += 1
    assert ahead_count == len(run_lengths)
    assert [len(second_batch.decode_run()) for _ in run_lengths] == run_lengths and second_batch.count() == 0


@pytest.mark.parametrize("key", ["0", "1"])
@pytest.mark.parametrize("value", [5, "text", [1], None])
@pytest.mark.parametrize(
    "options", [DEFAULT_CODEC_OPTIONS, DEFAULT_CODEC_OPTIONS.with_options(document_class=CustomDict)]
)
def test_batch_element_that_is_no_document_raises_protocol_error(key: str, value: Any, options: Any) -> None:
    array = bson.encode({"0": {"a": 1}, "1": {"a": 2}, key: value})
    kind = {int: "0x10", str: "0x2", list: "0x4", type(None): "0xa"}[type(value)]
    for call in (lambda batch: batch.decode_run(), lambda batch: batch.raw()):
        with pytest.raises(ProtocolError) as caught:
            call(Batch(array, options))
        message = f"a batch must contain only documents, but has an element of the BSON type {kind}"
        assert str(caught.value) == message
    batch = Batch(array, options)
    assert not batch.decode_ahead()
    with pytest.raises(ProtocolError):
        batch.decode_run()


@pytest.mark.parametrize("size", [-1, 4, 100])
@pytest.mark.parametrize("index", [0, 1])
def test_batch_document_with_invalid_length_raises_protocol_error(size: int, index: int) -> None:
    array = bytearray(bson.encode({"0": {"a": 1}, "1": {"a": 2}}))
    offset = 7 + index * (12 + 3)
    assert struct.unpack_from("<i", array, offset)[0] == 12
    struct.pack_into("<i", array, offset, size)
    for call in (lambda batch: batch.decode_run(), lambda batch: batch.count(), lambda batch: batch.raw()):
        with pytest.raises(ProtocolError) as caught:
            call(Batch(bytes(array), DEFAULT_CODEC_OPTIONS))
        left = len(array) - offset + 2
        words = f"the length {size}" if size < 5 else f"an element of {size + 3} bytes, but only {left} bytes remain"
        assert words in str(caught.value)
