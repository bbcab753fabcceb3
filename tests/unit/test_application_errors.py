"""Effects of an operation error on the description, the pool and the monitor of a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson import Int64, ObjectId

from gmongo.cmap.connection import Connection
from gmongo.errors import (
    AutoReconnect,
    NotPrimaryError,
)
from gmongo.sdam.application_errors import ErrorAction, choose_error_action, handle_error, is_state_change
from gmongo.sdam.server_description import ServerDescription
from tests.support.cases import with_cases

ADDRESS = ("h", 1)


def not_primary_error(code: int, **reply_fields: Any) -> NotPrimaryError:
    return NotPrimaryError("x", {"ok": 0, "code": code, **reply_fields})


@with_cases
def test_error_and_its_phase_determine_error_action(
    error: BaseException, labels: list[str], during_handshake: str, during_operation: str
) -> None:
    for label in labels:
        error._add_error_label(label)  # type: ignore[attr-defined]
    assert choose_error_action(error, True, 21) is ErrorAction[during_handshake]
    assert choose_error_action(error, False, 21) is ErrorAction[during_operation]
    assert choose_error_action(error, False, 8) is ErrorAction[during_operation]
    action_on_old_server = "UNKNOWN_AND_CLEAR" if during_operation == "UNKNOWN" else during_operation
    assert choose_error_action(error, False, 7) is ErrorAction[action_on_old_server]


@with_cases
def test_reply_with_state_change_code_or_message_is_recognized(reply: dict[str, Any], is_recognized: bool) -> None:
    assert is_state_change(reply) is is_recognized


TOPOLOGY_VERSION = {"processId": ObjectId(), "counter": Int64(5)}


def topology_and_server(*, load_balanced: bool = False, generation: int = 3, is_known: bool = True) -> tuple[Any, Any]:
    hello = {"ok": 1, "isWritablePrimary": True, "maxWireVersion": 21, "topologyVersion": TOPOLOGY_VERSION}
    described = ServerDescription(ADDRESS, hello) if is_known else ServerDescription(ADDRESS)
    server = Mock(address=ADDRESS)
    server.pool.generations.generation_of.return_value = generation
    description = SimpleNamespace(get={ADDRESS: described}.get, server_descriptions=lambda: {ADDRESS: described})
    settings = SimpleNamespace(load_balanced=load_balanced)
    return Mock(servers={ADDRESS: server}, description=description, settings=settings), server


def connection_of(generation: int = 3, service_id: Any = None) -> Connection:
    connection = Connection(ADDRESS)
    connection.generation, connection.service_id = generation, service_id
    connection.hello = SimpleNamespace(max_wire_version=21)  # type: ignore[assignment]
    return connection


@with_cases
@pytest.mark.requirement("SM-91", "SM-93", "SM-109")
@pytest.mark.parametrize("has_monitor", [True, False])
def test_operation_error_updates_server_pool_and_monitor(
    error: Any,
    during_handshake: bool,
    marks_unknown: bool,
    clears_pool: bool,
    cancels_check: bool,
    requests_check: bool,
    has_monitor: bool,
) -> None:
    topology, server = topology_and_server()
    if not has_monitor:
        server.monitor = None
    handle_error(topology, connection_of(), error, during_handshake)
    assert topology.apply.called is marks_unknown and server.request_check.called is requests_check
    if has_monitor:
        assert server.monitor.cancel_check.called is cancels_check
    if marks_unknown:
        unknown, cause = topology.apply.call_args.args
        assert unknown.address == ADDRESS and not unknown.is_server_type_known
        assert type(unknown.error) is type(error) and unknown.error is not error
        assert (cause is unknown.error) if clears_pool else cause is None
    assert not server.pool.clear.called


@pytest.mark.parametrize(
    ("generation", "counter", "is_stale"),
    [(3, None, False), (4, 6, False), (2, None, True), (3, 5, True), (3, 4, True), (3, 6, False)],
)
@pytest.mark.parametrize("server_is_known", [True, False])
def test_only_stale_error_is_ignored(generation: int, counter: Any, is_stale: bool, server_is_known: bool) -> None:
    topology, server = topology_and_server(is_known=server_is_known)
    reply_fields = {} if counter is None else {"topologyVersion": {**TOPOLOGY_VERSION, "counter": Int64(counter)}}
    connection = connection_of(generation, service := ObjectId())
    handle_error(topology, connection, not_primary_error(10107, **reply_fields), False)
    server.pool.generations.generation_of.assert_called_once_with(service)
    assert topology.apply.called is not (is_stale and (server_is_known or generation < 3))


def test_error_of_removed_server_is_ignored() -> None:
    topology, _ = topology_and_server()
    topology.servers = {}
    handle_error(topology, connection_of(), AutoReconnect("x"), False)
    assert not topology.apply.called


@pytest.mark.parametrize("has_service_id", [False, True])
@with_cases
def test_error_behind_load_balancer_clears_only_service_of_connection(
    has_service_id: bool, error: Any, clears: bool
) -> None:
    topology, server = topology_and_server(load_balanced=True)
    service = ObjectId() if has_service_id else None
    handle_error(topology, connection_of(service_id=service), error, False)
    assert not topology.apply.called and not server.request_check.called
    calls = [call.args for call in server.pool.clear.call_args_list]
    assert [(type(cause), service_id) for cause, service_id in calls] == (
        [(type(error), service)] if has_service_id and clears else []
    )
