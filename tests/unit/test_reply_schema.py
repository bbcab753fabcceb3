"""The schema of reply fields accepts valid values of each field, and rejects invalid values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import bson
import pytest
from bson import Int64, ObjectId, Timestamp

from gmongo.cmap.hello import read_hello
from gmongo.errors import OperationFailure, ProtocolError
from gmongo.execution.operation import OperationContext, required_field
from gmongo.operations.find import Find
from gmongo.wire import reply_schema as schema
from gmongo.wire.reply_schema import check, first_violation, unexpected
from tests.support.cases import rows, with_cases

NUMBER_FIELDS = [
    (getattr(schema, row["schema"]), row["field"], row["lowest"], row["highest"]) for row in rows(__file__, "numbers")
]


def cluster_time_document(**fields: Any) -> dict[str, Any]:
    return {"clusterTime": Timestamp(1, 1), **fields}


def signed_cluster_time(hash_value: Any = b"x", key: Any = 1) -> dict[str, Any]:
    return cluster_time_document(signature={"hash": hash_value, "keyId": key})


# The maximum length of the text in an unknown field `more` of a cluster time, in bytes.
FREE_SIZE = 1024 - len(bson.encode(cluster_time_document(more="")))
# Fields other than numbers: schema table, field name, accepted values, rejected values.
OTHER_FIELDS: list[tuple[Mapping[str, schema.Check], str, list[Any], list[Any]]] = [
    (getattr(schema, table), field, row["accepted"], row["rejected"])
    for row in rows(__file__, "other fields")
    for table in row["schemas"]
    for field in row["fields"]
]
OTHER_FIELDS += [
    (
        table,
        "$clusterTime",
        [cluster_time_document(), signed_cluster_time(), signed_cluster_time(b"x" * 64),
         cluster_time_document(more="x" * FREE_SIZE), cluster_time_document(signature=None), signed_cluster_time(None)],
        [1, {}, {"clusterTime": 1}, cluster_time_document(more="x" * (FREE_SIZE + 1)), signed_cluster_time(b"x" * 2000),
         signed_cluster_time(key="x" * 2000)],
    )
    for table in (schema.SESSION_SCHEMA, schema.HELLO_SCHEMA)
]  # fmt: skip


@pytest.mark.parametrize(("table", "field", "lowest", "highest"), NUMBER_FIELDS)
def test_invalid_number_is_rejected(table: Mapping[str, schema.Check], field: str, lowest: int, highest: int) -> None:
    for good in (lowest, highest, Int64(highest), 1.0):
        assert first_violation({field: good}, table) is None
    for bad in (lowest - 1, highest + 1, True, "1", 1.5, float("inf"), [1]):
        assert first_violation({field: bad}, table) == (field, f"an integer from {lowest} to {highest}")


HELLO_NUMBERS = {
    field: (lowest, highest) for table, field, lowest, highest in NUMBER_FIELDS if table is schema.HELLO_NUMBERS_SCHEMA
}


@pytest.mark.parametrize("invalid_value", [["x"], {}, "1", 1.5, True, None, "above", "below"], ids=repr)
def test_invalid_number_in_hello_counts_as_missing(invalid_value: Any) -> None:
    hello = {
        field: highest + 1 if invalid_value == "above" else lowest - 1 if invalid_value == "below" else invalid_value
        for field, (lowest, highest) in HELLO_NUMBERS.items()
    }
    assert read_hello({"ok": 1, "setName": "rs", **hello}, 0.5).reply == {"ok": 1, "setName": "rs"}
    for field in HELLO_NUMBERS:  # The other fields are valid.
        good = {other: float(max(least, 1)) for other, (least, _) in HELLO_NUMBERS.items()}
        hello_fields = read_hello({"ok": 1, **good, field: hello[field]}, 0.5).reply
        assert hello_fields == {"ok": 1, **{other: int(value) for other, value in good.items() if other != field}}
        assert all(type(value) is int for value in hello_fields.values())


def test_hello_reply_without_fields_has_defaults() -> None:
    hello = read_hello({"ok": 1}, 0.5)
    assert (hello.duration, hello.max_wire_version, hello.connection_id, hello.service_id) == (0.5, 0, None, None)
    assert (hello.max_bson_size, hello.max_message_size, hello.max_write_batch_size) == (2**24, 48_000_000, 1000)
    assert (hello.max_command_size, hello.max_batch_size) == (2**24 + 16 * 1024, 48_000_000)
    assert (hello.hello_ok, hello.is_mongos, hello.is_standalone) == (False, False, True)
    assert hello.sessions_supported is False


@with_cases
def test_hello_reads_server_type_and_limits(type_fields: dict[str, Any], is_mongos: bool, is_standalone: bool) -> None:
    numbers = {"maxBsonObjectSize": 5, "maxMessageSizeBytes": 6, "maxWriteBatchSize": 7, "maxWireVersion": 8}
    others = {"helloOk": True, "logicalSessionTimeoutMinutes": 0, "connectionId": 9, "serviceId": ObjectId("5" * 24)}
    hello = read_hello({"ok": 1, **type_fields, **numbers, **others}, 0.5)
    assert (hello.is_mongos, hello.is_standalone, hello.hello_ok, hello.sessions_supported) == (
        is_mongos, is_standalone, True, True,
    )  # fmt: skip
    sizes = (hello.max_bson_size, hello.max_message_size, hello.max_write_batch_size, hello.max_wire_version)
    assert sizes == (5, 6, 7, 8)
    assert (hello.connection_id, hello.service_id) == (9, ObjectId("5" * 24))


@with_cases
def test_failed_hello_raises_operation_failure(reply: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationFailure, match=f"^{message}") as caught:
        read_hello(reply, 0.5)
    assert (caught.value.code, caught.value.details) == (reply.get("code"), reply)


@pytest.mark.parametrize(("table", "field", "accepted", "rejected"), OTHER_FIELDS)
def test_malformed_reply_field_raises_protocol_error(
    table: Mapping[str, schema.Check], field: str, accepted: list[Any], rejected: list[Any]
) -> None:
    for each in (*accepted, None):
        check({field: each, "other": 1}, table)
    for each in rejected:
        with pytest.raises(ProtocolError, match=f"^{field.replace('$', '[$]')} of the reply must be "):
            check({"other": 1, field: each}, table, "the reply")


def test_case_tables_cover_every_field_of_every_schema_table() -> None:
    tables = (
        schema.ERROR_SCHEMA, schema.WRITE_CONCERN_ERROR_SCHEMA, schema.WRITE_ERROR_SCHEMA, schema.SESSION_SCHEMA,
        schema.HELLO_SCHEMA, schema.HELLO_NUMBERS_SCHEMA,
    )  # fmt: skip
    for table in (*tables, schema.CURSOR_SCHEMA, schema.WRITE_SCHEMA):
        covered_fields = {field for each, field, *_ in (*NUMBER_FIELDS, *OTHER_FIELDS) if each is table}
        assert covered_fields == table.keys()
    assert schema.ERROR_SCHEMA.keys() | schema.SESSION_SCHEMA.keys() == schema.DRIVER_FIELDS


def test_schema_error_names_first_malformed_field() -> None:
    with pytest.raises(ProtocolError, match=r"^errmsg of a reply must be a string, not 5$"):
        check({"code": 1, "errmsg": 5, "errorLabels": 7}, schema.ERROR_SCHEMA)


def test_schema_error_truncates_long_value() -> None:
    value = {f"{number}" * 30: "x" * 30 for number in range(4)}
    (text,) = unexpected("f", "short", value).args
    assert text.startswith("f must be short, not {'000000")
    assert len(text) == len("f must be short, not ") + 100 + len("...") and text.endswith("...")
    assert str(unexpected("f", "short", "x" * 28)) == f"f must be short, not '{'x' * 28}'"


def test_ordinary_cluster_time_is_checked_without_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the driver does not encode a cluster time that has only the usual fields."""
    encoded = []
    monkeypatch.setattr(schema.bson, "encode", lambda value: encoded.append(value) or b"")
    cluster_time = cluster_time_document(signature={"hash": b"\0" * 20, "keyId": Int64(7)})
    table = schema.HELLO_SCHEMA
    assert first_violation({"$clusterTime": cluster_time}, table) is None and not encoded
    assert first_violation({"$clusterTime": {**cluster_time, "more": 1}}, table) is None and len(encoded) == 1


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: read_hello({"ok": "yes"}, 0.5), "ok of a hello must be "),
        (lambda: read_hello({"ok": 1, "hosts": 5}, 0.5), "hosts of a hello must be "),
        (lambda: required_field({}, "n", schema.TEXT, "a count"), "a count lacks the field n: "),
    ],
)
def test_error_of_invalid_field_names_document(read: Callable[[], object], message: str) -> None:
    with pytest.raises(ProtocolError, match=f"^{message}"):
        read()


def test_error_of_invalid_cursor_field_names_cursor() -> None:
    operation, valid_fields = Find(OperationContext("d", "c"), {}, {}), {"id": 0, "ns": "d.c", "firstBatch": []}
    for name in (*valid_fields, "postBatchResumeToken"):
        with pytest.raises(ProtocolError, match=f"^{name} of a cursor must be "):
            operation.result({"cursor": {**valid_fields, name: 1.5}}, ("h", 1))
