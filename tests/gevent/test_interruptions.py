"""Kills and time-outs that land at every place where an operation can wait; afterwards nothing is lost."""

from __future__ import annotations

from time import monotonic

import gevent
import pytest
from gevent import GreenletExit, Timeout
from gevent.event import Event

from gmongo import MongoClient
from gmongo.errors import NetworkTimeout, PoolClearedError, WaitQueueTimeoutError
from gmongo.monitoring import CommandListener, ConnectionPoolListener, ServerListener
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, cursor_reply, held, silent
from tests.support.wait import PATIENCE, eventually


class Foreign(BaseException):
    """Thrown by code that knows nothing of the driver."""


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def client(server):
    with gevent.Timeout(15), MongoClient(server.name, maxPoolSize=1) as client:
        client.admin.command("ping")
        yield client


def stats(client):
    (pool,) = client.pool_stats()
    return pool


def check_nothing_lost(client, generation=0):
    """The counts are true, the server has stayed known, and the next operation works."""
    pool = stats(client)
    assert (pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0)
    assert (pool["generation"], pool["state"]) == (generation, "ready")
    with gevent.Timeout(30):
        for number in range(2):
            assert client.db.c.find_one({"_id": number}) == {"_id": number}
    assert stats(client)["total"] == stats(client)["available"] == 1


def find(client, number):
    return gevent.spawn(client.db.c.find_one, {"_id": number})


def waiting(client, count):
    return eventually(lambda: stats(client)["waiting"] == count)


@pytest.fixture
def held_connection(client, server):
    """The pool's only connection is in use until the event is set."""
    gate = Event()
    server.fail("find", held(gate))
    holder = find(client, "holder")
    eventually(lambda: server.commands("find"))
    yield gate
    gate.set()
    assert holder.get() == {"_id": "holder"}


def kill(greenlet):
    greenlet.kill()
    assert isinstance(greenlet.value, GreenletExit)


def time_out(greenlet, _error=None):
    """Throw a foreign time-out into a greenlet, and see that this very object comes out again."""
    foreign = Timeout(1000)
    greenlet.kill(foreign)
    assert greenlet.exception is foreign


def throw_foreign(greenlet):
    foreign = Foreign()
    greenlet.kill(foreign)
    assert greenlet.exception is foreign


def throw_ordinary(greenlet):
    """``Timeout(1, ValueError())`` throws an ordinary exception."""
    foreign = ValueError("theirs")
    greenlet.kill(foreign)
    assert greenlet.exception is foreign


interruptions = pytest.mark.parametrize("interrupt", [kill, time_out, throw_foreign, throw_ordinary])


# In the wait queue


@interruptions
def test_waiting_for_a_connection(client, held_connection, interrupt):
    waiter = find(client, 1)
    waiting(client, 1)
    interrupt(waiter)
    assert stats(client)["waiting"] == 0
    held_connection.set()
    eventually(lambda: stats(client)["in_use"] == 0)
    check_nothing_lost(client)


THROWN = [GreenletExit, Timeout, Foreign, ValueError]


@pytest.mark.parametrize("thrown", THROWN)
@pytest.mark.parametrize("doomed_first", [True, False], ids=["doomed, then handed", "handed, then doomed"])
def test_interrupted_in_the_instant_of_the_hand_over(client, server, thrown, doomed_first):
    """No greenlet runs between the hand-over and what is thrown; it reaches the waiter before or after it has woken."""
    pool = client._topology.pools()[0]
    connection = pool.check_out()
    first, second = find(client, 1), find(client, 2)
    waiting(client, 2)
    if doomed_first:
        first.kill(thrown(), block=False)
    pool.check_in(connection)
    assert (stats(client)["waiting"], stats(client)["in_use"]) == (1, 1)  # the doomed one has it
    if not doomed_first:
        first.kill(thrown(), block=False)
    assert second.get(timeout=PATIENCE) == {"_id": 2}
    sent = {"_id": 1} in [each["filter"] for each in server.commands("find")]
    assert sent is not doomed_first
    check_nothing_lost(client)


@pytest.mark.parametrize("doomed_first", [True, False], ids=["doomed, then handed", "handed, then doomed"])
def test_interrupted_with_leave_to_make_a_connection(client, server, doomed_first):
    """The connection given back was lost, so the waiter is told to make one, and passes that on as it dies."""
    pool = client._topology.pools()[0]
    connection = pool.check_out()
    first, second = find(client, 1), find(client, 2)
    waiting(client, 2)
    if doomed_first:
        first.kill(block=False)
    connection.error = EOFError("lost")
    pool.check_in(connection)
    assert (stats(client)["waiting"], stats(client)["pending"]) == (1, 1)
    if not doomed_first:
        first.kill(block=False)
    assert second.get(timeout=PATIENCE) == {"_id": 2}
    check_nothing_lost(client)


