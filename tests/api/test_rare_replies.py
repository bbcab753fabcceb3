"""The driver handles replies and server states that rarely occur."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson import Timestamp
from gevent import GreenletExit

import gmongo
from gmongo import InsertOne, MongoClient
from gmongo._telemetry.settings import telemetry_settings
from gmongo.change_stream import _Watched
from gmongo.client_session import ClientSession
from gmongo.engines.change_stream import Position
from gmongo.engines.read_ahead import _without_frames
from gmongo.engines.transaction import TransactionEnd, _TooLongError
from gmongo.errors import (
    BulkWriteError,
    ClientBulkWriteException,
    CollectionInvalid,
    ConfigurationError,
    InvalidOperation,
    InvalidURI,
    OperationFailure,
    ProtocolError,
    WriteConcernError,
)
from gmongo.events.command import CommandEvents
from gmongo.execution.operation_context import OperationContext
from gmongo.gridfs import GridFSBucket
from gmongo.operations.find import Find
from gmongo.operations.write import _Write
from gmongo.testing import Deployment
from gmongo.uri_parser import split_options
from gmongo.wire.address import address_text
from tests.support.cases import with_cases
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cursor_reply

STEPPING_DOWN = {"code": 91, "errmsg": "shutting down"}
UNAUTHORIZED = {"ok": 0, "code": 13, "errmsg": "not authorized"}
# After an error, a scripted server sends no hello reply in the stream. The client checks the server
# again after this short interval.
SHORT_HEARTBEAT: dict[str, Any] = {"heartbeatFrequencyMS": 500}


@pytest.mark.parametrize("ordered", [True, False])
def test_bulk_write_stops_after_second_stepdown_error(ordered: bool) -> None:
    reply = {"ok": 1, "n": 1, "writeConcernError": STEPPING_DOWN, "errorLabels": ["RetryableWriteError"]}
    with ScriptedReplicaSet(1) as members, MongoClient[Any](members.members[0].name, **SHORT_HEARTBEAT) as client:
        (member,) = members.members
        member.replies["insert"] = reply
        with pytest.raises(BulkWriteError) as caught:
            client.db.c.bulk_write([InsertOne({})], ordered=ordered)
        details = caught.value.details
        assert (details["nInserted"], details["writeErrors"]) == (1, [])
        assert [error["code"] for error in details["writeConcernErrors"]] == [91]
        assert caught.value.has_error_label("RetryableWriteError")


def test_client_bulk_write_has_partial_result_after_second_stepdown_error() -> None:
    reply = {
        **cursor_reply([]),
        **{"nInserted": 1, "nErrors": 0, "nMatched": 0, "nModified": 0, "nUpserted": 0, "nDeleted": 0},
        **{"writeConcernError": STEPPING_DOWN, "errorLabels": ["RetryableWriteError"]},
    }
    with (
        ScriptedReplicaSet(1) as members,
        MongoClient[Any](members.members[0].name, connect=False, **SHORT_HEARTBEAT) as client,
    ):
        (member,) = members.members
        member.hello_extra, member.replies["bulkWrite"] = {"maxWireVersion": 25}, reply
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([InsertOne({}, namespace="db.c")])
        result = caught.value.partial_result
        assert result is not None and result.inserted_count == 1
        assert [error["code"] for error in caught.value.write_concern_errors] == [91]


def test_stepdown_error_before_any_write_is_no_bulk_write_error() -> None:
    with ScriptedServer({"insert": {"ok": 0, **STEPPING_DOWN}}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(Exception, match="shutting down") as caught:
            client.db.c.insert_many([{}, {}])
        assert not isinstance(caught.value, BulkWriteError | WriteConcernError)


def test_result_index_outside_of_requests_raises_protocol_error() -> None:
    reply = {**cursor_reply([{"ok": 1.0, "idx": 1, "n": 1}]), "nErrors": 0}
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


@pytest.mark.parametrize("is_await_data", [True, False])
def test_cursor_command_sends_max_await_time_only_for_await_data(is_await_data: bool) -> None:
    replies = {"find": cursor_reply([], 7), "getMore": cursor_reply([], 0, "nextBatch")}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        options = {"tailable": True, "awaitData": True, "max_await_time_ms": 70} if is_await_data else {}
        client.db.cursor_command("find", "c", **options).to_list()
        assert server.commands("getMore")[0].get("maxTimeMS", "absent") == (70 if is_await_data else "absent")


def test_get_more_uses_namespace_of_the_previous_reply() -> None:
    renamed = {"ok": 1, "cursor": {"id": 7, "ns": "db.renamed", "nextBatch": [{"_id": 2}]}}
    batches = [renamed, cursor_reply([], 0, "nextBatch")]
    replies = {"find": cursor_reply([{"_id": 1}], 7), "getMore": lambda command: batches.pop(0)}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        assert [each["_id"] for each in client.db.c.find()] == [1, 2]
        assert [command["collection"] for command in server.commands("getMore")] == ["c", "renamed"]


def test_error_without_frames_and_its_cause_have_no_traceback() -> None:
    def raise_chained_error() -> None:
        try:
            raise KeyError
        except KeyError as error:
            raise ValueError from error

    with pytest.raises(ValueError) as caught:
        raise_chained_error()
    error = _without_frames(caught.value)
    assert error.__traceback__ is None
    assert error.__cause__ is not None and error.__cause__.__traceback__ is None


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


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        *((name, "x", "an integer") for name in ("idx", "n", "nModified")),
        ("ok", "x", "a number"),
        ("code", "x", "an integer"),
        ("errmsg", 5, "a string"),
        ("upserted", 5, "a document"),
    ],
)
def test_malformed_field_of_bulk_result_raises_with_field_name(field: str, value: Any, rule: str) -> None:
    result = {"ok": 1.0, "idx": 0, "n": 1, field: value}
    reply = {**cursor_reply([result]), "nErrors": 0}
    with ScriptedServer({"bulkWrite": reply}) as server, MongoClient[Any](server.name, connect=False) as client:
        server.hello_extra = {"maxWireVersion": 25}
        with pytest.raises(Exception, match=f"^{field} of a result must be {rule}.*, not {value!r}"):
            client.bulk_write([InsertOne({}, namespace="db.c")], verbose_results=True)


@pytest.mark.parametrize("batch", [[5], ["x"], [None]])
def test_client_bulk_result_that_is_no_document_raises(batch: list[Any]) -> None:
    reply = {**cursor_reply(batch), "nErrors": 0}
    with ScriptedServer({"bulkWrite": reply}) as server, MongoClient[Any](server.name, connect=False) as client:
        server.hello_extra = {"maxWireVersion": 25}
        with pytest.raises(Exception, match=r"^firstBatch of a cursor must be a list of documents, not \["):
            client.bulk_write([InsertOne({}, namespace="db.c")], verbose_results=True)


@pytest.mark.parametrize(
    ("reply", "cursor_id"),
    [
        (cursor_reply([], 7), 7),
        (cursor_reply([], 0), None),
        ({"ok": 0, "code": 13, "errmsg": "not authorized"}, None),
        ({"ok": 1, "cursor": 5}, None),
        ({"ok": 1, "cursor": {"id": "x", "ns": "db.c", "firstBatch": []}}, None),
    ],
)
def test_orphaned_cursor_is_found_only_in_reply_with_open_cursor(reply: dict[str, Any], cursor_id: int | None) -> None:
    operation = Find(OperationContext("db", "c"), {}, {})
    cursor = operation.orphaned_cursor(reply, ("h", 1))
    assert (cursor and cursor.cursor_id) == cursor_id


def test_timeout_of_other_limit_during_abort_propagates_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = TransactionEnd(Mock(), Mock(is_used_elsewhere=False))
    foreign = _TooLongError()

    def abort(*_: object) -> None:
        raise foreign

    monkeypatch.setattr(TransactionEnd, "_abort", abort)
    with pytest.raises(_TooLongError) as caught:
        ending.give_up(GreenletExit(), None)
    assert caught.value is foreign


def test_change_stream_without_changes_resumes_with_its_start_options() -> None:
    token, time = {"_data": "00"}, Timestamp(5, 1)
    for arguments, fields in (
        ((token, None, None), {"resumeAfter": token}),
        ((None, token, None), {"startAfter": token}),
        ((None, None, time), {"startAtOperationTime": time}),
        ((None, None, None), {}),
    ):
        position = Position(*arguments)
        assert position.fields() == fields
        position.resuming = True
        assert position.fields() == fields


@with_cases
def test_validate_collection_raises_if_result_is_invalid(result: dict[str, Any], message: str | None) -> None:
    with ScriptedServer({"validate": {**result, "ok": 1}}) as server, MongoClient[Any](server.name) as client:
        if message is None:
            assert client.db.validate_collection(client.db.c)["ok"] == 1
            return
        with pytest.raises(CollectionInvalid) as caught:
            client.db.validate_collection("c")
        assert str(caught.value) == message


def test_out_stage_with_secondary_preference_selects_secondary() -> None:
    with Deployment.replica_set(2) as deployment:
        client: MongoClient[Any] = MongoClient(deployment.uri, connect=False, readPreference="secondary")
        with client:
            assert client.db.c.aggregate([{"$out": "d"}]).address in client.secondaries


def test_address_of_client_with_one_mongos_is_mongos_address() -> None:
    with Deployment.sharded(1) as deployment, MongoClient[Any](deployment.uri) as client:
        assert address_text(client.address) == deployment.members[0].address


def test_address_of_client_with_two_mongos_raises_invalid_operation() -> None:
    with Deployment.sharded(2) as deployment, MongoClient[Any](deployment.uri) as client:
        client.admin.command("ping")
        with pytest.raises(InvalidOperation, match='"address" property when load balancing among mongoses'):
            _ = client.address


UNCONNECTED: Any = MongoClient("a", connect=False)


def test_copy_of_client_is_the_same_object() -> None:
    assert copy.copy(UNCONNECTED) is UNCONNECTED


@pytest.mark.parametrize(
    ("invalid_call", "error_class", "message"),
    [
        (lambda: MongoClient([5]), TypeError, "host must be a string or a list of strings, not int"),
        (lambda: MongoClient("a").db.command({}), ValueError, "command must name the command in its first field"),
        (lambda: MongoClient(""), ConfigurationError, "host must not be empty"),
        *(
            (
                lambda name=name: getattr(UNCONNECTED.d.x, name)(),
                TypeError,
                f"'Collection' object is not callable: {rest}",
            )
            for name, rest in {
                "insert": "Collection has no method 'insert'; use insert_one() or insert_many()",
                "ensure_index": "Collection has no method 'ensure_index'; use create_index()",
                "fnd_one": "Collection has no method 'fnd_one' (did you mean find_one()?)",
                "nonsense": "Collection has no method 'nonsense'",
            }.items()
        ),
        (
            lambda: UNCONNECTED.d.create_colection(),
            TypeError,
            "'Collection' object is not callable: Database has no method",
        ),
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


def test_abstract_methods_raise_not_implemented_error() -> None:
    with pytest.raises(NotImplementedError):
        _Watched()._stream_target()
    with pytest.raises(NotImplementedError):
        _Write(None, "insert", (), {}, True, True).encode(None)  # type: ignore[arg-type]


def test_session_constructor_with_implicit_true_raises_value_error() -> None:
    with (
        ScriptedServer() as server,
        MongoClient[Any](server.name) as client,
        client.start_session() as session,
        pytest.raises(ValueError, match="implicit must be False"),
    ):
        ClientSession(client, session._state.server_session, session.options, True)


@pytest.mark.parametrize("service_id", [None, "a service"])
def test_command_log_has_service_id_if_known(service_id: str | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gmongo.command")
    events = CommandEvents((), silent=False)
    connection = SimpleNamespace(
        id=1, service_id=service_id, address=("h", 1), hello=SimpleNamespace(connection_id=None)
    )
    sent = SimpleNamespace(name="ping", database="admin", request_id=2, operation_id=3, connection=connection)
    events._log("Command succeeded", sent, {}, 0.5)
    fields = vars(caplog.records[-1])["structured"]
    assert fields.get("serviceId") == service_id
    assert "serverConnectionId" not in fields
    assert (fields["durationMS"], fields["driverConnectionId"], fields["serverHost"]) == (500, 1, "h")


@pytest.mark.parametrize(("variable", "length"), [("", 0), (" 12 ", 12), ("x", 0), ("-1", 0), ("1.5", 0), ("٣", 0)])
def test_environment_variable_sets_maximum_query_text_length(
    variable: str, length: int, monkeypatch: pytest.MonkeyPatch, recwarn: Any
) -> None:
    monkeypatch.setenv("OTEL_PYTHON_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH", variable)
    assert telemetry_settings(None, None, None).query_text_max_length == length
    assert bool(recwarn) is (variable.strip() not in ("", "12"))
    assert telemetry_settings({"query_text_max_length": 7}, None, None).query_text_max_length == 7


def test_close_without_known_server_sends_no_end_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    client: MongoClient[Any] = MongoClient("127.0.0.1:1", connect=False)
    client.start_session().end_session()
    assert len(client._executor.sessions._idle) == 1
    sent: list[Any] = []
    monkeypatch.setattr(client._executor, "run", sent.append)
    client.close()
    assert sent == []
    assert client._topology.closed


def test_close_with_known_server_sends_end_sessions_once() -> None:
    with ScriptedServer() as server:
        with MongoClient[Any](server.name) as client:
            client.db.c.find_one()
        (command,) = server.commands("endSessions")
        assert len(command["endSessions"]) == 1
        client.close()
        assert len(server.commands("endSessions")) == 1
