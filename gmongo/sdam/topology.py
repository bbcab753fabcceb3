"""The topology of one client: applies what monitors and operations find out, and chooses servers for operations.

The description is replaced, never changed. Replacing it, creating and dropping servers, and turning pools ready happen
in one run without a switch; events and waking those who wait for a server come after it.
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from gevent import get_hub

from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.cmap.wait_queue import WaitQueue
from gmongo.errors import (
    AutoReconnect,
    ConfigurationError,
    InvalidOperation,
    ServerSelectionTimeoutError,
)
from gmongo.events.delivery import Delivery
from gmongo.events.pool import PoolEvents
from gmongo.events.sdam import TopologyEvents
from gmongo.events.selection import Asked, SelectionEvents
from gmongo.sdam.error_rules import Consequence, consequence, is_network_timeout
from gmongo.sdam.fork import survive_fork
from gmongo.sdam.monitor import Monitor
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.srv_monitor import POLLED, SrvMonitor
from gmongo.sdam.topology_description import TopologyDescription, initial_description
from gmongo.sdam.transitions import is_stale, updated, with_srv_hosts
from gmongo.server_type import SERVER_TYPE
from gmongo.topology_type import TOPOLOGY_TYPE
from gmongo.wire.address import Address, address_text
from gmongo.wire.transport import without_frames

# Choices are remembered until the description changes, for this many read preferences.
_CHOICES_KEPT = 64


class _PoolOwner:
    """What pools and monitors hold of the topology: a weak reference, so that a dropped client goes away at once."""

    __slots__ = ("_topology",)

    def __init__(self, topology: Topology) -> None:
        self._topology = weakref.ref(topology)

    def connection_established(self, connection: Connection) -> None:
        topology = self._topology()
        if topology is not None:
            topology.connection_established(connection)

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        topology = self._topology()
        if topology is not None:
            topology.handle_error(connection, error, during_handshake=True)


class Topology:
    """The servers of one client. Its greenlets start with the first use, in the thread of that use.

    :param settings: of the client.
    """

    def __init__(self, settings: TopologySettings) -> None:
        self.settings = settings
        self.description = initial_description(settings)
        self.cluster_time: Mapping[str, Any] | None = None  # the newest seen
        self._events = TopologyEvents(settings.topology_id, settings.listeners)
        self._delivery = Delivery()  # of its pools' events
        self._selection_events = SelectionEvents()
        self._servers: dict[Address, Server] = {}
        self._choices: dict[int, tuple[Any, list[Server]]] = {}  # id of a selector -> itself, servers
        self._queue: WaitQueue[TopologyDescription] = WaitQueue()
        self._srv_monitor: SrvMonitor | None = None
        self._hub: Any = None  # whose greenlets may use the topology; None until opened, and again after a fork
        self.epoch = 0  # how many forks lie behind
        self._opened = False
        self._closed = False
        survive_fork(self)

    def __repr__(self) -> str:
        return f"<Topology {self.description!r}>"

    # Opening and closing

    def open(self) -> None:
        """Start the monitors, if that has not been done yet.

        :raises InvalidOperation: the client is closed, or belongs to another thread.
        """
        if self._closed:
            raise InvalidOperation("Cannot use MongoClient after close")
        hub = get_hub()
        if self._hub is hub:
            return
        self.check_thread()
        self._hub = hub
        if self._opened:
            self._begin_again_in_child()
        else:
            self._opened = True
            try:
                self._announce_opening()
            finally:  # a listener may be interrupted
                self._update_servers()
            self._delivery.deliver()
        self._watch_srv()

    def check_thread(self) -> None:
        """Refuse use by another native thread than that of the first use.

        :raises InvalidOperation: it is another one.
        """
        if self._hub is not None and self._hub is not get_hub():
            raise InvalidOperation(
                "a MongoClient belongs to the native thread that first used it, because greenlets cannot be switched "
                "from another one; make a client for each thread"
            )

    def _announce_opening(self) -> None:
        self._events.topology_opened()
        self._events.topology_changed(self._nothing_known(), self.description)
        for address in self.settings.seeds:
            self._events.server_opened(address)
        self._take_load_balancer_as_known()

    def _take_load_balancer_as_known(self) -> None:
        """A load balancer has no monitor that would find out what it is."""
        if self.settings.load_balanced:
            for address in self.settings.seeds:
                self._apply(ServerDescription(address, server_type=SERVER_TYPE.LoadBalancer))

    def _nothing_known(self) -> TopologyDescription:
        return TopologyDescription(TOPOLOGY_TYPE.Unknown, {}, None, None, None, self.settings)

    def _begin_again_in_child(self) -> None:
        """After a fork: new monitors, and pools that have forgotten what belongs to the parent."""
        self.description = self.description.reset()
        self._choices.clear()
        servers, self._servers = self._servers, {}
        for server in servers.values():
            server.pool.reset_after_fork(forked)
            if server.monitor is not None:
                server.monitor.stop()
            self._servers[server.address] = self._monitored(server.address, server.pool)
        self._take_load_balancer_as_known()

    def _watch_srv(self) -> None:
        if self._srv_monitor is not None:  # the parent's, in a forked child
            self._srv_monitor.stop()
        if self.settings.srv is not None and self.is_polled():
            self._srv_monitor = SrvMonitor(self.settings, self)
            self._srv_monitor.start()

    def close(self) -> None:
        """Stop all greenlets and close all pools. Does not wait."""
        if self._closed:
            return
        self._closed = True
        waiters = self._queue.detach()
        servers, self._servers = list(self._servers.values()), {}
        self._choices.clear()
        if self._srv_monitor is not None:
            self._srv_monitor.stop()
        self._queue.evict(waiters, lambda: InvalidOperation("Cannot use MongoClient after close"))
        _close_all(servers)
        if self._opened:
            for server in servers:
                self._events.server_closed(server.address)
            self._events.topology_changed(self.description, self._nothing_known())
            self._events.topology_closed()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    @property
    def hub(self) -> Any:
        """The hub whose greenlets use the topology; None before the first use and after the last."""
        return None if self._closed else self._hub

    def inherited(self) -> None:
        """In a forked child, before anything runs: mark everything that belongs to the parent. No I/O, no switch."""
        self._hub = None
        self._delivery.reset_after_fork()
        self.epoch += 1
        error = forked()
        for server in self._servers.values():
            server.pool.mark_forked(error)
            if server.monitor is not None:
                server.monitor.abandon(error)

    # Selecting

    def select_server(
        self,
        selector: Any,
        operation: str,
        deadline: float | None = None,
        deprioritized: frozenset[Address] = frozenset(),
        operation_id: int | None = None,
    ) -> Server:
        """The server for an operation, waiting for one if there is none.

        :param selector: a read preference, or ``WRITABLE``.
        :param operation: its name, for logs.
        :param deadline: on the clock of :func:`time.monotonic`, beside ``serverSelectionTimeoutMS``.
        :param deprioritized: servers to pass over if there are others.
        :param operation_id: for logs, if it is one of several operations that belong together.
        :raises ServerSelectionTimeoutError: none was found in time.
        :raises ConfigurationError: the servers are too old or too new.
        """
        if self._hub is not get_hub() or self._closed:
            self.open()
        log = self._selection_events if self._selection_events.wanted() else None
        if log:
            log.started(Asked(selector, operation, operation_id), self.description)
        kept = None if deprioritized else self._choices.get(id(selector))
        servers = self._suitable(selector, deprioritized) if kept is None else kept[1]
        if not servers:
            servers = self._wait_for_suitable(Asked(selector, operation, operation_id), deadline, deprioritized)
        server = servers[0] if len(servers) == 1 else _less_busy_of_two(servers)
        if log:
            log.succeeded(Asked(selector, operation, operation_id), self.description, server.address)
        return server

    def check_use(self) -> None:
        """Refuse use after the client was closed, and by another native thread.

        :raises InvalidOperation: it is one of these.
        """
        if self._hub is not get_hub() or self._closed:
            self.open()

    def server_at(self, address: Address, deadline: float | None = None, wait: bool = True) -> Server:
        """The server at `address`, for the further commands of a cursor or of a transaction.

        :param deadline: on the clock of :func:`time.monotonic`, beside ``serverSelectionTimeoutMS``.
        :param wait: until the server is known again, if its last check failed.
        :raises AutoReconnect: it is no longer part of the topology.
        :raises ServerSelectionTimeoutError: it was not known in time.
        """
        self.check_use()
        end: float | None = None
        while True:
            server = self._servers.get(address)
            if server is None:
                raise AutoReconnect(f"server {address_text(address)} is no longer part of the topology")
            description = self.description.get(address)
            if not wait or (description is not None and description.is_server_type_known):
                return server
            if end is None:
                end = monotonic() + self.settings.server_selection_timeout
                end = end if deadline is None else min(end, deadline)
            # No switch between looking and queueing up, or the change that is waited for could be missed.
            self.request_checks()
            self._queue.wait(
                end - monotonic(),
                lambda: self._selection_error(
                    f"server {address_text(address)}, which has the cursor or the transaction, is not known now"
                ),
            )

    def _suitable(self, selector: Any, deprioritized: frozenset[Address]) -> list[Server]:
        """The servers among which one is chosen; remembered for as long as the description stays."""
        self.description.check_compatible()
        found = self.description.apply_selector(selector, None, self.settings.server_selector, deprioritized)
        servers = [self._servers[server.address] for server in found if server.address in self._servers]
        if servers and not deprioritized and self.settings.server_selector is None:
            if len(self._choices) >= _CHOICES_KEPT:
                self._choices.clear()
            self._choices[id(selector)] = selector, servers
        return servers

    def _wait_for_suitable(
        self, asked: Asked, deadline: float | None, deprioritized: frozenset[Address]
    ) -> list[Server]:
        """Wait for changes until a server suits. Every change wakes all who wait, in order."""
        log = self._selection_events if self._selection_events.wanted() else None
        end = monotonic() + self.settings.server_selection_timeout
        end = end if deadline is None else min(end, deadline)
        self._selection_events.waiting(asked, self.description, end - monotonic())
        while True:
            try:
                # No switch between looking and queueing up, or the change that is waited for could be missed.
                servers = self._suitable(asked.selector, deprioritized)
                if servers:
                    return servers
                self.request_checks()
                self._queue.wait(
                    end - monotonic(), lambda: self._selection_error(_complaint(self.description, asked.selector))
                )
            except Exception as error:
                if log:
                    log.failed(asked, self.description, error)
                raise

    def _selection_error(self, complaint: str) -> ServerSelectionTimeoutError:
        timeout = self.settings.server_selection_timeout
        return ServerSelectionTimeoutError(
            f"{complaint}, Timeout: {timeout:g}s, Topology Description: {self.description!r}"
        )

    def pools(self) -> list[Pool]:
        """The pools of all servers."""
        return [server.pool for server in self._servers.values()]

    def request_checks(self) -> None:
        """Have all servers checked soon."""
        for server in self._servers.values():
            server.request_check()

    # Applying what was found out

    def describe(self, address: Address) -> ServerDescription | None:
        """What is known of a server; None if it is not part of the topology."""
        return None if self._closed else self.description.get(address)

    def server_checked(self, description: ServerDescription) -> None:
        """Apply a monitor's check: change the description, and make the pool ready or clear it."""
        if self._closed:
            return
        error = description.error
        self._apply(description, error, interrupt=error is not None and is_network_timeout(error))

    def is_polled(self) -> bool:
        """Whether SRV records say of which hosts the topology consists: not for replica sets and load balancers."""
        in_use = self._hub is not None and not self._closed  # and not in a forked child that leaves it alone
        return in_use and not self.settings.load_balanced and self.description.topology_type in POLLED

    def srv_hosts_found(self, hosts: Sequence[Address]) -> None:
        """Take over the hosts that the SRV records name now."""
        before = self.description
        with self._delivery:
            after = self.description = with_srv_hosts(before, hosts, self.settings.srv_max_hosts, random.sample)
            self._choices.clear()
            dropped = self._update_servers()
        try:
            _end_checks(dropped)
            self._announce_difference(before, after)
        finally:
            self._wake_waiters(after)
            self._announce_pools(dropped)

    def connection_established(self, connection: Connection) -> None:
        """Apply what the handshake of an application's connection says of the server (SM-30)."""
        current = self.describe(connection.address)
        server = self._servers.get(connection.address)
        if current is None or server is None or self.settings.load_balanced:
            return
        if connection.generation != server.pool.generation:
            return  # it says how the server was before the error that cleared the pool
        rtt, smallest = current.round_trip_time, current.min_round_trip_time
        if rtt is None:
            rtt = connection.hello.duration
        self._apply(ServerDescription(connection.address, connection.hello.reply, rtt, None, smallest))

    def handle_error(self, connection: Connection, error: BaseException, during_handshake: bool = False) -> None:
        """Apply what an application's error on a connection says of the server, unless it is old news."""
        server = self._servers.get(connection.address)
        if server is None or self._closed or self._is_old_news(server, connection, error):
            return
        if self.settings.load_balanced:
            self._handle_error_behind_load_balancer(server, connection, error, during_handshake)
            return
        wire_version = connection.hello.max_wire_version if connection.handshake_done else 0
        follows = consequence(error, during_handshake, wire_version)
        if follows is Consequence.NOTHING:
            return
        cause = without_frames(error)  # it is kept for as long as the server is Unknown
        unknown = self.description.server_descriptions()[server.address].to_unknown(cause)
        try:
            self._apply(unknown, None if follows is Consequence.UNKNOWN else cause)
        finally:
            if follows is Consequence.UNKNOWN_CLEAR_AND_CANCEL and server.monitor is not None:
                server.monitor.cancel_check()
            if during_handshake or follows is not Consequence.UNKNOWN_CLEAR_AND_CANCEL:
                server.request_check()

    def _handle_error_behind_load_balancer(
        self, server: Server, connection: Connection, error: BaseException, during_handshake: bool
    ) -> None:
        if connection.service_id is None:
            return
        follows = consequence(error, during_handshake, connection.hello.max_wire_version)
        if follows in (Consequence.UNKNOWN_AND_CLEAR, Consequence.UNKNOWN_CLEAR_AND_CANCEL):
            server.pool.clear(without_frames(error), connection.service_id)

    def advance_cluster_time(self, cluster_time: Mapping[str, Any]) -> None:
        """Remember the newest cluster time seen, for all later commands. It has been checked."""
        known = self.cluster_time
        if known is None or cluster_time["clusterTime"] > known["clusterTime"]:
            self.cluster_time = cluster_time

    def _is_old_news(self, server: Server, connection: Connection, error: BaseException) -> bool:
        """Whether the pool was cleared, or the server's state learnt anew, since the error came about."""
        if connection.generation < server.pool.generations.of(connection.service_id):
            return True
        details = getattr(error, "details", None)
        version = details.get("topologyVersion") if isinstance(details, dict) else None
        current = self.description.get(server.address)
        return current is not None and is_stale(current.topology_version, version, equal_is_stale=True)

    def _apply(self, new: ServerDescription, clear_for: BaseException | None = None, interrupt: bool = False) -> None:
        """Let one server's new description take effect.

        :param clear_for: the error because of which its pool is cleared, too.
        :param interrupt: whether the clear interrupts connections in use.
        """
        before = self.description
        previous = before.get(new.address)
        if previous is None or is_stale(previous.topology_version, new.topology_version, equal_is_stale=False):
            return
        with self._delivery:
            after = self.description = updated(before, new)
            self._choices.clear()
            dropped = self._update_servers()
            current = after.get(new.address)
            server = self._servers.get(new.address)
            if server is not None and current is not None and current.is_server_type_known:
                server.pool.ready()
            if server is not None and clear_for is not None:
                server.pool.clear(clear_for, interrupt=interrupt)
        try:
            _end_checks(dropped)
            self._announce(before, after, previous, current or new)
        finally:  # a listener may be interrupted
            self._wake_waiters(after)
            self._announce_pools(dropped)

    def _announce_pools(self, dropped: list[Server]) -> None:
        """The pools' part of an update: they come after the descriptions."""
        try:
            self._delivery.deliver()
        finally:
            _close_all(dropped)

    def _wake_waiters(self, description: TopologyDescription) -> None:
        while self._queue.waiters:
            self._queue.hand(description)

    def _update_servers(self) -> list[Server]:
        """Create servers for new addresses, and return those whose address has gone."""
        wanted = self.description.server_descriptions()
        for address in wanted:
            if address not in self._servers:
                self._servers[address] = self._monitored(address, self._make_pool(address))
        dropped = [self._servers.pop(address) for address in list(self._servers) if address not in wanted]
        for address, server in self._servers.items():
            server.supports_retryable_writes = wanted[address].retryable_writes_supported
        return dropped

    def _make_pool(self, address: Address) -> Pool:
        events = PoolEvents(address, self.settings.listeners.pool, self._delivery)
        return Pool(address, self.settings.pool, self.settings.connection, events, _PoolOwner(self))

    def _monitored(self, address: Address, pool: Pool) -> Server:
        if self.settings.load_balanced:
            return Server(address, pool, None)
        monitor = Monitor(address, self.settings, self._events, self)
        monitor.start()
        return Server(address, pool, monitor)

    def _announce(
        self,
        before: TopologyDescription,
        after: TopologyDescription,
        previous: ServerDescription,
        current: ServerDescription,
    ) -> None:
        """Publish the differences between two descriptions, in the specification's order."""
        if previous != current:
            self._events.server_changed(previous, current)
        self._announce_difference(before, after)

    def _announce_difference(self, before: TopologyDescription, after: TopologyDescription) -> None:
        old, new = before.server_descriptions(), after.server_descriptions()
        for address in old.keys() - new.keys():
            self._events.server_closed(address)
        for address in new.keys() - old.keys():
            self._events.server_opened(address)
        if before != after:
            self._events.topology_changed(before, after)