def test_waiter_times_out_in_the_instant_of_the_hand_over(server):
    with gevent.Timeout(30), MongoClient(server.name, maxPoolSize=1, waitQueueTimeoutMS=50) as client:
        client.admin.command("ping")
        pool = client._topology.pools()[0]
        connection = pool.check_out()
        waiter = find(client, 1)
        waiting(client, 1)
        end = monotonic() + 0.06
        while monotonic() < end:
            pass  # the timer is due, and the hub has had no chance to see it
        pool.check_in(connection)
        gevent.joinall([waiter])
        assert isinstance(waiter.exception, WaitQueueTimeoutError) or waiter.value == {"_id": 1}
        check_nothing_lost(client)


def test_first_come_first_served_without_barging(client, server, held_connection):
    finished = []

    def ask(number):
        client.db.c.find_one({"_id": number})
        finished.append(number)

    waiters = []
    for number in range(5):
        waiters.append(gevent.spawn(ask, number))
        waiting(client, number + 1)
    held_connection.set()
    eventually(lambda: stats(client)["waiting"] < 5)
    ask("late")  # comes when the connection has just been given back, and must queue up
    gevent.joinall(waiters, raise_error=True)
    assert finished == [0, 1, 2, 3, 4, "late"]


def test_killed_waiters_leave_the_others_in_order(client, held_connection):
    finished = []
    waiters = []
    for number in range(6):
        waiter = gevent.spawn(lambda number=number: finished.append(client.db.c.find_one({"_id": number})["_id"]))
        waiters.append(waiter)
        waiting(client, number + 1)
    gevent.killall(waiters[0::2])
    assert stats(client)["waiting"] == 3
    held_connection.set()
    gevent.joinall(waiters)
    assert finished == [1, 3, 5]
    check_nothing_lost(client)


def test_wait_queue_timeout(server):
    gate = Event()
    with MongoClient(server.name, maxPoolSize=1, waitQueueTimeoutMS=30) as client:
        client.admin.command("ping")
        server.fail("find", held(gate))
        holder = find(client, "holder")
        eventually(lambda: stats(client)["in_use"] == 1)
        with pytest.raises(WaitQueueTimeoutError, match="Timed out while checking out") as caught:
            client.db.c.find_one()
        assert caught.value.timeout
        assert (stats(client)["waiting"], stats(client)["in_use"]) == (0, 1)
        gate.set()
        assert holder.get(timeout=PATIENCE) == {"_id": "holder"}
        check_nothing_lost(client)


# Selecting a server


@interruptions
def test_waiting_for_a_server(interrupt):
    with ScriptedServer() as server:
        server.answering.clear()
        with MongoClient(server.name) as client:
            waiter = find(client, 1)
            server.wait_for("handshake")
            interrupt(waiter)
            server.answering.set()
            check_nothing_lost_after_start(client)


def check_nothing_lost_after_start(client):
    with gevent.Timeout(30):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
    check_nothing_lost(client)


# Establishing


@pytest.fixture
def unconnected(server):
    """A client that knows its server, and has no connection to it yet."""
    with gevent.Timeout(15), MongoClient(server.name, maxPoolSize=1, connectTimeoutMS=10_000) as client:
        eventually(lambda: client.nodes)
        yield client


@interruptions
def test_establishing_a_connection(unconnected, server, interrupt):
    server.fail("handshake", silent)
    first = find(unconnected, 1)
    server.wait_for("handshake", 2)
    second = find(unconnected, 2)
    waiting(unconnected, 1)
    assert stats(unconnected)["pending"] == 1
    interrupt(first)
    assert second.get(timeout=PATIENCE) == {"_id": 2}  # the leave to connect has gone to the next one
    check_nothing_lost(unconnected)


def test_connect_timeout_ends_a_handshake_without_reply(server):
    with gevent.Timeout(30), MongoClient(server.name, connectTimeoutMS=50, retryReads=False) as client:
        eventually(lambda: client.nodes)
        server.fail("handshake", silent)
        with pytest.raises(NetworkTimeout, match=f"{server.name}: timed out .*50 ms"):
            client.db.c.find_one()
        assert stats(client)["pending"] == 0
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


# Sending and receiving


