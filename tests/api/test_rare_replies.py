"""Replies and states that servers seldom show, one by one."""

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
from gmongo import DeleteOne, InsertOne, MongoClient
from gmongo._telemetry.settings import telemetry_settings
from gmongo.change_stream import _Watched
from gmongo.client_session import ClientSession, SessionOptions, TransactionOptions
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
from gmongo.events import sdam as events_of_checks
from gmongo.events.command import CommandEvents
from gmongo.execution.operation_context import OperationContext
from gmongo.gridfs import GridFSBucket
from gmongo.operations.find import Find
from gmongo.operations.write import _Write
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import ReadPreference
from gmongo.testing import Deployment
from gmongo.uri_parser import split_options
from gmongo.wire.address import address_text
from gmongo.write_concern import WriteConcern
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cursor_reply

STEPPING_DOWN = {"code": 91, "errmsg": "shutting down"}
REFUSED = {"ok": 0, "code": 13, "errmsg": "not authorized"}
# A scripted server does not tell by itself that it is primary again.
OFTEN: dict[str, Any] = {"heartbeatFrequencyMS": 500}


# Writes whose server goes away


@pytest.mark.parametrize("ordered", [True, False])
def test_a_bulk_whose_server_steps_down_twice_sends_no_further_batch(ordered: bool) -> None:
    reply = {"ok": 1, "n": 1, "writeConcernError": STEPPING_DOWN, "errorLabels": ["RetryableWriteError"]}
    with ScriptedReplicaSet(1) as members, MongoClient[Any](members.members[0].name, **OFTEN) as client:
        (member,) = members.members
        member.replies["insert"] = reply
        with pytest.raises(BulkWriteError) as caught:
            client.db.c.bulk_write([InsertOne({})], ordered=ordered)
        details = caught.value.details
        assert (details["nInserted"], details["writeErrors"]) == (1, [])
        assert [error["code"] for error in details["writeConcernErrors"]] == [91]
        assert caught.value.has_error_label("RetryableWriteError")


def test_a_client_s_bulk_whose_server_steps_down_twice_has_what_was_done() -> None:
    reply = {
        **cursor_reply([]),
        **{"nInserted": 1, "nErrors": 0, "nMatched": 0, "nModified": 0, "nUpserted": 0, "nDeleted": 0},
        **{"writeConcernError": STEPPING_DOWN, "errorLabels": ["RetryableWriteError"]},
    }
    with ScriptedReplicaSet(1) as members, MongoClient[Any](members.members[0].name, connect=False, **OFTEN) as client:
        (member,) = members.members
        member.hello_extra, member.replies["bulkWrite"] = {"maxWireVersion": 25}, reply
        with pytest.raises(ClientBulkWriteException) as caught:
            client.bulk_write([InsertOne({}, namespace="db.c")])
        result = caught.value.partial_result
        assert result is not None and result.inserted_count == 1
        assert [error["code"] for error in caught.value.write_concern_errors] == [91]


