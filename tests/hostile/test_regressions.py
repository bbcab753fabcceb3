"""Regression tests for defects of the driver that ``python -m tests.hostile`` has found."""

from __future__ import annotations

from typing import Any

import bson
import pytest
from bson import Int64, Timestamp

from gmongo import InsertOne, MongoClient
from gmongo.errors import ProtocolError, ServerSelectionTimeoutError
from gmongo.testing import VirtualTime
from tests.hostile.invariants import CommandEventChecker, check_nothing_in_use, silent_stderr
from tests.support.server import ScriptedServer, cursor_reply
from tests.support.wait import eventually


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)


def client_of(server: ScriptedServer, **options: Any) -> MongoClient[Any]:
    return MongoClient(server.name, **{"serverSelectionTimeoutMS": 400, "heartbeatFrequencyMS": 500, **options})


MALFORMED_CLUSTER_TIMES: dict[str, Any] = {
    "number": 5,
    "wrong type": {"clusterTime": 5},
    "no time": {"signature": {}},
    "too large": {"clusterTime": Timestamp(1, 1), "more": "x" * 2000},
    "large signature": {"clusterTime": Timestamp(1, 1), "signature": {"hash": b"x" * 2000, "keyId": Int64(1)}},
}


@pytest.mark.parametrize("time", MALFORMED_CLUSTER_TIMES.values(), ids=MALFORMED_CLUSTER_TIMES.keys())
@pytest.mark.parametrize("in_session", [False, True], ids=["", "in a session"])
def test_malformed_cluster_time_raises_protocol_error_and_is_not_sent(time: Any, in_session: bool) -> None:
    valid_time = {"clusterTime": Timestamp(9, 1), "signature": {"hash": b"h" * 20, "keyId": Int64(1)}}
    with ScriptedServer() as server, client_of(server) as client, client.start_session() as session:
        server.replies["find"] = {**cursor_reply([]), "$clusterTime": time}
        options = {"session": session} if in_session else {}
        with pytest.raises(ProtocolError, match="clusterTime"):
            client.d.c.find_one({}, **options)
        server.replies["find"] = {**cursor_reply([{"_id": 1}]), "$clusterTime": valid_time}
        assert client.d.c.find_one({}, **options) == {"_id": 1}
        assert client.d.c.find_one({}, **options) == {"_id": 1}
        assert server.commands("find")[-1]["$clusterTime"] == valid_time
        # The client has replaced the first connection.
        assert len(set(server.connections_of("find"))) == 2


def test_cluster_time_with_unknown_field_is_sent() -> None:
    time = {"clusterTime": Timestamp(9, 1), "new": 1}
    with ScriptedServer({"find": {**cursor_reply([]), "$clusterTime": time}}) as server, client_of(server) as client:
        client.d.c.find_one()
        client.d.c.find_one()
        assert server.commands("find")[-1]["$clusterTime"] == time


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


def test_document_that_cannot_be_decoded_does_not_close_connection() -> None:
    with ScriptedServer() as server, client_of(server) as client:
        server.replies["find"] = cursor_reply([{"when": bson.datetime_ms.DatetimeMS(2**62)}])
        with pytest.raises(bson.errors.InvalidBSON):
            client.d.c.find_one()
        client.d.command("ping")
        assert server.connection_count == 2


def test_write_error_with_invalid_index_raises_protocol_error() -> None:
    for field, indexes in (("writeErrors", [9]), ("writeErrors", [-1]), ("writeErrors", [0, 1]), ("upserted", [0, 1])):
        reply = {"ok": 1, "n": 1, field: [{"index": each, "code": 1, "errmsg": "", "_id": 1} for each in indexes]}
        with ScriptedServer({"insert": reply}) as server, client_of(server) as client:
            for write in (
                lambda: client.d.c.insert_many([{}]),
                lambda: client.d.c.bulk_write([InsertOne({})]),
                lambda: client.d.c.insert_one({}),
            ):
                with pytest.raises(ProtocolError, match=rf"^(index in )?{field} of a reply must be .*{indexes[-1]}"):
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