@interruptions
def test_sending_to_a_server_that_does_not_read(client, server, interrupt):
    server.reading.clear()
    large = [{"_id": number, "text": "x" * 4_000_000} for number in range(5)]
    writer = gevent.spawn(client.db.c.insert_many, large)
    eventually(lambda: stats(client)["in_use"] == 1)
    gevent.sleep(0.05)
    assert not writer.ready()
    interrupt(writer)
    server.reading.set()
    check_nothing_lost(client)
    assert not server.commands("insert")


@interruptions
def test_receiving(client, server, interrupt):
    server.fail("find", silent)
    reader = find(client, 1)
    eventually(lambda: server.commands("find"))
    interrupt(reader)
    check_nothing_lost(client)


def test_late_reply_does_not_reach_the_next_operation(client, server):
    gate = Event()
    server.fail("find", held(gate))
    reader = find(client, "killed")
    eventually(lambda: server.commands("find"))
    reader.kill()
    gate.set()
    check_nothing_lost(client)


def test_own_time_out_around_an_operation(client, server):
    """The time-out is the very object of the caller's, and the server stays known."""
    server.fail("find", silent)
    with gevent.Timeout(0.05) as mine, pytest.raises(Timeout) as caught:
        client.db.c.find_one()
    assert caught.value is mine
    check_nothing_lost(client)


def test_own_time_out_that_raises_a_builtin_timeout_error(server):
    """``Timeout(1, TimeoutError())`` throws an OSError, which is no failure of the network."""
    mine = TimeoutError("mine")
    with gevent.Timeout(30), MongoClient(server.name, maxPoolSize=1, retryReads=False) as client:
        client.admin.command("ping")
        server.fail("find", silent)
        with pytest.raises(TimeoutError) as caught, gevent.Timeout(0.03, mine):
            client.db.c.find_one()
        assert caught.value is mine
        check_nothing_lost(client)


def test_socket_timeout_inside_a_foreign_one(server):
    with MongoClient(server.name, socketTimeoutMS=30, retryReads=False) as client:
        client.admin.command("ping")
        server.fail("find", silent)
        with gevent.Timeout(10), pytest.raises(NetworkTimeout):
            client.db.c.find_one()
        check_nothing_lost(client)


def test_foreign_time_out_inside_a_socket_timeout(server):
    with MongoClient(server.name, socketTimeoutMS=10_000) as client:
        client.admin.command("ping")
        server.fail("find", silent)
        with gevent.Timeout(0.03) as mine, pytest.raises(Timeout) as caught:
            client.db.c.find_one()
        assert caught.value is mine
        check_nothing_lost(client)


@interruptions
def test_reading_a_further_batch(client, server, interrupt):
    find_reply, server.replies["find"] = server.replies["find"], cursor_reply([{"_id": 1}], cursor_id=7)
    cursor = client.db.c.find()
    next(cursor)
    server.replies["find"] = find_reply
    server.fail("getMore", silent)
    reader = gevent.spawn(lambda: next(cursor))
    server.wait_for("getMore")
    interrupt(reader)
    assert server.wait_for("killCursors")["cursors"] == [7]
    eventually(lambda: stats(client)["in_use"] == 0)
    assert not cursor.alive
    check_nothing_lost(client)


# Clearing with interruption


def test_clear_that_interrupts(server):
    with gevent.Timeout(10), MongoClient(server.name, maxPoolSize=3, retryReads=False) as client:
        client.admin.command("ping")
        server.fail("find", silent, silent)
        readers = [find(client, number) for number in range(2)]
        eventually(lambda: len(server.commands("find")) == 2)
        client._topology.pools()[0].clear(interrupt=True)
        gevent.joinall(readers, timeout=PATIENCE)
        assert [type(reader.exception) for reader in readers] == [PoolClearedError] * 2
        assert "interrupted due to server monitor timeout" in str(readers[0].exception)
        pool = stats(client)
        assert (pool["in_use"], pool["pending"], pool["total"], pool["state"]) == (0, 0, 0, "paused")


def test_clear_evicts_waiters(client, held_connection):
    waiter = find(client, 1)
    waiting(client, 1)
    client._topology.pools()[0].clear(ConnectionError("scripted"))
    assert stats(client)["waiting"] == 0
    client._topology.pools()[0].ready()
    held_connection.set()
    assert waiter.get(timeout=PATIENCE) == {"_id": 1}  # it was tried again
    eventually(lambda: stats(client)["in_use"] == 0)
    check_nothing_lost(client, generation=1)


# Events


@interruptions
def test_every_started_command_gets_its_end(server, interrupt):
    recorder = Recorder()
    with MongoClient(server.name, event_listeners=[recorder]) as client:
        server.fail("find", silent)
        reader = find(client, 1)
        eventually(lambda: server.commands("find"))
        interrupt(reader)
        assert recorder.only("Command") == ["CommandStarted", "CommandFailed"]
        assert recorder.of("CommandStarted")[0].request_id == recorder.of("CommandFailed")[0].request_id
        check_nothing_lost(client)


