"""``timeoutMS`` and :func:`gmongo.timeout` set one deadline for all steps of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import gevent.event
import pytest

import gmongo
from gmongo import _clock
from gmongo.errors import (
    PyMongoError,
    ServerSelectionTimeoutError,
    WaitQueueTimeoutError,
)
from gmongo.sdam.selection import WRITABLE
from gmongo.testing import Deployment, VirtualTime
from gmongo.write_concern import WriteConcern
from tests.execution.harness import assert_no_resource_in_use, delay_replies
from tests.execution.operations import WITH_SESSION
from tests.support.clients import Client, Connect
from tests.support.pools import checked_out
from tests.support.server import ScriptedServer, cursor_reply
from tests.support.wait import eventually

LIMIT = 0.12
pytestmark = pytest.mark.usefixtures("in_time")


@pytest.fixture(params=["option", "block"])
def connect_with_timeout(request: pytest.FixtureRequest, connect: Connect) -> Iterator[Callable[[Any], Client]]:
    """Return a function that creates a client whose operations have a timeout of 120 ms.

    The timeout comes from the option ``timeoutMS`` or from a block with :func:`gmongo.timeout`.
    """
    if request.param == "option":
        yield lambda uri, **options: connect(uri, timeoutMS=int(LIMIT * 1000), **options)
    else:
        with gmongo.timeout(LIMIT):
            yield connect


@pytest.mark.parametrize("seconds", [None, 0.3, 0.8])
def test_close_of_cursor_uses_timeout_of_block_or_of_cursor(connect: Connect, seconds: float | None) -> None:
    gate = gevent.event.Event()
    replies = {"find": cursor_reply([{"_id": 1}], 7), "killCursors": lambda command: gate.wait() and {"ok": 1}}
    with ScriptedServer(replies) as server:
        client = connect(f"mongodb://{server.name}")
        with gmongo.timeout(0.5):
            cursor = client.db.c.find()
            next(cursor)
        gevent.sleep(0.6)
        began = _clock.monotonic()
        try:
            with gmongo.timeout(seconds):
                cursor.close()
            assert _clock.monotonic() - began == pytest.approx(seconds or 0.5, abs=0.01)
        finally:
            gate.set()


def test_shorter_server_selection_timeout_applies(virtual_time: VirtualTime, connect_with_timeout: Any) -> None:
    client = connect_with_timeout("mongodb://127.0.0.1:1", serverSelectionTimeoutMS=10)
    begin = virtual_time.monotonic()
    with pytest.raises(ServerSelectionTimeoutError):
        client.db.command("ping")
    assert virtual_time.monotonic() - begin == pytest.approx(0.01)


def test_timeout_ends_wait_in_wait_queue_of_pool(
    virtual_time: VirtualTime, deployment: Deployment, connect_with_timeout: Any
) -> None:
    client = connect_with_timeout(deployment, maxPoolSize=1)
    with checked_out(client._topology.select_server(WRITABLE, "test").pool):
        begin = virtual_time.monotonic()
        with pytest.raises(WaitQueueTimeoutError) as raised:
            client.db.command("ping")
        assert raised.value.timeout
        assert virtual_time.monotonic() - begin == pytest.approx(LIMIT)


def test_timeout_of_operation_ends_handshake(server: ScriptedServer, connect_with_timeout: Any) -> None:
    client = connect_with_timeout(f"mongodb://{server.name}")
    eventually(lambda: client.nodes)
    eventually(lambda: len(server.commands("handshake")) >= 2)
    server.fail("handshake", *[lambda peer, message: None] * 5)
    with pytest.raises(PyMongoError) as raised:
        client.db.command("ping")
    assert raised.value.timeout
    assert_no_resource_in_use(client)


@pytest.mark.parametrize("operation", WITH_SESSION)
def test_each_command_times_out_and_has_max_time_ms(deployment: Deployment, connect: Connect, operation: str) -> None:
    name, run = WITH_SESSION[operation]
    client = connect(deployment)
    client.db.c.insert_many([{"_id": 1}, {"_id": 2}])
    deployment.commands.clear()
    delay_replies(deployment, name)
    with pytest.raises(PyMongoError) as raised, gmongo.timeout(0.05):
        run(client, None)
    assert raised.value.timeout
    sent = deployment.commands.named(name)[0].body
    assert 0 < sent["maxTimeMS"] <= 50
    assert_no_resource_in_use(client)


def test_timeout_block_overrides_timeout_ms(server: ScriptedServer, connect: Connect) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=1000)
    with gmongo.timeout(20):
        client.db.c.find_one()
    client.db.c.find_one()
    first, second = [command["maxTimeMS"] for command in server.commands("find")]
    assert second <= 1000 < first


def test_greenlet_spawned_in_timeout_block_has_no_deadline(server: ScriptedServer, scripted: Client) -> None:
    with gmongo.timeout(10):
        gevent.spawn(scripted.db.c.find_one).get()
    assert "maxTimeMS" not in server.commands("find")[0]


@pytest.mark.parametrize(
    ("write_concern", "sent_write_concern"),
    [
        (WriteConcern(wtimeout=100), None),
        (WriteConcern(w=1, wtimeout=100), {"w": 1}),
        (WriteConcern(w="majority", j=True, wtimeout=100), {"w": "majority", "j": True}),
        (WriteConcern(), None),
    ],
)
def test_timeout_removes_wtimeout_and_empty_write_concern(
    deployment: Deployment, client: Client, write_concern: WriteConcern, sent_write_concern: Any
) -> None:
    collection = client.db.get_collection("c", write_concern=write_concern)
    writes = {
        "insert": lambda: collection.insert_one({}),
        "update": lambda: collection.update_one({}, {"$set": {"a": 1}}),
        "delete": lambda: collection.delete_many({"no": 1}),
        "findAndModify": lambda: collection.find_one_and_update({}, {"$set": {"a": 2}}),
        "bulk": lambda: collection.insert_many([{}, {}]),
        "create": lambda: client.get_database("db", write_concern=write_concern).create_collection("new"),
        "createIndexes": lambda: collection.create_index("a"),
        "drop": lambda: collection.drop(),
    }
    for name, write in writes.items():
        deployment.commands.clear()
        with gmongo.timeout(5):
            write()
        bodies = [each.body for each in deployment.commands if each.name not in ("hello", "ismaster", "isMaster")]
        writes_sent = [body for body in bodies if next(iter(body)) not in ("listCollections", "endSessions")]
        assert writes_sent and [body.get("writeConcern") for body in writes_sent] == [sent_write_concern] * len(
            writes_sent
        ), name
        assert all("writeConcern" not in body or body["writeConcern"] for body in writes_sent)
