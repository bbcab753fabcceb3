"""Regression tests for defects of the driver that campaigns have found."""

from __future__ import annotations

import gc
import threading
from typing import Any

import bson
import gevent
import pytest
from bson import Int64, Timestamp
from bson.codec_options import CodecOptions, TypeDecoder, TypeRegistry

from gmongo import InsertOne, MongoClient
from gmongo.errors import InvalidOperation, ProtocolError, ServerSelectionTimeoutError
from gmongo.testing import Deployment, VirtualTime
from tests.hostile.invariants import CommandEventChecker, check_nothing_in_use, silent_stderr
from tests.support.server import ScriptedServer, cursor_reply
from tests.support.wait import eventually


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)


def client_of(server: ScriptedServer, **options: Any) -> MongoClient[Any]:
    return MongoClient(server.name, **{"serverSelectionTimeoutMS": 400, "heartbeatFrequencyMS": 500, **options})


BAD_TIMES: dict[str, Any] = {
    "number": 5,
    "wrong type": {"clusterTime": 5},
    "no time": {"signature": {}},
    "too large": {"clusterTime": Timestamp(1, 1), "more": "x" * 2000},
    "large signature": {"clusterTime": Timestamp(1, 1), "signature": {"hash": b"x" * 2000, "keyId": Int64(1)}},
}


@pytest.mark.parametrize("time", BAD_TIMES.values(), ids=BAD_TIMES.keys())
@pytest.mark.parametrize("in_session", [False, True], ids=["", "in a session"])
def test_malformed_cluster_time_raises_protocol_error_and_is_not_sent(time: Any, in_session: bool) -> None:
    good = {"clusterTime": Timestamp(9, 1), "signature": {"hash": b"h" * 20, "keyId": Int64(1)}}
    with ScriptedServer() as server, client_of(server) as client, client.start_session() as session:
        server.replies["find"] = {**cursor_reply([]), "$clusterTime": time}
        options = {"session": session} if in_session else {}
        with pytest.raises(ProtocolError, match="clusterTime"):
            client.d.c.find_one({}, **options)
        server.replies["find"] = {**cursor_reply([{"_id": 1}]), "$clusterTime": good}
        assert client.d.c.find_one({}, **options) == {"_id": 1}
        assert client.d.c.find_one({}, **options) == {"_id": 1}
        assert server.commands("find")[-1]["$clusterTime"] == good
        # The client has replaced the first connection.
        assert len(set(server.connections_of("find"))) == 2


def test_cluster_time_with_unknown_field_is_sent() -> None:
    time = {"clusterTime": Timestamp(9, 1), "new": 1}
    with ScriptedServer({"find": {**cursor_reply([]), "$clusterTime": time}}) as server, client_of(server) as client:
        client.d.c.find_one()
        client.d.c.find_one()
        assert server.commands("find")[-1]["$clusterTime"] == time


@pytest.mark.parametrize("streams", [False, True], ids=["polled", "streaming"])
def test_client_recovers_from_malformed_topology_version_in_hello_error(streams: bool) -> None:
    with ScriptedServer(streams=streams) as server:
        server.hello_edit = lambda command, reply: {
            "ok": 0, "code": 10107, "errmsg": "not primary", "topologyVersion": 5,
        }  # fmt: skip
        with client_of(server, directConnection=True) as client:
            with pytest.raises(ServerSelectionTimeoutError):
                client.d.c.find_one()
            server.hello_edit = None
            assert eventually(lambda: client.d.c.find_one({"_id": 1}) == {"_id": 1})


def test_malformed_topology_version_in_error_raises_protocol_error() -> None:
    reply = {"ok": 0, "code": 10107, "errmsg": "not primary", "topologyVersion": {"processId": 5, "counter": "x"}}
    with ScriptedServer({"find": reply}, streams=True) as server, client_of(server) as client:
        with pytest.raises(ProtocolError, match="topologyVersion"):
            client.d.c.find_one()
        server.replies["find"] = cursor_reply([{"_id": 1}])
        assert client.d.c.find_one() == {"_id": 1}


@pytest.mark.parametrize("host", ["a" * 64 + ".example.com", "..", "\u2100" * 90])
def test_invalid_host_name_raises_selection_error_and_prints_nothing(host: str) -> None:
    with (
        silent_stderr(),
        MongoClient(host, serverSelectionTimeoutMS=100) as client,
        pytest.raises(ServerSelectionTimeoutError, match="cannot be a host name"),
    ):
        client.d.c.find_one()