class Sleeper(ConnectionPoolListener, CommandListener, ServerListener):
    """Switches in the listener of one event, where anything may be thrown at the greenlet that published it."""

    def __init__(self, event):
        self._event = event
        self.asleep = Event()

    def __getattribute__(self, name):
        if name.startswith("_") or name == "asleep":
            return object.__getattribute__(self, name)
        return self._sleep if name == self._event else lambda event: None

    def _sleep(self, _event):
        if not self.asleep.is_set():
            self.asleep.set()
            gevent.sleep(1000)


@pytest.mark.parametrize(
    "event",
    [
        "connection_check_out_started",
        "connection_created",
        "connection_ready",
        "connection_checked_out",
        "connection_checked_in",
        "started",
        "succeeded",
    ],
)
def test_killed_while_a_listener_switches(server, event):
    sleeper = Sleeper(event)
    with gevent.Timeout(30), MongoClient(server.name, maxPoolSize=1, event_listeners=[sleeper]) as client:
        reader = find(client, 1)
        assert sleeper.asleep.wait(PATIENCE)
        kill(reader)
        check_nothing_lost(client)


@pytest.mark.parametrize("event", ["succeeded", "connection_checked_in"])
def test_a_cursor_that_was_open_when_its_operation_was_killed_is_ended(server, event):
    """Its reply has come, but the caller does not have it: while a listener is told, the greenlet dies."""
    server.replies["find"] = cursor_reply([{"_id": 1}], cursor_id=7)
    sleeper = Sleeper(event)
    with gevent.Timeout(30), MongoClient(server.name, maxPoolSize=1, event_listeners=[sleeper]) as client:
        sleeper.asleep.set()  # not yet
        client.admin.command("ping")
        sleeper.asleep.clear()
        reader = gevent.spawn(lambda: next(client.db.c.find()))
        assert sleeper.asleep.wait(PATIENCE)
        kill(reader)
        eventually(lambda: server.commands("killCursors"))
        assert [command["cursors"] for command in server.commands("killCursors")] == [[7]]


def test_killed_while_a_listener_of_a_closed_connection_switches(server):
    """A check-out that meets a perished connection, and is killed while that is told."""
    sleeper = Sleeper("connection_closed")
    options = {"maxPoolSize": 1, "maxIdleTimeMS": 1, "event_listeners": [sleeper]}
    with gevent.Timeout(30), MongoClient(server.name, **options) as client:
        client.admin.command("ping")
        gevent.sleep(0.01)
        reader = find(client, 1)
        assert sleeper.asleep.wait(PATIENCE)
        kill(reader)
        pool = stats(client)
        assert (pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0)
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


@pytest.mark.parametrize("event", ["description_changed", "pool_cleared"])
def test_killed_while_a_listener_of_a_failed_handshake_switches(server, event):
    with gevent.Timeout(30), MongoClient(server.name, event_listeners=[sleeper := Sleeper(event)]) as client:
        sleeper.asleep.set()  # not yet
        eventually(lambda: client.nodes)
        server.hello_edit = lambda _command, _reply: {"ok": 0, "code": 8000, "errmsg": "not now"}
        sleeper.asleep.clear()
        reader = find(client, 1)
        assert sleeper.asleep.wait(PATIENCE)
        kill(reader)
        pool = stats(client)
        assert (pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0)


# A storm


def test_storm_of_kills_and_time_outs(server):
    """Many greenlets on few connections, half of them interrupted at arbitrary points."""
    with gevent.Timeout(15), MongoClient(server.name, maxPoolSize=3) as client:
        client.admin.command("ping")

        def work(number):
            with gevent.Timeout(number % 7 / 2000, False):
                assert client.db.c.find_one({"_id": number}) == {"_id": number}

        for _ in range(10):
            greenlets = [gevent.spawn(work, number) for number in range(1, 60)]
            for number, greenlet in enumerate(greenlets):
                if number % 3 == 0:
                    gevent.sleep(0)
                    greenlet.kill(block=False)
            gevent.joinall(greenlets, raise_error=True)
        # The background kills the sessions of the interrupted commands, which takes a connection for a moment.
        eventually(lambda: not sum(stats(client)[each] for each in ("in_use", "pending", "waiting")))
        assert stats(client)["generation"] == 0
        assert stats(client)["total"] <= 3
        readers = [find(client, number) for number in range(20)]
        assert [reader.get(timeout=PATIENCE)["_id"] for reader in readers] == list(range(20))
