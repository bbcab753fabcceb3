from __future__ import annotations

import datetime
import struct
import uuid
from collections import OrderedDict
from typing import Any

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions, TypeCodec, TypeRegistry
from bson.raw_bson import RawBSONDocument
from bson.son import SON
from hypothesis import example, given
from hypothesis import strategies as st

from gmongo.errors import ProtocolError
from gmongo.wire import reply
from gmongo.wire.reply import LARGE_REPLY_SIZE, PLAIN_REPLY_OPTIONS, Batch, cut_batch, decode_cursor, decode_field

DEFAULT_OPTIONS = CodecOptions()
names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=6)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    texts,
    st.binary(max_size=12).map(Binary),
    st.builds(Binary, st.binary(max_size=8), st.sampled_from([0, 2, 5, 128])),
    st.uuids().map(lambda value: Binary.from_uuid(uuid.UUID(str(value)))),
    st.binary(min_size=12, max_size=12).map(ObjectId),
    st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(3000, 1, 1)).map(
        lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)
    ),
    st.builds(Regex, names, st.sampled_from(["", "i", "mx"])),
    texts.map(Code),
    st.builds(Code, texts, st.dictionaries(names, st.integers(0, 9), max_size=2)),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000).map(Decimal128),
    st.builds(Timestamp, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    st.builds(DBRef, st.just("c"), st.integers(0, 9)),
    st.sampled_from([MinKey(), MaxKey()]),
    st.integers(-(2**63), 2**63 - 1).map(Int64),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
documents = st.dictionaries(names, values, max_size=5)
batches = st.lists(documents, max_size=8)


def reply_with(batch, field="firstBatch", **extra):
    cursor = {"id": Int64(5), field: batch, "ns": "db.c"}
    return bson.encode({"cursor": cursor, "ok": 1.0, **extra})


def decode_all(batch):
    decoded_documents = []
    while run := batch.decode_run():
        decoded_documents += run
    return decoded_documents


@given(batches, st.sampled_from(["firstBatch", "nextBatch"]))
def test_lazily_decoded_batch_equals_eagerly_decoded_batch(batch, field):
    body = reply_with(batch, field, operationTime=Timestamp(1, 1))
    eager_reply = bson.decode(body, DEFAULT_OPTIONS)
    lazy_reply = cut_batch(body, DEFAULT_OPTIONS)
    lazy_batch = lazy_reply["cursor"][field]
    assert lazy_batch.raw() == b"".join(bson.encode(each) for each in batch)
    lazy_reply["cursor"][field] = decode_all(lazy_batch)
    assert lazy_reply == eager_reply


@given(batches)
def test_batch_keeps_documents_after_reuse_of_receive_buffer(batch):
    buffer = bytearray(reply_with(batch))
    lazy_batch = cut_batch(memoryview(buffer), DEFAULT_OPTIONS)["cursor"]["firstBatch"]
    buffer[:] = b"\xff" * len(buffer)
    assert decode_all(lazy_batch) == [bson.decode(bson.encode(each)) for each in batch]


@given(documents)
@example({"r": Regex("x", "i"), "n": 1})
def test_reply_without_batch_is_decoded_whole(document):
    document = {name: value for name, value in document.items() if name != "cursor"}
    body = bson.encode(document)
    assert cut_batch(body, DEFAULT_OPTIONS) == bson.decode(body)


@given(documents, documents)
def test_reply_fields_before_and_after_batch_are_decoded(before, after):
    before = {f"b{name}": value for name, value in before.items()}
    after = {f"a{name}": value for name, value in after.items()}
    body = bson.encode({**before, "cursor": {**before, "id": 0, "firstBatch": [{"a": 1}], **after}, **after})
    reply = cut_batch(body, DEFAULT_OPTIONS)
    reply["cursor"]["firstBatch"] = decode_all(reply["cursor"]["firstBatch"])
    assert reply == bson.decode(body)


class Money:
    def __init__(self, amount):
        self.amount = amount

    def __eq__(self, other):
        return isinstance(other, Money) and self.amount == other.amount

    def __hash__(self):
        return hash(self.amount)


class MoneyCodec(TypeCodec):
    python_type = Money
    bson_type = Int64

    def transform_python(self, value):
        return Int64(value.amount)

    def transform_bson(self, value):
        return Money(int(value))


OPTIONS_WITH_CODEC = CodecOptions(type_registry=TypeRegistry([MoneyCodec()]))


@pytest.mark.parametrize("size", [1, 300], ids=["small", "large"])
@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (OPTIONS_WITH_CODEC, dict),
        (CodecOptions(document_class=OrderedDict), OrderedDict),
        (CodecOptions(document_class=RawBSONDocument), RawBSONDocument),
    ],
    ids=["type registry", "document class", "raw"],
)
def test_custom_types_do_not_change_reply_fields(options, kind, size):
    body = reply_with([{"_id": number, "price": Int64(3), "text": "x" * 1000} for number in range(size)])
    reply = decode_cursor(body, options)
    assert type(reply) is dict
    assert type(reply["cursor"]) is dict
    assert type(reply["cursor"]["id"]) is Int64
    decoded_documents = decode_all(reply["cursor"]["firstBatch"])
    assert len(decoded_documents) == size
    assert all(type(each) is kind for each in decoded_documents)
    assert decoded_documents[0]["price"] == (Money(3) if options is OPTIONS_WITH_CODEC else 3)


DOCUMENTED_ERRORS = (ProtocolError, bson.errors.InvalidBSON)


