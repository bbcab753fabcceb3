"""``timeoutMS`` or :func:`gmongo.timeout` sets one deadline for all steps of an operation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import gevent
import pytest

import gmongo
from gmongo.engines.iteration import limits_each_iteration
from gmongo.errors import ConfigurationError, InvalidOperation, PyMongoError, ServerSelectionTimeoutError
from gmongo.read_preferences import Secondary
from gmongo.testing import VirtualTime
from tests.execution.harness import error_reply, overload_reply, reply_in_sequence
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer, cursor_reply, send_no_reply
from tests.support.wait import eventually


def test_timeout_block_overrides_timeout_ms(server: ScriptedServer, connect: Connect) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=1000)
    with gmongo.timeout(20):
        client.db.c.find_one()
    client.db.c.find_one()
    first, second = [command["maxTimeMS"] for command in server.commands("find")]
    assert second <= 1000 < first


@pytest.mark.parametrize(
    "select_server",
    [
        lambda client: client.address,
        lambda client: client.is_primary,
        lambda client: client.is_mongos,
        lambda client: client.get_database("db", read_preference=Secondary()).c.aggregate([{"$out": "d"}]),
    ],
)
def test_timeout_limits_server_selection_outside_of_operations(
    select_server: Callable[[Client], object], virtual_time: VirtualTime, connect: Connect
) -> None:
    client = connect("mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=3000")
    begin = virtual_time.monotonic()
    with gmongo.timeout(0.5), pytest.raises(ServerSelectionTimeoutError) as caught:
        select_server(client)
    assert caught.value.timeout and virtual_time.monotonic() - begin == pytest.approx(0.5, abs=1e-5)


def test_command_cursor_reads_batches_after_an_empty_batch(server: ScriptedServer, scripted_client: Client) -> None:
    server.replies["aggregate"] = cursor_reply([], 7)
    server.replies["getMore"] = cursor_reply([{"_id": 1}], 0, "nextBatch")
    assert scripted_client.db.c.aggregate([]).to_list() == [{"_id": 1}]


@pytest.mark.parametrize("is_bound", [False, True])
def test_operation_with_own_limit_raises_in_with_transaction(scripted_client: Client, is_bound: bool) -> None:
    with scripted_client.start_session() as session, session.bind() if is_bound else nullcontext():
        argument = None if is_bound else session
        with pytest.raises(InvalidOperation, match="with_transaction"):
            session.with_transaction(
                lambda _: scripted_client.db.c.find_one({}, session=argument, timeout_ms=5), timeout_ms=5000
            )


def test_command_of_iteration_time_limit_has_no_max_time(server: ScriptedServer, scripted_client: Client) -> None:
    # The server would count the time of later batches toward this limit too.
    server.replies["aggregate"] = cursor_reply([])
    scripted_client.db.c.aggregate([], timeout_ms=5000, timeout_mode="iteration")
    assert "maxTimeMS" not in server.commands("aggregate")[0]


@pytest.mark.parametrize("awaits", [False, True])
def test_only_awaiting_tailable_command_of_iteration_time_limit_has_max_time(
    server: ScriptedServer, scripted_client: Client, awaits: bool
) -> None:
    server.replies["find"] = cursor_reply([])
    scripted_client.db.cursor_command({"find": "c", "tailable": True, "awaitData": awaits}, timeout_ms=5000)
    assert ("maxTimeMS" in server.commands("find")[0]) is awaits


def test_timeout_mode_determines_limited_object_or_raises(scripted_client: Client) -> None:
    executor = scripted_client._executor.for_operation(5000, None)
    for mode, result, tailable, writes in (("iteration", True, True, False), ("cursor_lifetime", False, False, True)):
        assert limits_each_iteration(mode, executor, tailable=False) is result
        assert limits_each_iteration(mode, executor, tailable=tailable, writes=writes) is result
        with pytest.raises(ConfigurationError, match=r"tailable cursor has no end|pipeline .* has no iteration"):
            limits_each_iteration(mode, executor, tailable=not tailable, writes=not writes)


def test_decorated_function_has_new_deadline_in_each_call(scripted_client: Client, virtual_time: VirtualTime) -> None:
    @gmongo.timeout(1)
    def ping() -> None:
        assert scripted_client.admin.command("ping")["ok"] == 1

    ping()
    gevent.sleep(2)
    ping()


def test_timeout_object_has_new_deadline_in_each_block(scripted_client: Client, virtual_time: VirtualTime) -> None:
    limit = gmongo.timeout(0.5)
    for _ in range(2):
        with limit:
            scripted_client.db.c.find_one()
            gevent.sleep(0.4)
            with limit:
                scripted_client.db.c.find_one()


def test_greenlet_spawned_in_timeout_block_has_no_deadline(server: ScriptedServer, scripted_client: Client) -> None:
    with gmongo.timeout(10):
        gevent.spawn(scripted_client.db.c.find_one).get()
    assert "maxTimeMS" not in server.commands("find")[0]


def test_backoff_shortens_max_time_ms_of_the_retry(server: ScriptedServer, connect: Connect) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=10_000, baseBackoffMS=20)
    reply_in_sequence(server, "find", overload_reply(), overload_reply())
    client.db.c.find_one()
    limits = [command["maxTimeMS"] for command in server.commands("find")]
    assert limits == pytest.approx([10_000, 9_980, 9_940], abs=1)


def test_timeout_of_retry_has_error_of_first_attempt_as_cause(server: ScriptedServer, connect: Connect) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=100)
    reply_in_sequence(server, "find", error_reply(6), send_no_reply)
    with pytest.raises(PyMongoError) as caught:
        client.db.c.find_one()
    assert caught.value.timeout and str(caught.value.__cause__).startswith("scripted 6")


def test_with_transaction_raises_after_timeout_and_abort_has_a_new_timeout(
    virtual_time: VirtualTime, server: ScriptedServer, connect: Connect, recorder: Recorder
) -> None:
    client = connect(f"mongodb://{server.name}", timeoutMS=60, serverMonitoringMode="poll")
    client.db.command("ping")
    server.fail("insert", send_no_reply)
    server.fail("abortTransaction", send_no_reply)
    begin = virtual_time.monotonic()
    failure_times: list[float] = []
    recorder.hooks["CommandFailed"] = lambda _event: failure_times.append(virtual_time.monotonic() - begin)
    with client.start_session() as session:
        with pytest.raises(PyMongoError) as raised:
            session.with_transaction(lambda session: client.db.c.insert_one({}, session=session))
        assert raised.value.timeout
        assert virtual_time.monotonic() - begin == pytest.approx(0.06)
        eventually(lambda: len(failure_times) == 2)
    assert [event.command_name for event in recorder.events_named("CommandFailed")] == ["insert", "abortTransaction"]
    assert failure_times == pytest.approx([0.06, 0.12])


def test_greenlet_that_waits_for_query_ignores_timeout_of_other_greenlet(
    server: ScriptedServer, scripted_client: Client
) -> None:
    server.replies["find"] = cursor_reply([{"_id": 1}])
    server.fail("find", send_no_reply)
    cursor = scripted_client.db.c.find()
    first = gevent.spawn(gmongo.timeout(0.5)(cursor.next))
    second = gevent.spawn(cursor.next)
    with pytest.raises(PyMongoError):
        first.get()
    assert second.get() == {"_id": 1}
