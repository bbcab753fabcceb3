from __future__ import annotations

import struct

import bson
import pytest
from bson.codec_options import DEFAULT_CODEC_OPTIONS
from hypothesis import given
from hypothesis import strategies as st

from gmongo.cmap.hello import Hello
from gmongo.errors import ProtocolError
from gmongo.operations.write import Statements
from gmongo.wire.checksum import with_checksum
from gmongo.wire.message import (
    CHECKSUM_PRESENT,
    EXHAUST_ALLOWED,
    HEADER_SIZE,
    MORE_TO_COME,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    REQUEST_IDS,
    decode_header,
    decode_reply,
    encode_op_msg,
    encode_op_query,
    next_request_id,
)

LIMIT = 48_000_000
documents = st.dictionaries(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8),
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=20), st.binary(max_size=20)),
    max_size=6,
)
int32 = st.integers(-(2**31), 2**31 - 1)


def header(message):
    return struct.unpack_from("<iiii", message)


def payload_of(message):
    return memoryview(message)[HEADER_SIZE:]


def op_msg(body, flags=0, *, kind=0, rest=b""):
    return memoryview(struct.pack("<IB", flags, kind) + body + rest)


def op_reply(body, count=1):
    return memoryview(struct.pack("<iqii", 8, 0, 0, count) + body)


@given(documents, st.integers(1, 2**31 - 1), st.sampled_from([0, MORE_TO_COME, EXHAUST_ALLOWED]))
def test_message_without_sequence(document, request_id, flags):
    body = bson.encode(document)
    message = b"".join(encode_op_msg(request_id, flags, body))
    assert header(message) == (len(message), request_id, 0, OP_MSG)
    reply = decode_reply(OP_MSG, payload_of(message))
    assert (bytes(reply[0]), reply[1]) == (body, bool(flags & MORE_TO_COME))


@given(documents, st.lists(documents, min_size=1, max_size=5))
def test_message_with_sequence(document, beside):
    body, encoded = bson.encode(document), [bson.encode(each) for each in beside]
    message = b"".join(encode_op_msg(7, 0, body, [("documents", encoded)]))
    assert header(message)[0] == len(message)
    assert bytes(decode_reply(OP_MSG, payload_of(message))[0]) == body
    section = message[21 + len(body) :]
    assert (section[0], struct.unpack_from("<i", section, 1)[0]) == (1, len(section) - 1)
    identifier, _, documents_beside = section[5:].partition(b"\0")
    assert (identifier, documents_beside) == (b"documents", b"".join(encoded))


@given(documents)
def test_query(document):
    body = bson.encode(document)
    message = b"".join(encode_op_query(9, "admin.$cmd", body))
    assert header(message) == (len(message), 9, 0, OP_QUERY)
    secondary_ok = struct.unpack_from("<i", message, 16)[0]
    assert (secondary_ok, message[20:31]) == (4, b"admin.$cmd\0")
    assert struct.unpack_from("<ii", message, 31) == (0, -1)
    assert message[39:] == body


@given(documents)
def test_legacy_reply(document):
    body = bson.encode(document)
    assert bytes(decode_reply(OP_REPLY, op_reply(body))[0]) == body


def test_checksum_is_left_out():
    body = bson.encode({"ok": 1})
    payload = bytes(op_msg(body, CHECKSUM_PRESENT))
    header = struct.pack("<iiii", HEADER_SIZE + len(payload) + 4, 7, 6, OP_MSG)
    reply = decode_reply(OP_MSG, memoryview(with_checksum(header + payload))[HEADER_SIZE:], 7, 6)
    assert bytes(reply[0]) == body


def test_sequence_before_the_body():
    body = bson.encode({"ok": 1})
    sequence = struct.pack("<i", 6) + b"d\0"
    message = op_msg(sequence, kind=1, rest=b"\0" + body)
    assert bytes(decode_reply(OP_MSG, message)[0]) == body


def test_the_least_and_the_greatest_request_id():
    """They are signed in the header, and zero is that of no request."""
    assert REQUEST_IDS[0] == 1
    assert header(b"".join(encode_op_msg(REQUEST_IDS[-1], 0, bson.encode({}))))[1] == REQUEST_IDS[-1]
    with pytest.raises(struct.error):
        encode_op_msg(REQUEST_IDS[-1] + 1, 0, bson.encode({}))