def test_a_refused_write_whose_server_steps_down_is_that_error() -> None:
    with ScriptedServer({"insert": {"ok": 0, **STEPPING_DOWN}}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(Exception, match="shutting down") as caught:
            client.db.c.insert_many([{}, {}])
        assert not isinstance(caught.value, BulkWriteError | WriteConcernError)


def test_a_result_of_a_client_s_bulk_is_that_of_one_of_its_operations() -> None:
    reply = {**cursor_reply([{"ok": 1.0, "idx": 1, "n": 1}]), "nErrors": 0}
    with ScriptedServer({"bulkWrite": reply}) as server, MongoClient[Any](server.name, connect=False) as client:
        server.hello_extra = {"maxWireVersion": 25}
        with pytest.raises(ProtocolError, match=r"^idx of a result must be from 0 to 0, not 1$"):
            client.bulk_write([InsertOne({}, namespace="db.c")], verbose_results=True)


def test_a_document_that_has_its_id_keeps_its_order_in_a_client_s_bulk() -> None:
    reply = {**cursor_reply([]), "nInserted": 2}
    with ScriptedServer({"bulkWrite": reply}) as server, MongoClient[Any](server.name, connect=False) as client:
        server.hello_extra = {"maxWireVersion": 25}
        client.bulk_write([InsertOne(each, namespace="db.c") for each in ({"a": 1, "_id": 5}, {"a": 1})])
        first, second = (list(each["document"]) for each in server.commands("bulkWrite")[0]["ops"])
        assert (first, second) == (["a", "_id"], ["_id", "a"])


@pytest.mark.parametrize("explicit", [True, False])
def test_times_of_replies_are_looked_at_where_a_session_learns_from_them(explicit: bool) -> None:
    replies = {"ping": {"ok": 1, "operationTime": 5}}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client, client.start_session() as session:
        if explicit:
            with pytest.raises(ProtocolError, match=r"^operationTime of a reply must be a timestamp, not 5$"):
                client.db.command("ping", session=session)
        else:
            assert client.db.command("ping")["operationTime"] == 5


# Cursors


@pytest.mark.parametrize("awaits", [True, False])
def test_a_command_for_a_cursor_that_waits(awaits: bool) -> None:
    replies = {"find": cursor_reply([], 7), "getMore": cursor_reply([], 0, "nextBatch")}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        options = {"tailable": True, "awaitData": True, "max_await_time_ms": 70} if awaits else {}
        client.db.cursor_command("find", "c", **options).to_list()
        assert server.commands("getMore")[0].get("maxTimeMS", "absent") == (70 if awaits else "absent")


def test_a_cursor_goes_on_in_the_namespace_that_its_server_names_last() -> None:
    moved = {"ok": 1, "cursor": {"id": 7, "ns": "db.moved", "nextBatch": [{"_id": 2}]}}
    batches = [moved, cursor_reply([], 0, "nextBatch")]
    replies = {"find": cursor_reply([{"_id": 1}], 7), "getMore": lambda command: batches.pop(0)}
    with ScriptedServer(replies) as server, MongoClient[Any](server.name) as client:
        assert [each["_id"] for each in client.db.c.find()] == [1, 2]
        assert [command["collection"] for command in server.commands("getMore")] == ["c", "moved"]


def test_the_frames_of_all_errors_behind_an_error_are_let_go() -> None:
    def fail() -> None:
        try:
            raise KeyError
        except KeyError as error:
            raise ValueError from error

    with pytest.raises(ValueError) as caught:
        fail()
    error = _without_frames(caught.value)
    assert error.__traceback__ is None
    assert error.__cause__ is not None and error.__cause__.__traceback__ is None


def test_indexes_that_cannot_be_listed() -> None:
    with ScriptedServer({"listIndexes": REFUSED}) as server, MongoClient[Any](server.name) as client:
        with pytest.raises(OperationFailure, match="not authorized"):
            client.db.c.list_indexes()
        for code, text in ((26, "no such collection"), (5, "ns not found")):
            server.replies["listIndexes"] = {"ok": 0, "code": code, "errmsg": text}
            assert client.db.c.list_indexes().to_list() == []
        server.replies.update({"listIndexes": REFUSED, "find": cursor_reply([])})
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
def test_a_result_of_a_client_s_bulk_that_is_not_what_it_has_to_be(field: str, value: Any, rule: str) -> None:
    result = {"ok": 1.0, "idx": 0, "n": 1, field: value}
    reply = {**cursor_reply([result]), "nErrors": 0}
    with ScriptedServer({"bulkWrite": reply}) as server, MongoClient[Any](server.name, connect=False) as client:
        server.hello_extra = {"maxWireVersion": 25}
        with pytest.raises(Exception, match=f"^{field} of a result must be {rule}.*, not {value!r}"):
            client.bulk_write([InsertOne({}, namespace="db.c")], verbose_results=True)


@pytest.mark.parametrize("batch", [[5], ["x"], [None]])
def test_results_of_a_client_s_bulk_are_documents(batch: list[Any]) -> None:
    reply = {**cursor_reply(batch), "nErrors": 0}
    with ScriptedServer({"bulkWrite": reply}) as server, MongoClient[Any](server.name, connect=False) as client:
        server.hello_extra = {"maxWireVersion": 25}
        with pytest.raises(Exception, match=r"^firstBatch of a cursor must be a list of documents, not \["):
            client.bulk_write([InsertOne({}, namespace="db.c")], verbose_results=True)


@pytest.mark.parametrize(
    ("reply", "orphan"),
    [
        (cursor_reply([], 7), 7),
        (cursor_reply([], 0), None),
        ({"ok": 0, "code": 13, "errmsg": "not authorized"}, None),
        ({"ok": 1, "cursor": 5}, None),
        ({"ok": 1, "cursor": {"id": "x", "ns": "db.c", "firstBatch": []}}, None),
    ],
)
def test_a_cursor_that_nothing_waits_for_any_more(reply: dict[str, Any], orphan: int | None) -> None:
    operation = Find(OperationContext("db", "c"), {}, {})
    found = operation.orphaned_cursor(reply, ("h", 1))
    assert (found and found.cursor_id) == orphan


def test_an_abort_that_takes_too_long_is_told_from_another(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = TransactionEnd(Mock(), Mock(is_used_elsewhere=False))
    foreign = _TooLongError()

    def abort(*_: object) -> None:
        raise foreign

    monkeypatch.setattr(TransactionEnd, "_abort", abort)
    with pytest.raises(_TooLongError) as caught:
        ending.give_up(GreenletExit(), None)
    assert caught.value is foreign


@pytest.mark.parametrize(("known", "shown"), [(None, {}), (5, {"serverConnectionId": 5})])
def test_the_connection_of_a_check_is_logged_as_far_as_it_is_known(known: int | None, shown: dict[str, int]) -> None:
    hello = SimpleNamespace(connection_id=known)
    assert events_of_checks._connection_ids(SimpleNamespace(id=1, handshake_done=True, hello=hello)) == {
        "driverConnectionId": 1,
        **shown,
    }
    assert events_of_checks._connection_ids(SimpleNamespace(id=1, handshake_done=False, hello=hello)) == {
        "driverConnectionId": 1
    }
    assert events_of_checks._connection_ids(None) == {}


# Change streams


def test_a_stream_that_has_seen_nothing_begins_again_as_it_was_told() -> None:
    token, time = {"_data": "00"}, Timestamp(5, 1)
    for given, fields in (
        ((token, None, None), {"resumeAfter": token}),
        ((None, token, None), {"startAfter": token}),
        ((None, None, time), {"startAtOperationTime": time}),
        ((None, None, None), {}),
    ):
        position = Position(*given)
        assert position.fields() == fields
        position.resuming = True
        assert position.fields() == fields


# Databases and clients


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"result": "exception during validation", "valid": True}, "c invalid: exception during validation"),
        ({"result": "the data are corrupt", "valid": True}, "c invalid: the data are corrupt"),
        ({"valid": False}, "c invalid: {'valid': False, 'ok': 1}"),
        ({"raw": {"a": {"valid": True}, "b": {"valid": False}}}, "c invalid: {'valid': False}"),
        ({"valid": True}, None),
        ({"result": "all is well"}, None),
        ({"raw": {"a": {"valid": True}}}, None),
    ],
)
def test_what_a_validation_has_found(result: dict[str, Any], message: str | None) -> None:
    with ScriptedServer({"validate": {**result, "ok": 1}}) as server, MongoClient[Any](server.name) as client:
        if message is None:
            assert client.db.validate_collection(client.db.c)["ok"] == 1
            return
        with pytest.raises(CollectionInvalid) as caught:
            client.db.validate_collection("c")
        assert str(caught.value) == message