def decode_whole_reply(body):
    reply = cut_batch(body, DEFAULT_OPTIONS)
    cursor = reply.get("cursor")
    for field in ("firstBatch", "nextBatch"):
        batch = cursor.get(field) if isinstance(cursor, dict) else None
        if isinstance(batch, Batch):
            batch.raw()
            decode_all(batch)


def test_truncated_reply_raises_documented_error():
    body = reply_with([{"a": 1, "b": Regex("x"), "c": [1, "two"]}, {"d": Code("f", {"x": 1})}])
    for size in range(len(body)):
        with pytest.raises(DOCUMENTED_ERRORS):
            decode_whole_reply(body[:size])


@given(batches, st.floats(0, 1), st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-3, 400)))
@example([{}, {}, {}, {}], 0.69, -1)
def test_overwritten_length_raises_only_documented_errors(batch, relative_position, length):
    body = bytearray(reply_with(batch))
    struct.pack_into("<i", body, round(relative_position * (len(body) - 4)), length)
    try:
        decode_whole_reply(bytes(body))
    except DOCUMENTED_ERRORS:
        pass


@given(st.binary(max_size=60))
def test_random_bytes_in_reply_raise_only_documented_errors(random_bytes):
    body = bytearray(reply_with([{"a": 1}]))
    body[20 : 20 + len(random_bytes)] = random_bytes
    try:
        decode_whole_reply(bytes(body))
    except DOCUMENTED_ERRORS:
        pass


@pytest.mark.parametrize(
    "options",
    [
        PLAIN_REPLY_OPTIONS,
        *map(
            reply.reply_options,
            (DEFAULT_OPTIONS, CodecOptions(tz_aware=True), CodecOptions(SON, unicode_decode_error_handler="strict")),
        ),
    ],
)
def test_invalid_utf_8_in_server_message_is_replaced(options):
    body = bson.encode({"errmsg": "duplicate key: ?"}).replace(b"?", b"\xff")
    document = bson.decode(body, options)
    assert document == {"errmsg": "duplicate key: \ufffd"} and type(document) is dict


class SortedDict(dict):
    """A document class that iterates over its keys in sorted order, like ``SortedDict`` of
    sortedcontainers.
    """

    def __iter__(self):
        return iter(sorted(super().keys()))

    def keys(self):
        return list(self)

    def values(self):
        return [self[key] for key in self]

    def items(self):
        return [(key, self[key]) for key in self]


@pytest.mark.parametrize("document_class", [dict, OrderedDict, SortedDict, RawBSONDocument])
@pytest.mark.parametrize("make_key", [str, lambda number: f"{number % 3}"], ids=["numbered keys", "equal keys"])
def test_batch_keeps_all_documents_in_server_order(document_class, make_key):
    elements = b"".join(
        b"\x03" + make_key(number).encode() + b"\0" + bson.encode({"_id": number, "b": 1, "a": "x" * 200})
        for number in range(1200)
    )
    array = struct.pack("<i", len(elements) + 5) + elements + b"\0"
    options = CodecOptions(document_class=document_class)
    decoded_documents, batch = [], Batch(array, options)
    while run := batch.decode_run():
        decoded_documents += run
    assert [each["_id"] for each in decoded_documents] == list(range(1200))
    assert all(isinstance(each, document_class) for each in decoded_documents)
    assert [each["_id"] for each in Batch(array, options).documents()] == list(range(1200))


@pytest.mark.parametrize("document_class", [dict, OrderedDict, SortedDict])
def test_distinct_values_keep_server_order(document_class):
    body = bson.encode({"values": list(range(30)), "ok": 1})
    assert decode_field(body, CodecOptions(document_class=document_class), "values")["values"] == list(range(30))


fields = st.sampled_from(["cursor", "firstBatch", "nextBatch", "values", "ok", "id"])
irregular_values = st.one_of(scalars, st.just([]), st.just({}), st.just([{"_id": 1}]), st.just([{"_id": 1}, 5]))


@st.composite
def irregular_replies(draw, depth=2):
    """Generate well-formed documents with duplicate fields and fields of any type."""
    parts = []
    for name in draw(st.lists(fields, max_size=5)):
        if depth and draw(st.booleans()):
            inner = draw(irregular_replies(depth - 1))
            parts.append(b"\x03" + name.encode() + b"\0" + inner)
        else:
            parts.append(bson.encode({name: draw(irregular_values)})[4:-1])
    content = b"".join(parts)
    return struct.pack("<i", len(content) + 5) + content + b"\0"


@given(irregular_replies())
def test_irregular_reply_raises_only_documented_errors(body):
    for read in (
        lambda: cut_batch(body, DEFAULT_OPTIONS),
        lambda: decode_cursor(body, CodecOptions(document_class=OrderedDict)),
        lambda: decode_field(body, CodecOptions(document_class=OrderedDict), "values"),
        lambda: decode_whole_reply(body),
    ):
        try:
            read()
        except DOCUMENTED_ERRORS:
            pass


@pytest.mark.parametrize("error_options", [None, CodecOptions(document_class=OrderedDict)])
def test_error_reply_uses_codec_options_for_errors(error_options: Any) -> None:
    body = bson.encode({"ok": 0, "errmsg": "x", "info": {"a": 1}, "padding": "x" * LARGE_REPLY_SIZE})
    reply_options = CodecOptions(document_class=SON)
    for failure in (decode_cursor(body, reply_options, error_options), cut_batch(body, reply_options, error_options)):
        assert type(failure["info"]) is (SON if error_options is None else OrderedDict)
