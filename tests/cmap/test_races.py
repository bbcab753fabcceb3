"""Concurrent attempts of the driver to connect to the addresses of one host name (*race*).

Errors name the addresses, and the stage of connection establishment that failed.
"""

from __future__ import annotations

import _socket
import socket
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import Mock

import gevent
import gevent.server
import pytest
from gevent import get_hub
from gevent.exceptions import InvalidSwitchError
from hypothesis import given
from hypothesis import strategies as st

from gmongo import _clock
from gmongo.cmap import connecting
from gmongo.errors import AutoReconnect, NetworkTimeout, ServerSelectionTimeoutError
from gmongo.testing import VirtualTime
from gmongo.wire import connect as wire
from gmongo.wire.race import AddressOrder, AttemptsTimedOut, Race
from gmongo.wire.transport import TransportError
from tests.gevent.switching.checks import open_descriptors
from tests.support.server import ScriptedServer

V4, V6 = _socket.AF_INET, _socket.AF_INET6
ATTEMPT_LIMIT = 1.0  # time limit of one connection attempt in seconds
TOLERANCE = 0.01  # seconds by which a race may exceed its expected duration
ADDRESSES = ("a0", "a1", "a2", "a3", "a4")


class AddressResponse(NamedTuple):
    """Response of an address to a TCP SYN.

    :ivar kind: ``accept``, ``refuse`` or ``drop``.
    :ivar delay: seconds until the address accepts or refuses the connection.
    """

    kind: str
    delay: float


class ScriptedTransport:
    """A transport without a socket. The response of the address decides whether the connection
    succeeds.
    """

    def __init__(self, responses: dict[str, AddressResponse]) -> None:
        self._responses = responses
        self._timer: Any = None
        self.closed = False

    def start_connecting(self, address: Any) -> bool:
        self._response = self._responses[address[0]]
        self._due = _clock.monotonic() + self._response.delay
        return self.is_connected()

    def is_connected(self) -> bool:
        if self._response.kind == "drop" or _clock.monotonic() < self._due:
            return False
        if self._response.kind == "refuse":
            raise TransportError("refused")
        return True

    def watch_connecting(self, callback: Callable[[], None] | None) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        if callback is not None and self._response.kind != "drop":
            self._timer = get_hub().loop.timer(max(self._due - _clock.monotonic(), 0.0))
            self._timer.start(callback)

    def close(self) -> None:
        self.closed = True


def expected_duration_and_success(responses: list[AddressResponse]) -> tuple[float, bool]:
    """Return the expected duration of a race in seconds, and True if a connection succeeds."""
    start, end_times, success_times = 0.0, [], []
    for kind, delay in responses:
        if success_times and min(success_times) <= start:
            break
        has_reply = delay < ATTEMPT_LIMIT and kind != "drop"
        end = start + (delay if has_reply else ATTEMPT_LIMIT)
        end_times.append(end)
        if has_reply and kind == "accept":
            success_times.append(end)
            start += 0.25
        else:
            start = min(end, start + 0.25)
    return (min(success_times), True) if success_times else (max(end_times), False)


ANY_RESPONSE = st.builds(
    AddressResponse, st.sampled_from(["accept", "refuse", "drop"]), st.sampled_from([0.0, 0.03, 0.2, 0.3, 0.6, 1.3])
)