def test_hello_with_1000_hosts_is_rejected(virtual_time: VirtualTime) -> None:
    with ScriptedServer() as server:
        hosts = [f"127.0.0.1:{number}" for number in range(1, 1001)]
        server.hello_extra = {"setName": "s", "hosts": hosts, "me": server.name}
        with client_of(server, serverSelectionTimeoutMS=100) as client:
            begin = virtual_time.monotonic()
            with pytest.raises(ServerSelectionTimeoutError, match="at most 256"):
                client.d.c.find_one()
            assert virtual_time.monotonic() - begin == pytest.approx(0.1, rel=0.001)
            assert len(client.topology_description.server_descriptions()) == 1


class FailingDecoder(TypeDecoder):
    bson_type = str

    def transform_bson(self, value: str) -> Any:
        raise ValueError("error of the application")


def test_error_of_application_decoder_is_raised_and_does_not_close_connection() -> None:
    options: CodecOptions[Any] = CodecOptions(type_registry=TypeRegistry([FailingDecoder()]))
    with ScriptedServer({"find": cursor_reply([{"a": "b"}])}) as server, client_of(server) as client:
        with pytest.raises((ValueError, bson.errors.InvalidBSON), match="error of the application"):
            client.d.c.with_options(codec_options=options).find_one()
        client.d.command("ping")
        assert server.connection_count == 2  # one connection of the monitor, and one of the pool


def test_document_that_cannot_be_decoded_does_not_close_connection() -> None:
    with ScriptedServer() as server, client_of(server) as client:
        server.replies["find"] = cursor_reply([{"when": bson.datetime_ms.DatetimeMS(2**62)}])
        with pytest.raises(bson.errors.InvalidBSON):
            client.d.c.find_one()
        client.d.command("ping")
        assert server.connection_count == 2


@pytest.mark.parametrize(
    "cursor",
    [
        1,
        {"id": 0, "ns": "d.c", "firstBatch": 5},
        {"id": Int64(7), "ns": "d.c", "firstBatch": [], "postBatchResumeToken": 5},
    ],
    ids=str,
)
def test_malformed_cursor_reply_publishes_end_event_and_releases_session(cursor: Any) -> None:
    commands = CommandEventChecker()
    with (
        ScriptedServer({"find": {"ok": 1, "cursor": cursor}}) as server,
        client_of(server, event_listeners=[commands]) as client,
    ):
        with pytest.raises(ProtocolError):
            list(client.d.c.find())
        check_nothing_in_use(client, commands)


def test_write_error_with_invalid_index_raises_protocol_error() -> None:
    for index in (9, -1):
        reply = {"ok": 1, "n": 1, "writeErrors": [{"index": index, "code": 1, "errmsg": ""}]}
        with ScriptedServer({"insert": reply}) as server, client_of(server) as client:
            for write in (
                lambda: client.d.c.insert_many([{}]),
                lambda: client.d.c.bulk_write([InsertOne({})]),
                lambda: client.d.c.insert_one({}),
            ):
                with pytest.raises(ProtocolError, match="index"):
                    write()


def test_malformed_kill_cursors_reply_prints_nothing_and_releases_sessions() -> None:
    commands = CommandEventChecker()
    with (
        silent_stderr(),
        ScriptedServer({"killCursors": {"ok": "yes", "errmsg": 7, "code": []}}) as server,
        client_of(server, event_listeners=[commands]) as client,
    ):
        server.replies["find"] = cursor_reply([{}, {}], cursor_id=7)
        for _ in range(20):
            cursor = client.d.c.find()
            next(cursor)
            del cursor
        eventually(lambda: sum(len(each["cursors"]) for each in server.commands("killCursors")) == 20)
        check_nothing_in_use(client, commands)


def test_close_of_client_in_another_thread_raises_invalid_operation() -> None:
    caught: list[BaseException] = []

    def close() -> None:
        try:
            client.close()
        except BaseException as error:
            caught.append(error)

    with ScriptedServer() as server, client_of(server) as client:
        client.d.command("ping")
        thread = threading.Thread(target=close)
        thread.start()
        eventually(lambda: not thread.is_alive())
        assert [type(each) for each in caught] == [InvalidOperation]
        assert client.d.command("ping")["ok"] == 1


def test_transaction_after_many_kills_gets_connection() -> None:
    def write(session: Any, number: object) -> None:
        client.t.pairs.insert_one({"_id": f"{number} a"}, session=session)
        client.t.pairs.insert_one({"_id": f"{number} b"}, session=session)

    def transact(number: object) -> None:
        with client.start_session() as session:
            session.with_transaction(lambda session: write(session, number))

    gc.collect()
    gc.disable()
    try:
        with Deployment.load_balanced(log=False) as deployment, MongoClient(deployment.uri, maxPoolSize=4) as client:
            client.t.create_collection("pairs")
            deployment.network.latency = 0.001
            for number in range(60):
                workers = [gevent.spawn(transact, f"{number} {worker}") for worker in range(3)]
                gevent.sleep(0.0004 * number)
                gevent.killall(workers)
            del workers
            with gevent.Timeout(4):
                transact("the last")
    finally:
        gc.enable()
