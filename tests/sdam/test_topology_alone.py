"""A topology without servers: what a check, and a fork, leave behind."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson import ObjectId
from bson.errors import InvalidBSON
from gevent import GreenletExit, Timeout, sleep, spawn
from gevent.event import Event

from gmongo import MongoClient
from gmongo._background import LongWork
from gmongo.client_options import ClientOptions
from gmongo.cmap.connection import Connection
from gmongo.cmap.hello import Hello
from gmongo.errors import AutoReconnect, ConfigurationError, ProtocolError
from gmongo.events.selection import Named
from gmongo.read_preferences import Primary, Secondary
from gmongo.sdam.monitor import Monitor
from gmongo.sdam.rtt_monitor import RttMonitor
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.server_selector import _reason
from gmongo.sdam.srv_monitor import SrvMonitor
from gmongo.sdam.topology import Topology, forked
from gmongo.server_type import SERVER_TYPE
from gmongo.testing import VirtualTime
from gmongo.wire.timeout import seconds_of
from tests.support.recorder import Recorder, short_name

A = ("a", 27017)


class QuietTopology(Topology):
    """Its servers are never checked."""

    def _monitored(self, address: Any, pool: Any) -> Server:
        return Server(address, pool, Mock())


def opened(uri: str, kind: type[Topology] = QuietTopology, **options: Any) -> Topology:
    topology = kind(ClientOptions(uri, None, options).topology())
    topology.open()
    return topology


class Owner:
    """Of a monitor, which refers to it weakly."""


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    """A monitor that is not started."""
    owner: Any = Owner()
    yield Monitor(A, ClientOptions("mongodb://a/", None, {}).topology(), Mock(), owner)


def test_a_server_to_be_passed_over_is_chosen_only_if_there_is_no_other() -> None:
    addresses = [("a", 27017), ("b", 27017)]
    topology = opened("mongodb://a,b/")
    for address in addresses:
        topology.server_checked(ServerDescription(address, {"ok": 1, "msg": "isdbgrid", "maxWireVersion": 21}))

    def chosen(*passed_over: Any) -> set[Any]:
        selected = [
            topology.selector.select(topology, WRITABLE, Named("find"), None, frozenset(passed_over)) for _ in range(40)
        ]
        return {server.address for server in selected}

    assert chosen(A) == {addresses[1]}
    assert chosen(*addresses) == chosen() == {*addresses}
    topology.close()


@pytest.mark.parametrize("error", [None, OSError("x")])
def test_a_check_that_failed_is_noted_and_no_other(error: Exception | None) -> None:
    topology = opened("mongodb://a/")
    topology.server_checked(ServerDescription(A, None if error else {"ok": 1}, error=error))
    failed = [each.error for each in topology.history.happenings if each.kind == "check failed"]
    assert failed == ([] if error is None else [error])
    topology.close()


def test_a_load_balancer_is_known_in_a_child_too() -> None:
    topology = opened("mongodb://a/?loadBalanced=true", Topology)
    for _ in range(2):
        assert topology.description.server_descriptions()[A].server_type == SERVER_TYPE.LoadBalancer
        topology.mark_forked()
        topology.open()
    topology.close()


def test_a_child_leaves_the_monitors_of_its_parent_alone() -> None:
    topology = opened("mongodb://a,b/")
    pools: list[Any] = []
    for server in topology.servers.values():
        server.pool = Mock()
        pools.append(server.pool)
    monitors: list[Any] = [server.monitor for server in topology.servers.values()]
    topology.mark_forked()
    assert topology.epoch == 1, "as many as there were forks"
    assert [each.mark_forked.call_count for each in (*monitors, *pools)] == [1] * 4
    assert not any(each.stop.called for each in monitors)
    topology.open()
    assert [each.stop.call_count for each in monitors] == [1, 1]
    assert [each.reset_after_fork.call_count for each in pools] == [1, 1]
    assert [server.monitor in monitors for server in topology.servers.values()] == [False, False]
    topology.close()


@pytest.mark.parametrize("clear", [None, OSError("x")])
def test_a_server_that_removes_itself_is_told_nothing(clear: Exception | None) -> None:
    topology = opened("mongodb://a/?replicaSet=rs")
    pool: Any = topology.servers[A].pool
    topology.servers[A].pool = pool = Mock()
    topology.apply(ServerDescription(A, {"ok": 1, "msg": "isdbgrid"}), clear)
    assert topology.servers == {} and pool.close.called and not pool.ready.called and not pool.clear.called
    topology.close()


_MEMBER = {"ok": 1, "setName": "rs", "hosts": ["a:27017"]}


@pytest.mark.parametrize(
    ("options", "hello", "ready"),
    [
        ("", {"ok": 1}, True),
        ("replicaSet=rs", {**_MEMBER, "secondary": True}, True),
        ("replicaSet=rs", {**_MEMBER, "arbiterOnly": True}, False),
        ("replicaSet=rs", {**_MEMBER, "secondary": True, "hidden": True}, False),
        ("replicaSet=rs", {"ok": 1, "isreplicaset": True}, False),
        ("directConnection=true", {**_MEMBER, "arbiterOnly": True}, True),
        ("directConnection=true", {"ok": 1, "isreplicaset": True}, True),
    ],
)
def test_pool_is_ready_if_server_bears_data_or_connection_is_direct(options: str, hello: Any, ready: bool) -> None:
    topology = opened(f"mongodb://a/?{options}")
    topology.servers[A].pool = pool = Mock()
    topology.apply(ServerDescription(A, hello))
    assert pool.ready.called == ready and not pool.clear.called
    error = OSError("x")
    topology.apply(ServerDescription(A, error=error), error, interrupt=True)
    assert pool.ready.called == ready
    pool.clear.assert_called_once_with(error, interrupt=True)
    topology.close()


@pytest.mark.parametrize("known", [None, 0.5])
def test_the_handshake_of_an_application_is_a_round_trip_if_there_was_none(known: float | None) -> None:
    topology = opened("mongodb://a/")
    if known is not None:
        topology.server_checked(ServerDescription(A, {"ok": 1}, known, min_round_trip_time=0.125))
    connection = Connection(A)
    connection.generation = topology.servers[A].pool.generation
    connection.hello = Hello({"ok": 1}, 0.25)
    topology.connection_established(connection)
    server = topology.description.server_descriptions()[A]
    assert (server.round_trip_time, server.min_round_trip_time) == ((0.25, 0.0) if known is None else (0.5, 0.125))
    topology.close()


def test_what_a_copied_greenlet_is_told() -> None:
    assert str(forked()) == "the connection belongs to the parent process; the client reconnects after a fork"


@pytest.mark.parametrize("mid_message", [None, False, True])
@pytest.mark.parametrize("may_stream", [False, True])
@pytest.mark.parametrize("version", [False, True])
def test_which_hello_is_awaited(monitor: Any, mid_message: bool | None, may_stream: bool, version: bool) -> None:
    monitor._may_stream = may_stream
    connection: Any = None if mid_message is None else Mock(mid_message=mid_message)
    hello = {"ok": 1, **({"topologyVersion": {"processId": ObjectId(), "counter": 1}} if version else {})}
    assert monitor._is_awaited(connection, ServerDescription(A, hello)) is bool(mid_message or (may_stream and version))


@pytest.mark.parametrize("name", ["address", "is_primary", "is_mongos"])
def test_a_question_to_a_client_waits_for_a_writable_server_by_its_own_name(name: str) -> None:
    client: MongoClient[Any] = MongoClient("mongodb://a/", connect=False)
    client._topology = topology = Mock()
    topology.select_server.return_value = SimpleNamespace(address=A)
    getattr(client, name)
    topology.select_server.assert_called_once_with(WRITABLE, name)


def test_what_comes_after_the_end_has_no_effect() -> None:
    topology = opened("mongodb://a/")
    topology.server_checked(ServerDescription(A, {"ok": 1}))
    connection = Connection(A)
    connection.hello = Hello({"ok": 1}, 0.25)
    topology.close()
    ended = topology.description
    topology.server_checked(ServerDescription(A, {"ok": 1}))
    topology.server_checked(ServerDescription(A, error=OSError()))
    topology.connection_established(connection)
    topology.handle_error(connection, AutoReconnect("x"))
    topology.close()
    assert topology.description is ended and not topology.servers


REPLICA_SET = "mongodb://a,b,c/?replicaSet=rs"
SECONDARY = {"ok": 1, "setName": "rs", "hosts": ["a", "b", "c"], "secondary": True, "maxWireVersion": 21}
PRIMARY = {**SECONDARY, "secondary": False, "isWritablePrimary": True}
FAR = Secondary([{"dc": "x"}])
OTHERS = ["d:27017", "e:27017", "f:27017"]


@pytest.mark.parametrize(
    ("found", "selector", "complaint"),
    [
        ({}, WRITABLE, "No servers found yet"),
        ({"b": OSError("gone")}, WRITABLE, "gone"),
        ({"a": OSError("gone"), "c": OSError("lost")}, WRITABLE, "gone, lost"),
        ({"b": SECONDARY}, WRITABLE, "No primary available for writes"),
        ({"b": SECONDARY}, Primary(), "No primary available"),
        ({"b": SECONDARY}, FAR, f"No replica set members match selector {FAR!r}"),
        (
            {"a": {**PRIMARY, "hosts": OTHERS}, "d": OSError("gone"), "f": OSError("lost")},
            WRITABLE,
            "gone, lost (addresses of the replica set's configuration, not those that the client was given)",
        ),
        ({each: {"ok": 1} for each in "abc"}, WRITABLE, "No replica set members available for replica set name 'rs': "
         "a:27017, b:27017, c:27017 answered, but not as a member of it; look at the option replicaSet"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said_in_words(found: Any, selector: Any, complaint: str) -> None:
    topology = opened(REPLICA_SET)
    for host, said in found.items():
        error = said if isinstance(said, Exception) else None
        topology.server_checked(ServerDescription((host, 27017), None if error else said, 0.1, error=error))
    assert _reason(topology.description, selector) == complaint
    topology.close()


@pytest.mark.parametrize("news", ["of a check", "of DNS"])
def test_what_is_found_waits_for_no_listener_of_others(news: str, virtual_time: VirtualTime) -> None:
    recorder, gate = Recorder(), Event()
    topology = opened("mongodb://a,b/", event_listeners=[recorder])
    recorder.hooks["TopologyDescriptionChanged"] = lambda _event: gate.wait()
    other = spawn(topology.server_checked, ServerDescription(("b", 27017), {"ok": 1, "msg": "isdbgrid"}, 0.1))
    sleep(0)
    assert not other.ready()
    began = virtual_time.monotonic()
    if news == "of DNS":
        topology.srv_hosts_found([A, ("c", 27017)])
    else:
        topology.server_checked(ServerDescription(A, {"ok": 1, "msg": "isdbgrid"}, 0.1))
    assert virtual_time.monotonic() == began and not other.ready()
    gate.set()
    other.get()
    topology.close()


@pytest.mark.parametrize(
    ("host", "told"),
    [("a", []), ("c", ["ServerClosed", "ServerOpening", "TopologyDescriptionChanged", "PoolCreated", "PoolClosed"])],
)
def test_hosts_of_dns_are_an_event_if_they_are_new(host: str, told: list[str]) -> None:
    recorder = Recorder()
    topology = opened("mongodb://a/", event_listeners=[recorder])
    recorder.forget()
    topology.srv_hosts_found([(host, 27017)])
    assert [short_name(each) for each in recorder.events] == told
    topology.close()


def test_each_selection_is_logged_though_the_choice_is_remembered(caplog: pytest.LogCaptureFixture) -> None:
    topology = opened("mongodb://a/")
    topology.server_checked(ServerDescription(A, {"ok": 1, "maxWireVersion": 21}, 0.1))
    for level, lines in ((logging.INFO, 0), (logging.DEBUG, 2), (logging.DEBUG, 2)):
        caplog.clear()
        with caplog.at_level(level, "gmongo.serverSelection"):
            topology.select_server(WRITABLE, "find")
        assert len(caplog.records) == lines
    topology.close()


# Records of SRV


class Records:
    """What DNS says next: hosts and for how long, or an error."""

    def __init__(self, *said: Any) -> None:
        self.said = list(said)

    def verified_hosts(self) -> Any:
        (said, *self.said) = self.said
        if isinstance(said, Exception):
            raise said
        return said


def srv_monitor(records: Records, polled: bool = True) -> tuple[SrvMonitor, Any]:
    settings: Any = SimpleNamespace(srv=records, srv_rescan_interval=60.0, heartbeat_frequency=7.0)
    owner = Mock(is_polled=lambda: polled)
    return SrvMonitor(settings, owner), owner


def test_records_are_read_again(caplog: pytest.LogCaptureFixture) -> None:
    monitor, owner = srv_monitor(Records(([A], 5), ([A], 90), ConfigurationError("no answer")))
    assert [monitor._rescan() for _ in range(3)] == [60.0, 90, 7.0]
    assert [call.args for call in owner.srv_hosts_found.call_args_list] == [([A],)] * 2
    (record,) = [each for each in caplog.records if each.name.startswith("gmongo")]
    assert record.getMessage() == "SRV polling failed, and the hosts stay unchanged: no answer"
    assert record.levelname == "WARNING"


def test_records_that_are_not_wanted_any_more_have_no_effect() -> None:
    monitor, owner = srv_monitor(Records(([A], 5)), polled=False)
    assert not monitor._is_wanted() and monitor._rescan() == 60.0 and not owner.srv_hosts_found.called


def test_a_child_reads_records_anew() -> None:
    topology = opened("mongodb://a/")
    topology._srv_monitor = inherited = Mock()
    topology.mark_forked()
    topology.open()
    assert inherited.stop.called
    topology.close()


@pytest.mark.parametrize("kind", [GreenletExit, Timeout, KeyboardInterrupt])
def test_what_is_thrown_into_a_check_comes_out_of_it(monitor: Any, kind: type[BaseException]) -> None:
    """And the next check makes a connection."""
    thrown = kind()
    monitor._request_hello = Mock(side_effect=thrown)
    with pytest.raises(kind) as caught:
        monitor._check(monitor._outcome)
    assert caught.value is thrown and monitor._connection is None and monitor._heartbeat is None


def test_a_check_that_has_not_begun_is_not_interrupted(monitor: Any) -> None:
    monitor.cancel_check()
    monitor._connection = connection = Mock()
    monitor.cancel_check()
    assert connection.close.called and not connection.interrupt.called and monitor._connection is None


def test_hellos_that_come_in_one_piece_do_not_hold_the_loop(monitor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[Any] = []

    def check() -> bool:
        monitor._stopped = len(passed) == 3
        return True

    monkeypatch.setattr(monitor, "_check_and_report", check)
    monkeypatch.setattr(LongWork, "checkpoint", lambda work: passed.append(work))
    monitor._run()
    assert len(passed) == 4


@pytest.mark.parametrize("measures", [False, True])
@pytest.mark.parametrize("connected", [False, True])
def test_what_a_forked_monitor_never_touches_again(monitor: Any, measures: bool, connected: bool) -> None:
    connection, of_measurements = Mock(), Mock()
    monitor._connection = connection if connected else None
    monitor._rtt_monitor = of_measurements if measures else None
    monitor.mark_forked(error := AutoReconnect("x"))
    assert monitor._stopped
    assert [call.args for call in connection.mark_forked.call_args_list] == ([(error,)] if connected else [])
    assert [call.args for call in of_measurements.mark_forked.call_args_list] == ([(error,)] if measures else [])


@pytest.mark.parametrize("monitored", [False, True])
def test_a_server_without_a_monitor(monitored: bool) -> None:
    pool, monitor = Mock(), Mock()
    server = Server(A, pool, monitor if monitored else None)
    server.request_check()
    server.end_checks()
    server.close()
    assert monitor.request_check.called is monitored
    assert monitor.close.called is monitored and pool.close.called


@pytest.mark.parametrize("connected", [False, True])
def test_measurements_that_a_fork_has_copied_end(connected: bool) -> None:
    monitor = RttMonitor(A, ClientOptions("mongodb://a/", None, {}).topology(), Mock())
    monitor._connection = connection = Mock() if connected else None
    monitor.mark_forked(error := AutoReconnect("x"))
    assert monitor._stopped
    if connection is not None:
        connection.mark_forked.assert_called_once_with(error)


@pytest.mark.parametrize("kind", [AutoReconnect, ProtocolError, InvalidBSON])
def test_a_measurement_that_fails_is_followed_by_another(kind: type[Exception]) -> None:
    samples = Mock()
    monitor: Any = RttMonitor(A, ClientOptions("mongodb://a/", None, {}).topology(), samples)
    monitor._measure = Mock(side_effect=[kind("x"), Mock(duration=0.5)])
    monitor._connection = connection = Mock()
    monitor._wakeup = Mock(sleep=lambda seconds: monitor._measure.call_count == 2 and monitor.stop())
    monitor._run()
    connection.close.assert_called_once_with()
    samples.add_sample.assert_called_once_with(0.5)


@pytest.mark.parametrize("monitored", [False, True])
def test_what_is_not_monitored_takes_writes_again(monitored: bool) -> None:
    server = Server(A, Mock(), Mock() if monitored else None)
    assert server.supports_retryable_writes is not monitored


@pytest.mark.parametrize(
    ("limit", "shown"),
    [(0.1234, "0.123s"), (-1.0, "0s"), (29.0, "29s"), (29.9989, "29.999s"), (29.9993, "30s"), (30.0, "30s")],
)
def test_the_time_that_was_waited_for_a_server(limit: float, shown: str) -> None:
    topology = opened("mongodb://a/")
    for end, option in (
        (9.0, " (serverSelectionTimeoutMS)"),
        (seconds_of((0.003, "timeoutMS"), 9.0), " of the limit of 3 ms (timeoutMS)"),
    ):
        error = topology.selector._timed_out(topology, "nothing", limit, end)
        assert str(error).startswith(f"nothing, Timeout: {shown}{option}, Topology Description: ")
    topology.close()