@given(st.lists(ANY_RESPONSE, min_size=1, max_size=len(ADDRESSES)), st.sampled_from([None, 0.0, 0.1, 0.26, 0.55, 0.9]))
def test_race_keeps_first_established_connection_and_closes_others(
    responses: list[AddressResponse], timeout_seconds: float | None
) -> None:
    responses_by_address = dict(zip(ADDRESSES, responses, strict=False))
    transports: list[ScriptedTransport] = []

    def make_transport(_family: int) -> Any:
        transports.append(ScriptedTransport(responses_by_address))
        return transports[-1]

    order = AddressOrder()
    endpoints: Any = [(V4, (address, 1)) for address in responses_by_address]
    race = Race(endpoints, make_transport, ATTEMPT_LIMIT, order, True)
    virtual_loop: Any = get_hub().loop
    start = virtual_loop.monotonic()
    duration, succeeds = expected_duration_and_success(responses)
    own_timeout = gevent.Timeout(timeout_seconds)
    winner = None
    try:
        with own_timeout:
            winner = race.run()
    except gevent.Timeout as error:
        assert error is own_timeout and timeout_seconds is not None and timeout_seconds < duration + TOLERANCE
        assert all(transport.closed for transport in transports)
        return
    except TransportError as error:
        assert not succeeds
        timed_out = any(kind == "drop" or delay > ATTEMPT_LIMIT for kind, delay in responses)
        assert isinstance(error, AttemptsTimedOut) == timed_out
        assert [address in str(error) for address in responses_by_address] == [True] * len(responses_by_address)
    assert abs(virtual_loop.monotonic() - start - duration) < TOLERANCE
    assert (winner is not None) == succeeds
    assert [each for each in transports if not each.closed] == ([] if winner is None else [winner.transport])
    if winner is not None:
        address: Any = winner.address
        assert responses_by_address[address[0]].kind == "accept"
        first = order.sort_endpoints(endpoints)[0][1]
        assert first == address or ADDRESSES.index(first[0]) >= len(transports) or first not in order._failed_addresses


def test_address_order_alternates_ipv6_and_ipv4_and_ends_with_failed_addresses() -> None:
    endpoints: Any = [(V6, ("6a", 1)), (V6, ("6b", 1)), (V4, ("4a", 1)), (V4, ("4b", 1)), (V4, ("4c", 1))]
    order = AddressOrder()
    assert [address[0] for _, address in order.sort_endpoints(endpoints)] == ["6a", "4a", "6b", "4b", "4c"]
    for failed in ("4a", "6a", "4a"):
        order.record_failed_address((failed, 1))
    assert [address[0] for _, address in order.sort_endpoints(endpoints)] == ["6b", "4b", "4c", "6a", "4a"]
    order.record_failed_address(("6a", 1))
    order.remove_failed_address(("4a", 1))
    assert [address[0] for _, address in order.sort_endpoints(endpoints)] == ["4a", "6b", "4b", "4c", "6a"]
    for number in range(300):
        order.record_failed_address((number, 1))
    assert len(order._failed_addresses) == 256


@pytest.mark.parametrize("name", ["localhost", "LocalHost."])
def test_localhost_resolves_to_ipv4_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = [(V6, 1, 6, "", ("::1", 5, 0, 0)), (V4, 1, 6, "", ("127.0.0.1", 5)), (V4, 1, 6, "", ("127.0.0.1", 5))]
    monkeypatch.setattr(wire, "_look_up", lambda *_: resolved)
    assert wire.resolve((name, 5), True) == [(V4, ("127.0.0.1", 5)), (V6, ("::1", 5, 0, 0))]
    assert wire.resolve(("db.example", 5), True)[0][0] == V6


@pytest.fixture
def syn_dropping_address(server: ScriptedServer) -> Any:
    """Fill the backlog of a listener on 127.0.0.2, so that the kernel drops each further SYN."""
    listener = socket.socket()
    listener.bind(("127.0.0.2", server.port))
    listener.listen(0)
    pending_sockets = [socket.socket() for _ in range(3)]
    for each in pending_sockets:
        each.setblocking(False)
        each.connect_ex(("127.0.0.2", server.port))
    yield
    for each in (listener, *pending_sockets):
        each.close()