def test_request_ids_differ_and_fit_the_field():
    ids = [next_request_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(0 <= each < 2**31 for each in ids)


# What is false


@given(int32)
def test_length_of_a_header(length):
    message = struct.pack("<iiii", length, 1, 2, OP_MSG)
    if HEADER_SIZE <= length <= LIMIT:
        assert decode_header(message, 0, LIMIT, 2)[0] == length
    else:
        with pytest.raises(ProtocolError, match=f"message length {length} is not between 16 and {LIMIT} bytes"):
            decode_header(message, 0, LIMIT, 2)


@given(int32, int32)
def test_reply_to_another_request(found, expected):
    message = struct.pack("<iiii", 50, 1, found, OP_MSG)
    if found == expected:
        assert decode_header(message, 0, LIMIT, expected)[2] == found
    else:
        with pytest.raises(ProtocolError, match=f"reply is to request {found}, expected {expected}"):
            decode_header(message, 0, LIMIT, expected)


@given(int32.filter(lambda opcode: opcode not in (OP_MSG, OP_REPLY)))
def test_opcode_of_no_reply(opcode):
    with pytest.raises(ProtocolError, match=f"opcode {opcode} "):
        decode_reply(opcode, op_msg(bson.encode({})))


def truncations(message):
    return [message[:size] for size in range(len(message))]


@pytest.mark.parametrize("rest", [b"", b"\1" + struct.pack("<i", 6) + b"d\0"], ids=["alone", "with sequence"])
def test_truncated_message(rest):
    whole = op_msg(bson.encode({"ok": 1, "n": 5}), rest=rest)
    for part in truncations(whole):
        if rest and len(part) == len(whole) - len(rest):
            continue  # which is a whole message again
        with pytest.raises(ProtocolError):
            decode_reply(OP_MSG, part)


def test_truncated_legacy_reply():
    for part in truncations(op_reply(bson.encode({"ok": 1}))):
        with pytest.raises(ProtocolError):
            decode_reply(OP_REPLY, part)


@given(int32)
def test_false_length_of_the_body(size):
    body = bson.encode({"ok": 1})
    false = struct.pack("<i", size) + body[4:]
    for opcode, message in ((OP_MSG, op_msg(false)), (OP_REPLY, op_reply(false))):
        if size == len(body):
            assert bytes(decode_reply(opcode, message)[0]) == body
        else:
            with pytest.raises(ProtocolError):
                decode_reply(opcode, message)


@given(int32)
def test_false_length_of_a_sequence(size):
    body = bson.encode({"ok": 1})
    message = op_msg(body, rest=b"\1" + struct.pack("<i", size) + b"d\0")
    if size == 6:
        assert bytes(decode_reply(OP_MSG, message)[0]) == body
    else:
        with pytest.raises(ProtocolError):
            decode_reply(OP_MSG, message)


@pytest.mark.parametrize("count", [-1, 0, 2, 2**31 - 1])
def test_legacy_reply_of_another_count(count):
    with pytest.raises(ProtocolError, match=f"OP_REPLY has {count} documents"):
        decode_reply(OP_REPLY, op_reply(bson.encode({}), count))


def test_two_bodies():
    body = bson.encode({"ok": 1})
    with pytest.raises(ProtocolError, match="section of kind 0"):
        decode_reply(OP_MSG, op_msg(body, rest=b"\0" + body))


def test_no_body():
    with pytest.raises(ProtocolError, match="no body"):
        decode_reply(OP_MSG, op_msg(struct.pack("<i", 6) + b"d\0", kind=1))


@pytest.mark.parametrize("bit", range(2, 16))
def test_unknown_required_flag(bit):
    with pytest.raises(ProtocolError, match="unknown required bit"):
        decode_reply(OP_MSG, op_msg(bson.encode({}), 1 << bit))


@pytest.mark.parametrize("bit", range(16, 32))
def test_unknown_optional_flag_is_ignored(bit):
    body = bson.encode({})
    assert bytes(decode_reply(OP_MSG, op_msg(body, 1 << bit))[0]) == body


@given(st.binary(max_size=200), st.sampled_from([OP_MSG, OP_REPLY]))
def test_noise_is_a_reply_or_a_protocol_error(noise, opcode):
    try:
        reply = decode_reply(opcode, memoryview(noise))
    except ProtocolError:
        return
    assert struct.unpack_from("<i", reply[0])[0] == len(reply[0])


@pytest.mark.parametrize(
    ("length", "taken"), [(HEADER_SIZE - 1, False), (HEADER_SIZE, True), (LIMIT, True), (LIMIT + 1, False)]
)
def test_the_sizes_that_a_message_may_have(length, taken):
    message = struct.pack("<iiii", length, 7, 3, OP_MSG)
    if taken:
        assert decode_header(message, 0, LIMIT, 3)[0] == length
    else:
        with pytest.raises(ProtocolError, match="message length"):
            decode_header(message, 0, LIMIT, 3)


@pytest.mark.parametrize(("room", "first"), [(2 * 100, 2), (2 * 100 - 1, 1), (100, 1)])
def test_a_batch_fills_its_message_to_the_last_byte(room, first):
    """What does not fit comes first in the next one."""
    document = {"_id": 0, "x": b""}
    document["x"] = b"x" * (100 - len(bson.encode(document)))
    assert len(bson.encode(document)) == 100
    hello = Hello({"ok": 1, "maxMessageSizeBytes": 16 * 1024 + room, "maxWriteBatchSize": 10}, 0)
    statements = Statements("insert", [document] * 3, DEFAULT_CODEC_OPTIONS)
    sizes = []
    while taken := statements.take(hello)[0]:
        sizes.append(len(taken))
    assert sum(sizes) == 3
    assert sizes[0] == first


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_a_batch_holds_no_more_than_the_server_takes(most):
    hello = Hello({"ok": 1, "maxWriteBatchSize": most}, 0)
    statements = Statements("insert", [{"_id": number} for number in range(5)], DEFAULT_CODEC_OPTIONS)
    taken = []
    while batch := statements.take(hello)[0]:
        assert len(batch) <= most
        taken += batch
    assert taken == [{"_id": number} for number in range(5)]
