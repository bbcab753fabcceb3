"""How check results, operations and forks affect a topology that is not connected to any server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock, call

import pytest
from bson.errors import InvalidBSON
from gevent import GreenletExit, Timeout

from gmongo import MongoClient
from gmongo._background import LongWork
from gmongo.client_options import ClientOptions
from gmongo.cmap.connection import Connection
from gmongo.cmap.hello import Hello
from gmongo.errors import (
    AutoReconnect,
    ConfigurationError,
    InvalidOperation,
    NetworkTimeout,
    OperationFailure,
    ProtocolError,
    ServerSelectionTimeoutError,
)
from gmongo.events.sdam import NamedOperation
from gmongo.read_preferences import Nearest, Primary, Secondary
from gmongo.sdam.monitor import Monitor
from gmongo.sdam.owned_monitor import OwnedMonitor
from gmongo.sdam.rtt_monitor import RttMonitor
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.server_selector import _explain_failure
from gmongo.sdam.srv_monitor import SrvMonitor
from gmongo.sdam.topology import Topology, _interrupt_operations
from gmongo.testing import VirtualTime
from gmongo.wire.timeout import seconds_of
from tests.support.recorder import Recorder

A = ("a", 27017)


class TopologyWithMockMonitors(Topology):
    """A topology whose servers have mock monitors."""

    def _make_server(self, address: Any, pool: Any) -> Server:
        return Server(address, pool, Mock(progress=None))


def open_topology(uri: str) -> Topology:
    topology = TopologyWithMockMonitors(ClientOptions(uri, None, {}).topology())
    topology.open()
    return topology


class MonitorOwner:
    """The owner of a monitor. Unlike instances of `object`, its instances support weak references."""


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    """Yield a monitor whose greenlet does not run, and keep the owner of the monitor alive."""
    owner: Any = MonitorOwner()
    yield Monitor(A, ClientOptions("mongodb://a/", None, {}).topology(), Mock(), owner)


@pytest.mark.parametrize("is_stopped", [True, False])
@pytest.mark.parametrize("is_srv_monitor", [True, False])
def test_deletion_of_owner_uses_event_loop_unless_monitor_is_stopped(is_srv_monitor: bool, is_stopped: bool) -> None:
    owner: Any = MonitorOwner()
    monitor: OwnedMonitor[Any]
    if is_srv_monitor:
        monitor = SrvMonitor(Mock(), owner)
    else:
        monitor = Monitor(A, ClientOptions("mongodb://a/", None, {}).topology(), Mock(), owner)
    if is_stopped:
        monitor.stop()
    monitor._loop = Mock()
    del owner
    assert monitor._loop.run_callback_threadsafe.called is not is_stopped


@pytest.mark.parametrize("clear_cause", [None, OSError("x")])
def test_pool_of_removed_server_is_closed_and_not_cleared(clear_cause: Exception | None) -> None:
    topology = open_topology("mongodb://a/?replicaSet=rs")
    pool: Any = topology.servers[A].pool
    topology.servers[A].pool = pool = Mock()
    topology.apply(ServerDescription(A, {"ok": 1, "msg": "isdbgrid"}), clear_cause)
    assert topology.servers == {} and pool.close.called and not pool.ready.called and not pool.clear.called
    topology.close()


_MEMBER_HELLO = {"ok": 1, "setName": "rs", "hosts": ["a:27017"]}


@pytest.mark.parametrize(
    ("options", "hello", "becomes_ready"),
    [
        ("", {"ok": 1}, True),
        ("replicaSet=rs", {**_MEMBER_HELLO, "secondary": True}, True),
        ("replicaSet=rs", {**_MEMBER_HELLO, "arbiterOnly": True}, False),
        ("replicaSet=rs", {**_MEMBER_HELLO, "secondary": True, "hidden": True}, False),
        ("replicaSet=rs", {"ok": 1, "isreplicaset": True}, False),
        ("directConnection=true", {**_MEMBER_HELLO, "arbiterOnly": True}, True),
        ("directConnection=true", {"ok": 1, "isreplicaset": True}, True),
    ],
)
def test_pool_is_ready_if_server_bears_data_or_connection_is_direct(
    options: str, hello: Any, becomes_ready: bool
) -> None:
    topology = open_topology(f"mongodb://a/?{options}")
    topology.servers[A].pool = pool = Mock()
    topology.apply(ServerDescription(A, hello))
    assert pool.ready.called == becomes_ready and not pool.clear.called
    error = NetworkTimeout("x")
    topology.server_checked(ServerDescription(A, error=error))
    assert pool.ready.called == becomes_ready and "check failed" in {each.kind for each in topology.history.events}
    pool.clear.assert_called_once_with(error, interrupt=True)
    topology.close()


@pytest.mark.parametrize("earlier_sample", [None, 0.5])
def test_handshake_duration_is_round_trip_time_if_no_sample_exists(earlier_sample: float | None) -> None:
    topology = open_topology("mongodb://a/")
    if earlier_sample is not None:
        topology.server_checked(ServerDescription(A, {"ok": 1}, earlier_sample, min_round_trip_time=0.125))
    connection = Connection(A)
    connection.generation = topology.servers[A].pool.generation
    connection.hello = Hello({"ok": 1}, 0.25)
    topology.connection_established(connection)
    server = topology.description.server_descriptions()[A]
    assert (server.round_trip_time, server.min_round_trip_time) == (
        (0.25, 0.0) if earlier_sample is None else (0.5, 0.125)
    )
    topology.close()


def test_server_of_other_replica_set_is_unknown_with_error_that_names_both_sets() -> None:
    topology = open_topology("mongodb://a/?replicaSet=mine&directConnection=true")
    topology.server_checked(ServerDescription(A, {"ok": 1, "setName": "theirs", "isWritablePrimary": True}))
    assert "'mine', but the server is in 'theirs'" in str(topology.description.server_descriptions()[A].error)
    topology.close()


def test_close_interrupts_operations_of_all_pools_after_grace_period() -> None:
    pools: list[Any] = [Mock(address=A), Mock(address=("b", 27017))]
    _interrupt_operations(pools)
    for pool, host in zip(pools, "ab", strict=True):
        (error,) = pool.interrupt.call_args.args
        assert str(error) == f"{host}:27017: the operation was in progress 10 s after MongoClient.close()"


def test_handshake_delivers_events_of_server_change(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = open_topology("mongodb://a/")
    monkeypatch.setattr(topology, "_delivery", delivery := MagicMock())
    connection = Connection(A)
    connection.generation, connection.hello = topology.servers[A].pool.generation, Hello({"ok": 1}, 0.25)
    topology.connection_established(connection)
    topology.server_checked(ServerDescription(A, {"ok": 1}))
    topology.srv_hosts_found([A])
    assert delivery.deliver.mock_calls == [call(), call(wait=False), call(wait=False)]
    topology.close()


@pytest.mark.requirement("SM-30")
@pytest.mark.parametrize("generations_behind", [0, 1])
def test_only_handshake_of_current_generation_makes_server_known(generations_behind: int) -> None:
    topology = open_topology("mongodb://a/")
    topology.server_checked(ServerDescription(A, {"ok": 1}))
    connection = Connection(A)
    connection.hello = Hello({"ok": 1}, 0.25)
    topology.handle_error(connection, AutoReconnect("closed"))
    connection.generation = topology.servers[A].pool.generation - generations_behind
    topology.connection_established(connection)
    assert topology.description.server_descriptions()[A].is_server_type_known is (generations_behind == 0)
    topology.close()


def test_new_srv_hosts_reset_cache_of_server_selection() -> None:
    topology = open_topology("mongodb://a,b/")
    for host in ("a", "b"):
        hello = {"ok": 1, "msg": "isdbgrid", "maxWireVersion": 25}
        topology.server_checked(ServerDescription((host, 27017), hello, 0.001))
    topology.select_server(WRITABLE, "test", None)
    topology.srv_hosts_found([("b", 27017)])
    assert {topology.select_server(WRITABLE, "test", None).address for _ in range(20)} == {("b", 27017)}
    topology.close()


@pytest.mark.parametrize("property_name", ["address", "is_primary", "is_mongos"])
def test_client_property_selects_writable_server_for_operation_of_same_name(property_name: str) -> None:
    client: MongoClient[Any] = MongoClient("mongodb://a/", connect=False)
    client._topology = topology = Mock()
    topology.select_server.return_value = SimpleNamespace(address=A)
    getattr(client, property_name)
    topology.select_server.assert_called_once_with(WRITABLE, property_name, None)


def test_closed_topology_ignores_check_results_and_errors() -> None:
    topology = open_topology("mongodb://a/")
    topology.server_checked(ServerDescription(A, {"ok": 1}))
    connection = Connection(A)
    connection.hello = Hello({"ok": 1}, 0.25)
    topology.close()
    final_description = topology.description
    topology.server_checked(ServerDescription(A, {"ok": 1}))
    topology.server_checked(ServerDescription(A, error=OSError()))
    topology.connection_established(connection)
    topology.handle_error(connection, AutoReconnect("x"))
    topology.close()
    assert topology.description is final_description and not topology.servers


REPLICA_SET_URI = "mongodb://a,b,c/?replicaSet=rs"
SECONDARY = {"ok": 1, "setName": "rs", "hosts": ["a", "b", "c"], "secondary": True, "maxWireVersion": 21}
PRIMARY = {**SECONDARY, "secondary": False, "isWritablePrimary": True}
UNMATCHED_SELECTOR = Secondary([{"dc": "x"}])
OTHER_HOSTS = ["d:27017", "e:27017", "f:27017"]


@pytest.mark.parametrize(
    ("check_results", "selector", "message"),
    [
        ({}, WRITABLE, "No servers found yet"),
        ({"b": OSError("gone")}, WRITABLE, "gone"),
        ({"a": OSError("gone"), "c": OSError("lost")}, WRITABLE, "gone, lost"),
        ({"b": SECONDARY}, WRITABLE, "No primary available for writes"),
        ({"b": SECONDARY}, Primary(), "No primary available"),
        ({"b": SECONDARY}, UNMATCHED_SELECTOR, f"No replica set members match selector {UNMATCHED_SELECTOR!r}"),
        (
            {"a": {**PRIMARY, "hosts": OTHER_HOSTS}, "d": OSError("gone"), "f": OSError("lost")},
            WRITABLE,
            "gone, lost (addresses from the replica set configuration; the options of the client have other addresses)",
        ),
        ({each: {"ok": 1} for each in "abc"}, WRITABLE, "No replica set members available for replica set name 'rs': "
         "a:27017, b:27017, c:27017 replied, but not as a member of this replica set; check the option replicaSet"),
    ],
)  # fmt: skip
def test_server_selection_error_names_reason(check_results: Any, selector: Any, message: str) -> None:
    topology = open_topology(REPLICA_SET_URI)
    for host, result in check_results.items():
        error = result if isinstance(result, Exception) else None
        topology.server_checked(ServerDescription((host, 27017), None if error else result, 0.1, error=error))
    assert _explain_failure(topology.description, selector) == message
    topology.close()


def test_server_selection_from_cache_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    topology = open_topology("mongodb://a/")
    topology.server_checked(ServerDescription(A, {"ok": 1, "maxWireVersion": 21}, 0.1))
    for level, line_count in ((logging.INFO, 0), (logging.DEBUG, 2), (logging.DEBUG, 2)):
        caplog.clear()
        with caplog.at_level(level, "gmongo.serverSelection"):
            topology.select_server(WRITABLE, "find", None)
        assert len(caplog.records) == line_count
    topology.close()


def test_server_of_cursor_causes_error_if_removed_or_unknown_until_timeout() -> None:
    topology = open_topology("mongodb://a/?serverSelectionTimeoutMS=0")
    with pytest.raises(AutoReconnect, match=r"^server b:1 is no longer part of the topology$"):
        topology.server_at(("b", 1), None, wait=False)
    text = r"^server a:27017, which has the cursor or the transaction, is Unknown, Timeout: 0s \("
    with pytest.raises(ServerSelectionTimeoutError, match=text):
        topology.server_at(A, None, wait=True)
    assert topology.server_at(A, None, wait=False) is topology.servers[A]
    topology.close()


def test_selection_opens_topology_avoids_deprioritized_server_and_checks_wire_version() -> None:
    topology = TopologyWithMockMonitors(ClientOptions("mongodb://a,b/", None, {}).topology())
    with pytest.raises(ServerSelectionTimeoutError):
        topology.select_server(WRITABLE, "test", 0)
    hello = {"ok": 1, "msg": "isdbgrid", "maxWireVersion": 25}
    for address in topology.servers:
        topology.server_checked(ServerDescription(address, hello, 0.001))
    for excluded, selected in ((set(), "ab"), ({A}, "b"), (set(), "ab")):
        choices = [(topology, WRITABLE, NamedOperation("test"), None, frozenset(excluded))] * 50
        assert {topology.selector.select(*choice).address[0] for choice in choices} == set(selected)
    selectors, cache = [Nearest([{"n": str(number)}, {}]) for number in range(100)], topology.selector._choices
    assert max(len(cache) for each in selectors if topology.select_server(each, "test", None)) == 64
    topology.server_checked(ServerDescription(A, {**hello, "maxWireVersion": 7}))
    with pytest.raises(ConfigurationError, match="reports wire version 7"):
        topology.select_server(WRITABLE, "test", None)
    topology.close()


def test_answer_of_dns_changes_no_unused_or_started_topology() -> None:
    settings, late_settings = (ClientOptions(f"mongodb://{host}/", None, {}).topology() for host in "ab")
    topology = TopologyWithMockMonitors(settings)
    topology.seeds_found(late_settings)
    assert topology.settings is settings and not topology.servers
    topology.open()
    topology.seeds_found(late_settings)
    assert topology.settings is settings and list(topology.servers) == [A]
    topology.close()


def test_only_first_network_error_in_500_ms_causes_check_without_pause(monitor: Any, virtual_time: VirtualTime) -> None:
    known, lost = ServerDescription(A, {"ok": 1}), ServerDescription(A, error=AutoReconnect("x"))
    for before, after in ((lost, lost), (known, ServerDescription(A)), (known, lost.to_unknown(OperationFailure("x")))):
        assert not monitor._skips_pause(before, after)
    skipped = []
    for _ in range(6):
        skipped.append(monitor._skips_pause(known, lost))
        virtual_time.suspend(0.25)
    assert skipped == [True, False] * 3


def test_failed_selection_waits_until_deadline_and_is_logged(caplog: Any, virtual_time: VirtualTime) -> None:
    topology, began = open_topology("mongodb://a/?tls=true"), virtual_time.monotonic()
    topology.servers[A].monitor = monitor = Mock(progress="a:27017: handshake")
    caplog.set_level(logging.DEBUG, "gmongo.serverSelection")
    reason = r"found yet \(a:27017: handshake\), Timeout: 1\.5s \(serverSelectionTimeoutMS\), connecting with TLS, "
    with pytest.raises(ServerSelectionTimeoutError, match=reason):
        topology.select_server(WRITABLE, "find", began + 1.5)
    assert (virtual_time.monotonic(), topology.selector.waiter_count) == (began + 1.5, 0)
    messages = (
        "Server selection started",
        "Waiting for suitable server to become available",
        "Server selection failed",
    )
    assert tuple(vars(record)["structured"]["message"] for record in caplog.records) == messages
    assert vars(caplog.records[1])["structured"]["remainingTimeMS"] == 1500 and monitor.request_check.called
    topology.close()


def test_topology_opens_and_closes_each_server_in_order() -> None:
    options = {"event_listeners": [recorder := Recorder()]}
    topology = TopologyWithMockMonitors(ClientOptions("mongodb://a,b/", None, options).topology())
    topology.open()
    topology._srv_monitor = srv_monitor = Mock()
    monitors: list[Any] = [server.monitor for server in topology.servers.values()]
    topology.close()
    assert srv_monitor.stop.called and all(monitor.close.called for monitor in monitors)
    names = "TopologyOpened,TopologyDescriptionChanged Unknown,ServerOpening,ServerOpening,PoolCreated,PoolCreated,"
    names += "PoolClosed,PoolClosed,ServerClosed,ServerClosed,TopologyDescriptionChanged Unknown,TopologyClosed"
    assert ",".join(recorder.event_lines) == names
    assert [each.server_address for each in recorder.events if hasattr(each, "server_address")] == [A, ("b", 27017)] * 2
    with pytest.raises(InvalidOperation, match=r"^Cannot use MongoClient after close$"):
        topology.open()


def test_fork_replaces_monitors_and_resets_pools() -> None:
    topology = open_topology("mongodb://a,b/")
    topology.server_checked(ServerDescription(A, {"ok": 1, "msg": "isdbgrid", "maxWireVersion": 25}, 0.001))
    topology.select_server(WRITABLE, "test", None)  # fills the cache
    pools: list[Any] = []
    for server in topology.servers.values():
        server.pool = Mock()
        pools.append(server.pool)
    monitors: list[Any] = [server.monitor for server in topology.servers.values()]
    topology.mark_forked()
    assert topology.epoch == 1
    assert [each.mark_forked.call_count for each in (*monitors, *pools)] == [1] * 4
    assert not any(each.stop.called for each in monitors)
    topology.open()
    assert [each.stop.call_count for each in monitors] == [1, 1]
    assert [each.reset_after_fork.call_count for each in pools] == [1, 1]
    assert [server.monitor in monitors for server in topology.servers.values()] == [False, False]
    assert not topology.description.has_known_servers and not topology.selector._choices
    topology.mark_forked()
    assert topology.epoch == 2
    topology.close()


def test_fork_stops_inherited_srv_monitor() -> None:
    topology = open_topology("mongodb://a/")
    topology._srv_monitor = inherited_monitor = Mock()
    topology.mark_forked()
    topology.open()
    assert inherited_monitor.stop.called
    topology.close()


@pytest.mark.parametrize("exception_class", [GreenletExit, Timeout, KeyboardInterrupt])
def test_exception_thrown_into_check_propagates_and_drops_connection(
    monitor: Any, exception_class: type[BaseException]
) -> None:
    thrown = exception_class()
    monitor._request_hello = Mock(side_effect=thrown)
    with pytest.raises(exception_class) as caught:
        monitor._check(monitor._last_description)
    assert caught.value is thrown and monitor._connection is None and monitor._heartbeat is None
    assert monitor._new_connection().id == 2


def test_cancel_between_checks_closes_monitor_connection(monitor: Any) -> None:
    monitor.cancel_check()
    monitor._connection = connection = Mock()
    monitor.cancel_check()
    assert connection.close.called and not connection.interrupt.called and monitor._connection is None


def test_fork_marks_connections_of_monitor_and_rtt_monitor(monitor: Any) -> None:
    monitor._connection, monitor._rtt_monitor = connection, rtt_monitor = Mock(progress="handshake"), Mock()
    assert monitor.progress == "a:27017: handshake"
    monitor.mark_forked(error := AutoReconnect("x"))
    assert connection.mark_forked.mock_calls == rtt_monitor.mark_forked.mock_calls == [call(error)]


def test_monitor_passes_checkpoint_between_hellos_in_one_packet(monitor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints: list[Any] = []

    def check_and_stop_after_three() -> bool:
        monitor._background.ended = len(checkpoints) == 3
        return True

    monkeypatch.setattr(monitor, "_check_and_report", check_and_stop_after_three)
    monkeypatch.setattr(LongWork, "checkpoint", lambda work: checkpoints.append(work))
    monitor._run()
    assert len(checkpoints) == 4


@pytest.mark.parametrize("error_class", [AutoReconnect, ProtocolError, InvalidBSON])
def test_rtt_monitor_reconnects_after_error(error_class: type[Exception]) -> None:
    samples = Mock()
    monitor: Any = RttMonitor(A, ClientOptions("mongodb://a/", None, {}).topology(), samples)
    monitor._measure = Mock(side_effect=[error_class("x"), Mock(duration=0.5)])
    monitor._connection = connection = Mock()
    monitor._wakeup = Mock(sleep=lambda seconds: monitor._measure.call_count == 2 and monitor.stop())
    monitor._run()
    connection.close.assert_called_once_with()
    samples.add_sample.assert_called_once_with(0.5)


def test_rtt_monitor_of_parent_process_ends_in_forked_child() -> None:
    monitor: Any = RttMonitor(A, ClientOptions("mongodb://a/", None, {}).topology(), Mock())
    monitor._measure = Mock(side_effect=[Mock(duration=0.5), AssertionError])
    monitor._wakeup = Mock(sleep=lambda seconds: monitor.mark_forked(AutoReconnect("x")))
    monitor._run()


@pytest.mark.parametrize(
    ("timeout", "seconds_text"),
    [(0.1234, "0.123s"), (-1.0, "0s"), (29.0, "29s"), (29.9989, "29.999s"), (29.9993, "30s"), (30.0, "30s")],
)
def test_server_selection_timeout_error_names_time_and_option(timeout: float, seconds_text: str) -> None:
    topology = open_topology("mongodb://a/")
    for end, option in (
        (9.0, " (serverSelectionTimeoutMS)"),
        (seconds_of((0.003, "timeoutMS"), 9.0), " of the limit of 3 ms (timeoutMS)"),
    ):
        error = topology.selector._make_timeout_error(topology, "nothing", timeout, end)
        assert str(error).startswith(f"nothing, Timeout: {seconds_text}{option}, Topology Description: ")
    topology.close()
