from __future__ import annotations

import struct

import bson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmongo.errors import ProtocolError
from gmongo.wire.message import (
    EXHAUST_ALLOWED,
    HEADER_SIZE,
    MORE_TO_COME,
    OP_MSG,
    OP_REPLY,
    REQUEST_IDS,
    decode_reply,
    encode_op_msg,
)

documents = st.dictionaries(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8),
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=20), st.binary(max_size=20)),
    max_size=6,
)


def header_of(message):
    return struct.unpack_from("<iiii", message)


def payload_of(message):
    return memoryview(message)[HEADER_SIZE:]


@given(documents, st.integers(1, 2**31 - 1), st.sampled_from([0, MORE_TO_COME, EXHAUST_ALLOWED]))
def test_encoded_message_decodes_to_body(document, request_id, flags):
    body = bson.encode(document)
    message = b"".join(encode_op_msg(request_id, flags, body))
    assert header_of(message) == (len(message), request_id, 0, OP_MSG)
    reply = decode_reply(OP_MSG, payload_of(message))
    assert (bytes(reply[0]), reply[1]) == (body, bool(flags & MORE_TO_COME))


@given(documents, st.lists(documents, min_size=1, max_size=5))
def test_message_with_sequence_has_body_and_documents(document, sequence):
    body, encoded = bson.encode(document), [bson.encode(each) for each in sequence]
    message = b"".join(encode_op_msg(7, 0, body, [("documents", encoded)]))
    assert header_of(message)[0] == len(message)
    assert bytes(decode_reply(OP_MSG, payload_of(message))[0]) == body
    section = message[21 + len(body) :]
    assert (section[0], struct.unpack_from("<i", section, 1)[0]) == (1, len(section) - 1)
    identifier, _, section_documents = section[5:].partition(b"\0")
    assert (identifier, section_documents) == (b"documents", b"".join(encoded))


def test_request_ids_are_positive_and_fit_signed_header_field():
    """Check the smallest and the largest request ID. The header field is signed, and the ID 0 means
    "no request".
    """
    assert REQUEST_IDS[0] == 1
    assert header_of(b"".join(encode_op_msg(REQUEST_IDS[-1], 0, bson.encode({}))))[1] == REQUEST_IDS[-1]
    with pytest.raises(struct.error):
        encode_op_msg(REQUEST_IDS[-1] + 1, 0, bson.encode({}))


@given(st.binary(max_size=200), st.sampled_from([OP_MSG, OP_REPLY]))
def test_random_bytes_decode_or_raise_protocol_error(random_bytes, opcode):
    try:
        reply = decode_reply(opcode, memoryview(random_bytes))
    except ProtocolError:
        return
    assert struct.unpack_from("<i", reply[0])[0] == len(reply[0])
