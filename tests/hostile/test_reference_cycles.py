"""Tests that Python releases the local variables of an ended greenlet without the garbage collector.

A greenlet refers to the exception that ended the greenlet, and the exception refers to the frames
of its traceback. If a frame refers to the greenlet or to the exception, a reference cycle exists.
The cycle keeps local variables of the application, and perhaps a connection, alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import gevent
import pytest
from gevent import Timeout

from gmongo import MongoClient, timeout
from gmongo.errors import NetworkTimeout
from gmongo.testing import Deployment
from gmongo.wire.timeout import interrupt_after
from tests.gevent.switching.harness import ScenarioRun, _insert_facts
from tests.gevent.switching.interruptions import EARLY, INTERRUPTION_KINDS, InterruptionKind, track_timeouts
from tests.gevent.switching.scenarios import SCENARIOS
from tests.gevent.switching.tracing import Tracer
from tests.support.server import ScriptedServer, send_no_reply
from tests.support.wait import becomes_true

pytestmark = pytest.mark.usefixtures("collector_off")


class Request:
    """An object in a local variable of the application. The tests check its release."""


@pytest.mark.one_in(24)
# The test omits interruptions at other moments: their tracebacks contain frames of test functions.
@pytest.mark.parametrize(
    "kind", [kind for kind in INTERRUPTION_KINDS if kind.moment == EARLY], ids=lambda kind: kind.name.replace(" ", "-")
)
@pytest.mark.parametrize(
    "scenario",
    [each for each in SCENARIOS if not each.interrupts_driver and not each.closes_client],
    ids=lambda scenario: scenario.name.replace(" ", "-"),
)
def test_interrupted_greenlet_releases_local_variables(
    scenario: Any, kind: InterruptionKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    track_timeouts(monkeypatch)
    with scenario.deployment() as deployment:
        _insert_facts(deployment)
        runs = [run_with_exception_at(scenario, deployment, switch_number, kind) for switch_number in range(4)]
    assert any(thrown for thrown, _released in runs)
    switches = [switch_number for switch_number, (_thrown, released) in enumerate(runs) if not released]
    assert not switches, f"local variables are still alive after interruptions at the switches {switches}"


def run_with_exception_at(
    scenario: Any, deployment: Deployment, switch_number: int, kind: InterruptionKind
) -> tuple[bool, bool]:
    """Run a scenario, and throw an exception at one switch.

    Return two flags: the exception was thrown, and the local variables were released.
    """
    request = Request()
    request_ref = weakref.ref(request)
    run_state = ScenarioRun(scenario, deployment, listeners_switch=False)

    def act(request: Request) -> None:
        try:
            scenario.run_operation(run_state)
        except BaseException:
            return

    try:
        if scenario.starts_with_connection:
            run_state.open_connection()
        scenario.prepare(run_state)
        run_state.greenlet = gevent.Greenlet(act, request)
        del request
        run_state.greenlet.start()
        with Tracer(switch_number, kind, lambda each: each is run_state.greenlet) as tracer:
            scenario.run_others(run_state)
            becomes_true(run_state.greenlet.ready, 5)
            gevent.joinall(run_state.others, timeout=1)
        assert run_state.greenlet.ready()
        thrown = bool(tracer.errors)
        tracer.errors.clear()
        tracer.traced_greenlet = run_state.greenlet = None
        return thrown, becomes_true(lambda: request_ref() is None, 0.3)
    finally:
        run_state.kept.clear()
        run_state.client.close()


OVERLOAD_REPLY = {"ok": 0, "code": 462, "errorLabels": ["SystemOverloadedError", "RetryableError"]}


@pytest.mark.parametrize("logs_slow_operations", [False, True])
@pytest.mark.parametrize("wait", ["no reply", "backoff"])
def test_killed_greenlet_releases_local_variables(wait: str, logs_slow_operations: bool) -> None:
    """The killed greenlet does not catch the exception, and therefore refers to the exception."""
    options: dict[str, Any] = {"slow_operation_ms": 60_000} if logs_slow_operations else {}
    with ScriptedServer() as server, MongoClient(server.name, baseBackoffMS=60_000, **options) as client:
        client.admin.command("ping")
        if wait == "no reply":
            server.fail("find", send_no_reply)
        else:
            server.replies["find"] = lambda _command: OVERLOAD_REPLY
        request = Request()
        request_ref = weakref.ref(request)
        greenlet = gevent.spawn(lambda request: client.db.c.find_one(), request)
        del request
        server.wait_for("find")
        gevent.sleep(0.02)
        greenlet.kill()
        del greenlet
        assert becomes_true(lambda: request_ref() is None, 0.3)


@pytest.mark.parametrize("interruption", ["kill", "timeout"])
def test_interrupted_cursor_releases_pinned_connection(interruption: str) -> None:
    def read_all() -> None:
        if interruption == "kill":
            list(client.s.d.find({}, batch_size=3))
            return
        limit = Timeout.start_new(0.015)
        try:
            list(client.s.d.find({}, batch_size=3))
        except Timeout as error:
            assert error is limit
        finally:
            limit.close()

    with Deployment.load_balanced(log=False) as deployment, MongoClient(deployment.uri, maxPoolSize=6) as client:
        client.s.d.insert_many([{"_id": number} for number in range(30)])
        deployment.network.latency = 0.002
        for number in range(60):
            greenlet = gevent.spawn(read_all)
            gevent.sleep(number * 0.0005)
            if interruption == "kill":
                greenlet.kill()
            else:
                greenlet.join()
            del greenlet
        assert becomes_true(lambda: client.pool_stats()[0]["in_use"] == 0, 1)


FAILURE_REPLIES = {
    "command error": {"ok": 0, "code": 59, "errmsg": "scripted error"},
    "not primary": {"ok": 0, "code": 10107, "errmsg": "not primary"},
    "overload": {"ok": 0, "code": 462, "errmsg": "busy", "errorLabels": ["SystemOverloadedError", "RetryableError"]},
    "malformed cursor": {"ok": 1, "cursor": 5},
}


def text_after_release(call: Callable[[], object], *errors: type[Exception]) -> str:
    """Handle the error of `call`, check that the local variables are released, and return the text of
    the error.
    """
    request = Request()
    request_ref = weakref.ref(request)

    def handle(_request: Request) -> str:
        try:
            return str(call())
        except errors as error:
            return str(error)

    text = handle(request)
    del request
    gevent.sleep(0)  # let the hub run its callbacks, which may refer to the greenlet
    assert request_ref() is None
    return text


@pytest.mark.parametrize("reply", FAILURE_REPLIES.values(), ids=FAILURE_REPLIES.keys())
def test_handled_error_reply_releases_local_variables(reply: dict[str, Any]) -> None:
    with ScriptedServer({"find": reply}) as server, MongoClient(server.name, baseBackoffMS=1) as client:
        assert text_after_release(client.db.c.find_one, Exception)


def test_handled_timeout_before_send_releases_local_variables() -> None:
    """The time limit of an operation, such as `abort_transaction`, may pass before the operation
    sends its command.
    """

    def act() -> None:
        with interrupt_after(0, NetworkTimeout("no time")):
            pass

    assert text_after_release(act, NetworkTimeout) == "no time"


def test_handled_timeout_of_handshake_releases_local_variables() -> None:
    with ScriptedServer() as server, MongoClient(server.name) as client:
        client.admin.command("ping")
        client._topology.pools()[0].check_out()
        server.fail("handshake", send_no_reply)
        assert "(hello for " in text_after_release(lambda: timeout(0.05)(client.db.c.find_one)(), NetworkTimeout)