@pytest.fixture
def addresses(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of addresses of the host name db.example. A test may change the list."""
    test_addresses = ["127.0.0.2", "127.0.0.1"]
    resolve = wire.resolve

    def resolve_to_test_addresses(address: Any, ref: bool) -> Any:
        if address[0] != "db.example":
            return resolve(address, ref)
        return [(V4, (host, server.port)) for host in test_addresses]

    monkeypatch.setattr(wire, "resolve", resolve_to_test_addresses)
    return test_addresses


def new_client(connect: Any, server: ScriptedServer, **options: Any) -> Any:
    uri = f"mongodb://db.example:{server.port}/?directConnection=true"
    return connect(uri, **options)


@pytest.mark.usefixtures("syn_dropping_address", "addresses")
def test_connect_succeeds_if_first_address_drops_packets(
    connect: Any, server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    before = virtual_time.monotonic()
    client = new_client(connect, server, connectTimeoutMS=1000)
    assert client.admin.command("ping")["ok"] == 1
    # The monitor tried the second address after 0.25 seconds. The pool connection did not wait for
    # the first address.
    assert 0.25 <= virtual_time.monotonic() - before < 1
    assert list(client._topology.settings.connection.address_order._failed_addresses) == [("127.0.0.2", server.port)]


@pytest.mark.usefixtures("syn_dropping_address")
def test_server_selection_error_names_each_address_of_host(
    connect: Any, server: ScriptedServer, addresses: list[str]
) -> None:
    addresses[:] = ["127.0.0.2", "127.0.0.3"]
    client = new_client(connect, server, connectTimeoutMS=1000, serverSelectionTimeoutMS=500)
    with pytest.raises(ServerSelectionTimeoutError, match=r"TCP connection to 127.0.0.2 for 5\d\d ms\), Timeout"):
        client.admin.command("ping")
    gevent.sleep(1)
    (description,) = client.topology_description.server_descriptions().values()
    assert type(description.error) is NetworkTimeout
    text = str(description.error)
    assert f"db.example:{server.port}: 127.0.0.3: Connection refused after " in text
    assert "127.0.0.2: timed out after 100" in text and text.endswith(" ms)")


def test_race_closes_its_timer_after_success(monkeypatch: pytest.MonkeyPatch) -> None:
    accepting = {ADDRESSES[0]: AddressResponse("accept", 0.03)}
    race = Race([(V4, (ADDRESSES[0], 1))], lambda _: ScriptedTransport(accepting), ATTEMPT_LIMIT, AddressOrder(), False)  # type: ignore[arg-type, return-value]
    timers: list[Any] = []
    loop = Mock(timer=lambda *args, **options: timers.append(get_hub().loop.timer(*args, **options)) or timers[-1])
    monkeypatch.setattr(race, "_hub", Mock(loop=loop, switch=get_hub().switch))
    race.run()
    assert timers and not any(timer.active or timer.pending or timer.ref for timer in timers)


def test_race_tries_next_address_after_failure_to_open_socket() -> None:
    error, transport = TransportError(24, "no socket"), ScriptedTransport({"a1": AddressResponse("accept", 0.0)})
    endpoints, order = [(V6, ("a0", 1)), (V4, ("a1", 1))], AddressOrder()
    race = Race(endpoints, Mock(side_effect=[error, transport]), ATTEMPT_LIMIT, order, True)
    assert race.run().transport is transport
    assert race.failures == [(("a0", 1), error, 0.0)] and list(order._failed_addresses) == [("a0", 1)]


@pytest.mark.parametrize("seconds", [1.0, None])
def test_connect_timeout_after_race_limits_only_attempt_of_winner(
    virtual_time: VirtualTime, monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    monkeypatch.setattr(wire, "resolve", lambda *_: [(V4, ("a0", 1)), (V4, ("a1", 1))])
    winners = (Mock(began=virtual_time.monotonic() - 0.75) for _ in range(1))
    monkeypatch.setattr(connecting, "Race", lambda *_: Mock(run=lambda: gevent.sleep(3) or next(winners)))
    connection: Any = Mock(address=("h", 1), make_timeout_error=lambda *_: NetworkTimeout("late"))
    limit, start = connecting.ConnectTimeout(connection, seconds, ref=False), virtual_time.monotonic()
    limit.begin()
    connecting.connect(connection, Mock(proxy=None), Mock(), limit)
    with pytest.raises(NetworkTimeout if seconds else gevent.Timeout), gevent.Timeout(5):
        gevent.sleep(9)
    assert virtual_time.monotonic() - start == pytest.approx(3.25 if seconds else 8, abs=0.01)
    limit.close()


def test_switch_by_other_greenlet_ends_race_with_invalid_switch_error() -> None:
    transport: Any = ScriptedTransport({"a0": AddressResponse("drop", 0.0)})
    race = Race([(V4, ("a0", 1))], lambda _: transport, ATTEMPT_LIMIT, AddressOrder(), True)
    runner = gevent.spawn(race.run)
    gevent.sleep(0)
    gevent.spawn(runner.switch, "wrong")
    with pytest.raises(InvalidSwitchError, match=r"switched into <Greenlet .* with 'wrong', expected <gmongo"):
        runner.get(timeout=5)
    assert transport.closed


def test_race_of_parent_process_ends_with_error_in_forked_child() -> None:
    race = Race([(V4, ("a0", 1))], Mock(), ATTEMPT_LIMIT, AddressOrder(), True)
    race.mark_forked(TransportError("forked"))
    with pytest.raises(TransportError, match=r"^forked$"):
        race.run()


@pytest.mark.usefixtures("syn_dropping_address")
@pytest.mark.parametrize("interruption", ["close", "kill"])
def test_interrupted_race_of_addresses_closes_all_sockets(
    connect: Any, server: ScriptedServer, addresses: list[str], interruption: str
) -> None:
    addresses[:] = ["127.0.0.2", "127.0.0.2"]
    before = open_descriptors()
    client = new_client(connect, server)
    gevent.sleep(0.3)
    assert len(open_descriptors() - before) == 2
    if interruption == "kill":
        (monitored,) = client._topology.servers.values()
        monitored.monitor._background.stop()
        gevent.sleep(0.01)
    client.close()
    gevent.sleep(0.01)
    assert open_descriptors() <= before


def test_connect_succeeds_if_first_address_closes_before_hello(
    connect: Any, server: ScriptedServer, addresses: list[str]
) -> None:
    closing_server = gevent.server.StreamServer(("127.0.0.2", server.port), lambda sock, _address: sock.close())
    closing_server.start()
    try:
        client = new_client(connect, server)
        assert client.admin.command("ping")["ok"] == 1
    finally:
        closing_server.stop()


@pytest.mark.parametrize("server_closes", [True, False])
def test_error_during_hello_names_connection_stage(connect: Any, server_closes: bool) -> None:
    peer = gevent.server.StreamServer(
        ("127.0.0.1", 0), lambda sock, _address: sock.close() if server_closes else gevent.sleep(60)
    )
    peer.start()
    try:
        uri = f"mongodb://127.0.0.1:{peer.server_port}/"
        client = connect(uri, connectTimeoutMS=20_000, serverSelectionTimeoutMS=30_000)
        with pytest.raises(ServerSelectionTimeoutError) as caught:
            client.admin.command("ping")
    finally:
        peer.stop(timeout=0)
    text = str(caught.value)
    if server_closes:
        assert "(hello for " in text and "; perhaps the server has stopped, or demands TLS (tls=true))" in text
    else:
        assert "timed out (hello for 20000 ms; limit 20000 ms: connectTimeoutMS)" in text


def test_server_descriptions_whose_errors_differ_only_in_time_are_equal() -> None:
    from gmongo.cmap.connection import Connection
    from gmongo.cmap.pool_settings import ConnectionSettings
    from gmongo.cmap.progress import Progress
    from gmongo.sdam.server_description import ServerDescription

    connection = Connection(("a", 1))
    connection.progress = Progress("a", ConnectionSettings())
    first = connection.make_network_error(TransportError("refused"))
    gevent.sleep(0.2)
    second = connection.make_network_error(TransportError("refused"))
    assert str(first) != str(second) and type(first) is AutoReconnect
    assert ServerDescription(("a", 1), error=first) == ServerDescription(("a", 1), error=second)
    other = connection.make_network_error(TransportError("reset"))
    assert ServerDescription(("a", 1), error=first) != ServerDescription(("a", 1), error=other)