def forked() -> AutoReconnect:
    """What ends the operation of a greenlet that is a forked child's copy of one of its parent's."""
    return AutoReconnect("the connection belongs to the parent process; the client reconnects after a fork")


def _end_checks(servers: list[Server]) -> None:
    """End the checks of servers that are no longer part of the topology, before that is announced."""
    for server in servers:
        if server.monitor is not None:
            server.monitor.close()


def _close_all(servers: list[Server]) -> None:
    """Close servers, all of them, even if a listener is interrupted meanwhile."""
    for position, server in enumerate(servers):
        try:
            server.close()
        except BaseException:
            _close_all(servers[position + 1 :])
            raise


def _less_busy_of_two(servers: list[Server]) -> Server:
    """Of two servers taken at random, the one with fewer operations in progress."""
    first, second = random.sample(servers, 2)
    return first if first.pool.operation_count <= second.pool.operation_count else second


def _complaint(topology: TopologyDescription, selector: Any) -> str:
    """What is missing, in the words of a person."""
    errors = [server.error for server in topology.server_descriptions().values() if server.error]
    if not topology.has_known_servers:
        return ", ".join(str(error) for error in errors) or "No servers found yet"
    if isinstance(errors and errors[0], ConfigurationError):
        return str(errors[0])
    mode = getattr(selector, "mongos_mode", "primary")
    if mode == "primary":
        return "No primary available for writes" if not hasattr(selector, "document") else "No primary available"
    return f"No replica set members match selector {selector!r}"
