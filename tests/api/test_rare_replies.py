"""The driver handles replies, server states, arguments and settings that rarely occur."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import gmongo
from gmongo import InsertOne, MongoClient
from gmongo._telemetry.settings import telemetry_settings
from gmongo.errors import (
    BulkWriteError,
    CollectionInvalid,
    ConfigurationError,
    DuplicateKeyError,
    InvalidOperation,
    InvalidURI,
    OperationFailure,
    ProtocolError,
    WriteConcernError,
)
from gmongo.gridfs import GridFSBucket
from gmongo.testing import Deployment
from gmongo.uri_parser import split_options
from gmongo.wire.address import address_text
from tests.support.cases import with_cases
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cursor_reply

SHUTDOWN_ERROR = {"code": 91, "errmsg": "shutting down"}
UNAUTHORIZED = {"ok": 0, "code": 13, "errmsg": "not authorized"}
# A scripted server streams no hello reply after an error reply to another command. The client checks
# the server again after this short interval.
SHORT_HEARTBEAT: dict[str, Any] = {"heartbeatFrequencyMS": 500}


@pytest.mark.parametrize("ordered", [True, False])
def test_bulk_write_stops_after_second_shutdown_error(ordered: bool) -> None:
    reply = {"ok": 1, "n": 1, "writeConcernError": SHUTDOWN_ERROR, "errorLabels": ["RetryableWriteError"]}
    with ScriptedReplicaSet(1) as replicas, MongoClient[Any](replicas.members[0].name, **SHORT_HEARTBEAT) as client:
        (member,) = replicas.members
        member.replies["insert"] = reply
        with pytest.raises(BulkWriteError) as caught:
            client.db.c.bulk_write([InsertOne({})], ordered=ordered)
        details = caught.value.details
        assert (details["nInserted"], details["writeErrors"]) == (1, [])
        assert [error["code"] for error in details["writeConcernErrors"]] == [91]
        assert caught.value.has_error_label("RetryableWriteError")


def test_shutdown_error_before_any_write_raises_no_bulk_write_error() -> None:
    with ScriptedServer({"insert": {"ok": 0, **SHUTDOWN_ERROR}}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(Exception, match="shutting down") as caught:
            client.db.c.insert_many([{}, {}])
        assert not isinstance(caught.value, BulkWriteError | WriteConcernError)


def test_drop_of_missing_collection_returns_error_reply() -> None:
    reply = {"ok": 0, "code": 26, "errmsg": "ns not found"}  # servers before MongoDB 7.0 send this reply
    with ScriptedServer({"drop": reply}) as server, MongoClient[Any](server.name) as client:
        dropped = client.db.drop_collection("c")
    assert {name: dropped[name] for name in reply} == reply


@pytest.mark.parametrize("method", ["list_collections", "list_indexes"])
def test_get_more_of_list_has_no_batch_size(method: str) -> None:
    command = {"list_collections": "listCollections", "list_indexes": "listIndexes"}[method]
    replies = {command: cursor_reply([{"name": "a"}], 7), "getMore": cursor_reply([], 0, "nextBatch")}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        list(getattr(client.db if method == "list_collections" else client.db.c, method)())
        assert "batchSize" not in server.commands("getMore")[0]


def test_result_index_outside_of_requests_raises_protocol_error() -> None:
    reply = {**cursor_reply([{"ok": 1.0, "idx": index, "n": 1} for index in (0, 1)]), "nErrors": 0}
    with ScriptedServer({"bulkWrite": reply}) as server, MongoClient[Any](server.name, connect=False) as client:
        server.hello_extra = {"maxWireVersion": 25}
        with pytest.raises(ProtocolError, match=r"^idx of a result must be from 0 to 0, not 1$"):
            client.bulk_write([InsertOne({}, namespace="db.c")], verbose_results=True)


def test_client_bulk_write_moves_only_generated_id_to_front() -> None:
    reply = {**cursor_reply([]), "nInserted": 2}
    with ScriptedServer({"bulkWrite": reply}) as server, MongoClient[Any](server.name, connect=False) as client:
        server.hello_extra = {"maxWireVersion": 25}
        client.bulk_write([InsertOne(each, namespace="db.c") for each in ({"a": 1, "_id": 5}, {"a": 1})])
        first, second = (list(each["document"]) for each in server.commands("bulkWrite")[0]["ops"])
        assert (first, second) == (["a", "_id"], ["_id", "a"])


@pytest.mark.parametrize("in_explicit_session", [True, False])
def test_invalid_operation_time_raises_only_in_explicit_session(in_explicit_session: bool) -> None:
    replies = {"ping": {"ok": 1, "operationTime": 5}}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client, client.start_session() as session:
        if in_explicit_session:
            with pytest.raises(ProtocolError, match=r"^operationTime of a reply must be a timestamp, not 5$"):
                client.db.command("ping", session=session)
        else:
            assert client.db.command("ping")["operationTime"] == 5


def test_get_more_and_kill_cursors_use_namespace_of_the_previous_reply() -> None:
    renamed = {"ok": 1, "cursor": {"id": 7, "ns": "db.renamed", "nextBatch": [{"_id": 2}]}}
    batches = [renamed, cursor_reply([], 0, "nextBatch")]
    replies = {"find": cursor_reply([{"_id": 1}], 7), "getMore": lambda command: batches.pop(0)}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        assert [each["_id"] for each in client.db.c.find()] == [1, 2]
        assert [command["collection"] for command in server.commands("getMore")] == ["c", "renamed"]
        batches.append(renamed)
        cursor = client.db.c.find()
        assert [next(cursor), next(cursor)] == [{"_id": 1}, {"_id": 2}]
        del cursor
        server.wait_for("killCursors")
        assert server.commands("killCursors")[0]["killCursors"] == "renamed"


def test_list_indexes_raises_unless_collection_is_missing() -> None:
    with ScriptedServer({"listIndexes": UNAUTHORIZED}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(OperationFailure, match="not authorized"):
            client.db.c.list_indexes()
        for code, text in ((26, "no such collection"), (5, "ns not found")):
            server.replies["listIndexes"] = {"ok": 0, "code": code, "errmsg": text}
            assert client.db.c.list_indexes().to_list() == []
        server.replies.update({"listIndexes": UNAUTHORIZED, "find": cursor_reply([])})
        with pytest.raises(OperationFailure, match="not authorized"):
            GridFSBucket(client.db).upload_from_stream("f", b"")


@with_cases
def test_validate_collection_raises_if_result_is_invalid(result: dict[str, Any], message: str | None) -> None:
    with ScriptedServer({"validate": {**result, "ok": 1}}) as server, MongoClient[Any](server.name) as client:
        if message is None:
            assert client.db.validate_collection(client.db.c)["ok"] == 1
            return
        with pytest.raises(CollectionInvalid) as caught:
            client.db.validate_collection("c")
        assert str(caught.value) == message


def test_address_of_client_with_one_mongos_is_mongos_address() -> None:
    with Deployment.sharded(1) as deployment, MongoClient[Any](deployment.uri) as client:
        assert address_text(client.address) == deployment.members[0].address
        assert client.is_mongos and client.is_primary


def test_address_of_client_with_two_mongos_raises_invalid_operation() -> None:
    with Deployment.sharded(2) as deployment, MongoClient[Any](deployment.uri) as client:
        client.admin.command("ping")
        with pytest.raises(InvalidOperation, match='"address" property when load balancing among mongoses'):
            _ = client.address


UNCONNECTED_CLIENT: Any = MongoClient("a", connect=False)


def test_copy_of_client_is_the_same_object() -> None:
    assert copy.copy(UNCONNECTED_CLIENT) is UNCONNECTED_CLIENT


@pytest.mark.parametrize(
    ("invalid_call", "error_class", "message"),
    [
        (lambda: MongoClient([5]), TypeError, "host must be a string or a list of strings, not int"),
        (lambda: MongoClient("a").db.command({}), ValueError, "command must name the command in its first field"),
        (lambda: MongoClient(""), ConfigurationError, "host must not be empty"),
        *(
            (
                lambda name=name: getattr(UNCONNECTED_CLIENT.d.x, name)(),
                TypeError,
                f"'Collection' object is not callable: {rest}",
            )
            for name, rest in {
                "insert": "Collection has no method 'insert'; use insert_one() or insert_many()",
                "ensure_index": "Collection has no method 'ensure_index'; use create_index()",
                "fnd_one": "Collection has no method 'fnd_one' (did you mean find_one()?)",
                "nonsense": "Collection has no method 'nonsense'",
                "ful_name": "Collection has no method 'ful_name'",
            }.items()
        ),
        (
            lambda: UNCONNECTED_CLIENT.d.create_colection(),
            TypeError,
            "'Collection' object is not callable: Database has no method 'create_colection' (did you mean create_",
        ),
        (lambda: next(UNCONNECTED_CLIENT.d.x), TypeError, "'Collection' object is not iterable"),
        (lambda: gmongo.AsyncMongoClient, AttributeError, "module 'gmongo' has no attribute 'AsyncMongoClient': "),
        (lambda: MongoClient([]), ConfigurationError, "host must name at least one host, was an empty list"),
        (
            lambda: MongoClient(["mongodb://a", "mongodb://b"]),
            ConfigurationError,
            "host must not contain several URIs: one URI may name several hosts",
        ),
        (lambda: MongoClient("a").db.c.create_indexes([5]), TypeError, "indexes must be a list of IndexModel, not [5]"),
        (
            lambda: MongoClient("a").db.c.create_search_indexes([5]),
            TypeError,
            "models must be a list of SearchIndexModel",
        ),
        (
            lambda: split_options("tlsInsecure=true&tlsAllowInvalidHostnames=true"),
            InvalidURI,
            "tlsInsecure and tlsAllowInvalidHostnames cannot be given together",
        ),
        (lambda: split_options("proxyHost=a&proxyHost=b"), InvalidURI, "proxyHost must not be given twice"),
    ],
)
def test_invalid_call_raises_error_with_expected_message(
    invalid_call: Callable[[], object], error_class: type[Exception], message: str
) -> None:
    with pytest.raises(error_class) as caught:
        invalid_call()
    assert str(caught.value).startswith(message)
    assert ("did you mean" in str(caught.value)) is ("did you mean" in message)


@pytest.mark.parametrize(("value", "length"), [("", 0), (" 12 ", 12), ("x", 0), ("-1", 0), ("1.5", 0), ("٣", 0)])
def test_environment_variable_sets_maximum_query_text_length(
    value: str, length: int, monkeypatch: pytest.MonkeyPatch, recwarn: Any
) -> None:
    monkeypatch.setenv("OTEL_PYTHON_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH", value)
    assert telemetry_settings(None, None, None).query_text_max_length == length
    assert bool(recwarn) is (value.strip() not in ("", "12"))
    assert telemetry_settings({"query_text_max_length": 7}, None, None).query_text_max_length == 7


def test_close_without_known_server_sends_no_end_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    client: MongoClient[Any] = MongoClient("127.0.0.1:1", connect=False)
    client.start_session().end_session()
    assert len(client._executor.sessions._idle) == 1
    run_operations: list[Any] = []
    monkeypatch.setattr(client._executor, "run", run_operations.append)
    client.close()
    assert run_operations == []
    assert client._topology.closed


def test_write_error_takes_precedence_over_write_concern_error() -> None:
    reply = {
        "ok": 1,
        "n": 0,
        "writeErrors": [{"index": 0, "code": 11000, "errmsg": "duplicate", "errInfo": {"more": 1}}],
        "writeConcernError": {"code": 64, "errmsg": "waiting timed out"},
    }
    with ScriptedServer({"insert": reply}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(DuplicateKeyError, match="duplicate") as caught:
            client.db.c.insert_one({})
        assert caught.value.details == {"index": 0, "code": 11000, "errmsg": "duplicate", "errInfo": {"more": 1}}