def test_an_aggregation_that_writes_looks_for_a_server_before_it_knows_any() -> None:
    with Deployment.replica_set(2) as deployment:
        client: MongoClient[Any] = MongoClient(deployment.uri, connect=False, readPreference="secondary")
        with client:
            assert client.db.c.aggregate([{"$out": "d"}]).address in client.secondaries


def test_one_mongos_has_an_address() -> None:
    with Deployment.sharded(1) as deployment, MongoClient[Any](deployment.uri) as client:
        assert address_text(client.address) == deployment.members[0].address


def test_several_mongos_have_no_address() -> None:
    with Deployment.sharded(2) as deployment, MongoClient[Any](deployment.uri) as client:
        client.admin.command("ping")
        with pytest.raises(InvalidOperation, match='"address" property when load balancing among mongoses'):
            _ = client.address


CLOSED: Any = MongoClient("a", connect=False)


def test_copy_of_client_is_the_client() -> None:
    assert copy.copy(CLOSED) is CLOSED


@pytest.mark.parametrize(
    ("refused", "kind", "message"),
    [
        (lambda: MongoClient([5]), TypeError, "host must be a string or a list of strings, not int"),
        (lambda: MongoClient("a").db.command({}), ValueError, "command must name the command in its first field"),
        (lambda: MongoClient(""), ConfigurationError, "host must not be empty"),
        *(
            (lambda name=name: getattr(CLOSED.d.x, name)(), TypeError, f"'Collection' object is not callable: {rest}")
            for name, rest in {
                "insert": "Collection has no method 'insert'; use insert_one() or insert_many()",
                "ensure_index": "Collection has no method 'ensure_index'; use create_index()",
                "fnd_one": "Collection has no method 'fnd_one' (did you mean find_one()?)",
                "nonsense": "Collection has no method 'nonsense'",
            }.items()
        ),
        (lambda: CLOSED.d.create_colection(), TypeError, "'Collection' object is not callable: Database has no method"),
        (
            lambda: gmongo.AsyncMongoClient,
            AttributeError,
            "module 'gmongo' has no attribute 'AsyncMongoClient': ",
        ),
        (lambda: MongoClient([]), ConfigurationError, "host must name at least one host, was an empty list"),
        (
            lambda: MongoClient(["mongodb://a", "mongodb://b"]),
            ConfigurationError,
            "host must not contain several URIs: one URI may name several hosts",
        ),
        (
            lambda: MongoClient("a").db.c.create_indexes([5]),
            TypeError,
            "indexes must be a list of IndexModel, not [5]",
        ),
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
def test_what_is_refused(refused: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        refused()
    assert str(caught.value).startswith(message)


def test_bases_do_nothing_by_themselves() -> None:
    with pytest.raises(NotImplementedError):
        _Watched()._watched()
    with pytest.raises(NotImplementedError):
        _Write(None, "insert", (), {}, True, True).encode(None)  # type: ignore[arg-type]


# Sessions


OPTIONS_OF_TRANSACTIONS = {
    "read_concern": ReadConcern("local"),
    "write_concern": WriteConcern(w=2),
    "read_preference": ReadPreference.NEAREST,
    "max_commit_time_ms": 5,
}


def test_options_of_transactions_and_sessions_are_kept() -> None:
    options = TransactionOptions(**OPTIONS_OF_TRANSACTIONS)
    assert {name: getattr(options, name) for name in OPTIONS_OF_TRANSACTIONS} == OPTIONS_OF_TRANSACTIONS
    assert [getattr(TransactionOptions(), name) for name in OPTIONS_OF_TRANSACTIONS] == [None] * 4
    of_session = SessionOptions(True, options, False, 700)
    assert of_session.causal_consistency is True and of_session.snapshot is False
    assert of_session.default_transaction_options is options and of_session.default_timeout_ms == 700
    usual = SessionOptions()
    assert (usual.causal_consistency, usual.snapshot) == (True, False)
    assert (usual.default_transaction_options, usual.default_timeout_ms) == (None, None)
    assert SessionOptions(snapshot=True).causal_consistency is False
    assert SessionOptions(snapshot=None).snapshot is False


@pytest.mark.parametrize("name", OPTIONS_OF_TRANSACTIONS)
def test_options_of_transactions_are_checked(name: str) -> None:
    kind = type(OPTIONS_OF_TRANSACTIONS[name])
    named = "_ReadPreference" if name == "read_preference" else kind.__name__
    with pytest.raises(TypeError, match=rf"^{name} must be an instance of {named}, not 'x'$"):
        TransactionOptions(**{name: "x"})


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"causal_consistency": True, "snapshot": True}, ConfigurationError, "snapshot reads do not support causal_"),
        ({"default_transaction_options": 5}, TypeError, "default_transaction_options must be an instance of Transac"),
        ({"default_timeout_ms": -1}, ValueError, "default_timeout_ms must be "),
    ],
)
def test_options_of_sessions_are_checked(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        SessionOptions(**options)
    assert str(caught.value).startswith(message)


def test_transactions_are_acknowledged() -> None:
    with pytest.raises(ConfigurationError, match=r"^transactions do not support unacknowledged write concerns: Write"):
        TransactionOptions(write_concern=WriteConcern(w=0))


def test_a_session_is_explicit() -> None:
    with (
        ScriptedServer() as server,
        MongoClient[Any](server.name) as client,
        client.start_session() as session,
        pytest.raises(ValueError, match="implicit must be False"),
    ):
        ClientSession(client, session._state.server_session, session.options, True)


# Logs


@pytest.mark.parametrize("service", [None, "a service"])
def test_a_command_is_logged_with_its_service(service: str | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "gmongo.command")
    publisher = CommandEvents((), silent=False)
    connection = SimpleNamespace(id=1, service_id=service, address=("h", 1), hello=SimpleNamespace(connection_id=None))
    sent = SimpleNamespace(name="ping", database="admin", request_id=2, operation_id=3, connection=connection)
    publisher._log("Command succeeded", sent, {}, 0.5)
    fields = vars(caplog.records[-1])["structured"]
    assert fields.get("serviceId") == service
    assert "serverConnectionId" not in fields
    assert (fields["durationMS"], fields["driverConnectionId"], fields["serverHost"]) == (500, 1, "h")


# The environment


@pytest.mark.parametrize(("text", "length"), [("", 0), (" 12 ", 12), ("x", 0), ("-1", 0), ("1.5", 0), ("٣", 0)])
def test_how_much_of_commands_spans_show(text: str, length: int, monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> None:
    monkeypatch.setenv("OTEL_PYTHON_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH", text)
    assert telemetry_settings(None, None, None).query_text_max_length == length
    assert bool(recwarn) is (text.strip() not in ("", "12"))
    assert telemetry_settings({"query_text_max_length": 7}, None, None).query_text_max_length == 7


# The end of a client


def test_a_client_that_knows_no_server_says_no_good_bye(monkeypatch: pytest.MonkeyPatch) -> None:
    client: MongoClient[Any] = MongoClient("127.0.0.1:1", connect=False)
    client.start_session().end_session()
    assert len(client._executor.sessions._idle) == 1
    sent: list[Any] = []
    monkeypatch.setattr(client._executor, "run", sent.append)
    client.close()
    assert sent == []
    assert client._topology.closed


def test_a_client_that_knows_its_server_ends_its_sessions() -> None:
    with ScriptedServer() as server:
        with MongoClient[Any](server.name) as client:
            client.db.c.find_one()
        (command,) = server.commands("endSessions")
        assert len(command["endSessions"]) == 1
        client.close()
        assert len(server.commands("endSessions")) == 1


@pytest.mark.parametrize("acknowledged", [True, False])
def test_a_refused_command_of_a_bulk_is_an_error_if_it_is_acknowledged(acknowledged: bool) -> None:
    """Without, all but the last command are asked for a reply, so that an ordered bulk ends at the first error."""
    requests: list[Any] = [InsertOne({}), DeleteOne({}), InsertOne({})]
    with ScriptedServer({"delete": REFUSED}) as server, MongoClient[Any](server.name) as client:
        collection = client.db.get_collection("c", write_concern=WriteConcern(w=1 if acknowledged else 0))
        if acknowledged:
            with pytest.raises(OperationFailure, match="not authorized"):
                collection.bulk_write(requests)
        else:
            assert not collection.bulk_write(requests).acknowledged
        assert (len(server.commands("insert")), len(server.commands("delete"))) == (1, 1)
