"""Each handshake has the field `backpressure`.

Network errors of a handshake count as overload errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gmongo import MongoClient
from tests.execution.harness import overload_reply, reply_in_sequence, tokens_of
from tests.support.clients import Client, Connect
from tests.support.server import ScriptedReplicaSet, ScriptedServer, cut_reply
from tests.support.wait import eventually


@pytest.mark.requirement("BP-61")
def test_only_first_hello_of_monitor_has_field_backpressure() -> None:
    with ScriptedServer(streams=True) as server, MongoClient[Any](server.name) as client:
        client.admin.command("ping")
        # The monitor, the round trip time monitor and the pool send one handshake each.
        eventually(lambda: len(server.commands("handshake")) >= 3)
        assert all(command["backpressure"] is True for command in server.commands("handshake"))
        assert server.commands("hello")
        assert all("backpressure" not in command for command in server.commands("hello"))


@pytest.mark.requirement("BP-62")
@pytest.mark.parametrize("reply", [{}, {"backpressure": True}, {"backpressure": False}])
def test_each_value_of_hello_field_backpressure_permits_retry(
    connect: Connect, backoffs: list[float], reply: dict[str, Any]
) -> None:
    with ScriptedReplicaSet(1) as members:
        (server,) = members.members
        server.hello_extra.update(reply)
        client = connect(f"mongodb://{server.name}")
        reply_in_sequence(server, "ping", overload_reply())
        client.db.command("ping")
        assert backoffs == [0.1]


@pytest.mark.requirement("BP-05", "BP-07", "BP-72")
@pytest.mark.parametrize(
    "run_operation",
    [
        lambda client: client.db.command("ping"),
        lambda client: client.db.c.insert_one({"_id": 1}),
        lambda client: client.db.c.find_one(),
    ],
    ids=["ping", "insert", "find"],
)
def test_retry_after_closed_handshake_consumes_no_token(
    server: ScriptedServer, connect: Connect, backoffs: list[float], run_operation: Callable[[Client], Any]
) -> None:
    client = connect(f"mongodb://{server.name}", serverMonitoringMode="poll")
    eventually(lambda: client.nodes)
    server.fail("handshake", cut_reply(0))
    run_operation(client)
    assert backoffs == [0.1]
    assert tokens_of(client) == 1000
    assert client.retry_stats()["retries"] == 1
