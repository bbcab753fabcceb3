"""Effects of an operation error on its server, pool and monitor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson import Int64, ObjectId
from bson.errors import InvalidBSON
from gevent import GreenletExit

from gmongo.cmap.connection import Connection
from gmongo.errors import (
    AutoReconnect,
    ConfigurationError,
    NetworkTimeout,
    NotPrimaryError,
    OperationFailure,
    PoolClearedError,
    ProtocolError,
    WriteConcernError,
)
from gmongo.execution.backpressure import BackpressurePolicy, TokenBucket, backoff
from gmongo.sdam.application_errors import ErrorAction, error_action, handle_error, is_state_change
from gmongo.sdam.server_description import ServerDescription

ADDRESS = ("h", 1)
NOTHING, UNKNOWN = ErrorAction.NOTHING, ErrorAction.UNKNOWN
CLEAR, CANCEL = ErrorAction.UNKNOWN_AND_CLEAR, ErrorAction.UNKNOWN_CLEAR_AND_CANCEL


def overloaded() -> AutoReconnect:
    error = AutoReconnect("x")
    error._add_error_label("SystemOverloadedError")
    return error


def not_primary(code: int, **more: Any) -> NotPrimaryError:
    return NotPrimaryError("x", {"ok": 0, "code": code, **more})


@pytest.mark.parametrize(
    ("error", "establishing", "running"),
    [
        (PoolClearedError("x", ADDRESS), NOTHING, NOTHING),
        (overloaded(), NOTHING, CANCEL),
        (AutoReconnect("x"), CANCEL, CANCEL),
        (NetworkTimeout("x"), CANCEL, NOTHING),
        (OperationFailure("x", 18), CLEAR, NOTHING),
        (ProtocolError("x"), CLEAR, NOTHING),
        (InvalidBSON("x"), CLEAR, NOTHING),
        (ConfigurationError("x"), NOTHING, NOTHING),
        (GreenletExit(), NOTHING, NOTHING),
        (WriteConcernError("x", 64, {}), CLEAR, NOTHING),
        (WriteConcernError("x", 189, {}), CLEAR, UNKNOWN),
        (WriteConcernError("x", 91, {}), CLEAR, CLEAR),
        (not_primary(10107), CLEAR, UNKNOWN),
        (not_primary(11600), CLEAR, CLEAR),
    ],
)
def test_error_determines_action_on_pool(error: BaseException, establishing: ErrorAction, running: ErrorAction) -> None:
    assert error_action(error, True, 21) is establishing
    assert error_action(error, False, 21) is running
    assert error_action(error, False, 8) is running
    assert error_action(error, False, 7) is (CLEAR if running is UNKNOWN else running)


@pytest.mark.parametrize(
    ("reply", "changed"),
    [
        ({"code": 10107}, True),
        ({"code": 91, "errmsg": "x"}, True),
        ({"code": 5, "errmsg": "not master"}, False),
        ({"errmsg": "I am NOT MASTER now"}, True),
        ({"errmsg": "the node is recovering"}, True),
        ({"errmsg": "other"}, False),
        ({"errmsg": None}, False),
        ({}, False),
    ],
)
def test_reply_with_state_change_code_or_message_is_recognized(reply: dict[str, Any], changed: bool) -> None:
    assert is_state_change(reply) is changed


VERSION = {"processId": ObjectId(), "counter": Int64(5)}


def topology_and_server(*, load_balanced: bool = False, generation: int = 3, known: bool = True) -> tuple[Any, Any]:
    hello = {"ok": 1, "isWritablePrimary": True, "maxWireVersion": 21, "topologyVersion": VERSION}
    described = ServerDescription(ADDRESS, hello) if known else ServerDescription(ADDRESS)
    server = Mock(address=ADDRESS)
    server.pool.generations.of.return_value = generation
    description = SimpleNamespace(get={ADDRESS: described}.get, server_descriptions=lambda: {ADDRESS: described})
    settings = SimpleNamespace(load_balanced=load_balanced)
    return Mock(servers={ADDRESS: server}, description=description, settings=settings), server


def connection_of(generation: int = 3, service_id: Any = None) -> Connection:
    connection = Connection(ADDRESS)
    connection.generation, connection.service_id = generation, service_id
    connection.hello = SimpleNamespace(max_wire_version=21)  # type: ignore[assignment]
    return connection


@pytest.mark.parametrize(
    ("error", "establishing", "applied", "cleared", "cancelled", "checked"),
    [
        (AutoReconnect("x"), False, True, True, True, False),
        (AutoReconnect("x"), True, True, True, True, True),
        (OperationFailure("x", 18), True, True, True, False, True),
        (not_primary(10107), False, True, False, False, True),
        (not_primary(91), False, True, True, False, True),
        (NetworkTimeout("x"), False, False, False, False, False),
    ],
)
@pytest.mark.parametrize("has_monitor", [True, False])
def test_error_marks_server_unknown_and_clears_pool(
    error: Any, establishing: bool, applied: bool, cleared: bool, cancelled: bool, checked: bool, has_monitor: bool
) -> None:
    topology, server = topology_and_server()
    if not has_monitor:
        server.monitor = None
    handle_error(topology, connection_of(), error, establishing)
    assert topology.apply.called is applied and server.request_check.called is checked
    if has_monitor:
        assert server.monitor.cancel_check.called is cancelled
    if applied:
        unknown, cause = topology.apply.call_args.args
        assert unknown.address == ADDRESS and not unknown.is_server_type_known
        assert type(unknown.error) is type(error) and unknown.error is not error
        assert (cause is unknown.error) if cleared else cause is None
    assert not server.pool.clear.called


@pytest.mark.parametrize(
    ("generation", "counter", "stale"),
    [(3, None, False), (4, 6, False), (2, None, True), (3, 5, True), (3, 4, True), (3, 6, False)],
)
@pytest.mark.parametrize("known", [True, False])
def test_stale_error_is_ignored(generation: int, counter: Any, stale: bool, known: bool) -> None:
    topology, server = topology_and_server(known=known)
    more = {} if counter is None else {"topologyVersion": {**VERSION, "counter": Int64(counter)}}
    connection = connection_of(generation, service := ObjectId())
    handle_error(topology, connection, not_primary(10107, **more), False)
    server.pool.generations.of.assert_called_once_with(service)
    assert topology.apply.called is not (stale and (known or generation < 3))


def test_error_of_removed_server_is_ignored() -> None:
    topology, _ = topology_and_server()
    topology.servers = {}
    handle_error(topology, connection_of(), AutoReconnect("x"), False)
    assert not topology.apply.called


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("error", "clears"),
    [(AutoReconnect("x"), True), (not_primary(91), True), (not_primary(10107), False), (NetworkTimeout("x"), False)],
)
def test_error_behind_load_balancer_clears_only_its_service(named: bool, error: Any, clears: bool) -> None:
    topology, server = topology_and_server(load_balanced=True)
    service = ObjectId() if named else None
    handle_error(topology, connection_of(service_id=service), error, False)
    assert not topology.apply.called and not server.request_check.called
    calls = [call.args for call in server.pool.clear.call_args_list]
    assert [(type(cause), given) for cause, given in calls] == ([(type(error), service)] if named and clears else [])


def test_token_bucket_and_backoff_follow_limits() -> None:
    bucket = TokenBucket()
    assert (bucket.tokens, bucket.missing) == (TokenBucket.CAPACITY, 0)
    taken = 0
    while bucket.consume():
        taken += 1
    assert taken == TokenBucket.CAPACITY and bucket.tokens == 0 and not bucket.consume()
    bucket.deposit(9)
    assert bucket.tokens == 0.9 and not bucket.consume()
    bucket.deposit(1)
    assert bucket.tokens == 1.0 and bucket.consume() and not bucket.consume()
    bucket.deposit(10**6)
    assert bucket.tokens == TokenBucket.CAPACITY
    assert [backoff(number, 0.1, 1.0) for number in range(8)] == pytest.approx(
        [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0]
    )
    assert backoff(3, 0.1, 0.5) == pytest.approx(0.4) and backoff(0, 0.1, 0.0) == 0.0
    policy = BackpressurePolicy(5, 0.1, False, jitter=lambda: 0.5)
    assert (
        policy.delay(1) == pytest.approx(0.1) and BackpressurePolicy(5, 1.0, False, jitter=lambda: 1.0).delay(0) == 1.0
    )
    assert (policy.max_retries, policy.base, policy.retargeting, policy.errors, policy.others) == (5, 0.1, False, 0, 0)
    assert policy.stats() == {"tokens": TokenBucket.CAPACITY, "retries": 0, "slept": 0.0, "exhausted": 0}
