"""Each handshake has the field `backpressure`.

The driver retries an overloaded command, whatever value the field has in the hello reply.
"""

from __future__ import annotations

from typing import Any

import pytest

from gmongo import MongoClient
from tests.execution.harness import overload_reply, reply_in_sequence
from tests.support.clients import Connect
from tests.support.server import ScriptedReplicaSet, ScriptedServer
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
    with ScriptedReplicaSet(1) as replica_set:
        (server,) = replica_set.members
        server.hello_extra.update(reply)
        client = connect(f"mongodb://{server.name}")
        reply_in_sequence(server, "ping", overload_reply())
        client.db.command("ping")
        assert backoffs == [0.1]
