"""Operations and cursors use sessions according to the specification. The server is a scripted
server.
"""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from bson import Timestamp

from gmongo import MongoClient
from gmongo.errors import AutoReconnect, ConfigurationError, OperationFailure
from tests.support.recorder import Recorder
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cursor_reply, cut_reply


def test_advanced_cluster_time_is_sent_only_in_advanced_session() -> None:
    with ScriptedServer() as server, MongoClient[Any](server.name) as client, client.start_session() as session:
        session.advance_cluster_time({"clusterTime": Timestamp(9, 1)})
        client.db.command("ping", session=session)
        assert server.commands("ping")[-1]["$clusterTime"]["clusterTime"] == Timestamp(9, 1)
        client.db.command("ping")
        assert "$clusterTime" not in server.commands("ping")[-1]


@pytest.mark.requirement("BP-51")
def test_write_is_not_retried_without_session_support() -> None:
    with ScriptedReplicaSet(1) as replicas, MongoClient[Any](replicas.members[0].name) as client:
        (member,) = replicas.members
        client.db.c.find_one()
        member.fail("insert", cut_reply(0))
        # In the handshake of the next connection, the member reports no support of sessions.
        member.hello_extra["logicalSessionTimeoutMinutes"] = None
        with pytest.raises(OperationFailure, match="Selected server does not support retryable writes") as raised:
            client.db.c.insert_one({"_id": 1})
        assert isinstance(raised.value.__cause__, AutoReconnect)
        assert ["txnNumber" in command for command in member.commands("insert")] == [True]


def test_cursor_closed_before_first_document_sends_no_find() -> None:
    with ScriptedServer() as server, MongoClient[Any](server.name) as client:
        cursor = client.db.c.find()
        cursor.close()
        assert not cursor.alive
        assert list(cursor) == []
        assert server.commands("find") == []
        assert len(list(cursor.rewind())) == 1
        assert len(server.commands("find")) == 1


def test_client_close_returns_within_four_seconds_if_server_sends_no_replies() -> None:
    with ScriptedServer({"find": cursor_reply([{"_id": 1}], 7)}) as server:
        client = MongoClient[Any](server.name)
        cursors = [client.db.c.find() for _ in range(4)]
        for cursor in cursors:
            next(cursor)
        server.answering.clear()
        del cursor, cursors
        with gevent.Timeout(4):
            client.close()
        server.answering.set()


def test_client_is_usable_after_interruption_in_topology_opened_listener() -> None:
    recorder = Recorder()
    recorder.hooks["TopologyOpened"] = lambda _event: gevent.sleep(0.2)
    with ScriptedServer() as server:
        client = MongoClient[Any](server.name, connect=False, event_listeners=[recorder])
        timeout = gevent.Timeout(0.01)
        with pytest.raises(gevent.Timeout) as caught, timeout:
            client.db.command("ping")
        assert caught.value is timeout
        assert client.db.command("ping")["ok"] == 1
        client.close()


def test_explicit_session_of_w_0_client_allows_only_reads() -> None:
    with ScriptedServer() as server, MongoClient[Any](server.name, w=0) as client, client.start_session() as session:
        client.db.c.find_one(session=session)
        list(client.db.c.find(session=session))
        for write in (client.db.c.insert_one, client.db.c.delete_one):
            with pytest.raises(ConfigurationError, match="w=0"):
                write({}, session=session)
        assert len(server.commands("find")) == 2
        assert all("lsid" in command for command in server.commands("find"))
        assert server.commands("insert") == server.commands("delete") == []
