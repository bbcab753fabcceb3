"""Topology of one client: the topology description, the servers, and their changes.

Each change replaces the immutable description. The topology replaces the description, creates and
drops servers, and marks pools ready in a ``with self._delivery`` block, without a greenlet switch. In
this block, the topology and its pools record events in order. After the block, the delivery publishes
the events.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from copy import copy

from gevent import get_hub
from gevent.hub import Hub

from gmongo import _random
from gmongo._documents import Document
from gmongo._fork import register_after_fork
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.errors import AutoReconnect, InvalidOperation, NetworkTimeout
from gmongo.events.delivery import Delivery
from gmongo.events.pool import PoolEvents
from gmongo.events.sdam import NamedOperation, TopologyEvents
from gmongo.sdam import application_errors
from gmongo.sdam.event_log import EventLog
from gmongo.sdam.monitor import Monitor
from gmongo.sdam.selection import Selector
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.server_selector import ServerSelector
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.srv_monitor import POLLED_TOPOLOGY_TYPES, SrvMonitor
from gmongo.sdam.topology_description import TopologyDescription, initial_description
from gmongo.sdam.transitions import is_stale, replace_srv_hosts, update_topology
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address, address_text

_GRACE_PERIOD = 10.0  # seconds for which operations may continue after the client was closed


class _PoolOwner:
    """Callbacks of pools to the topology. The weak reference lets Python free a deleted client."""

    def __init__(self, topology: Topology) -> None:
        self._topology = weakref.ref(topology)

    def connection_established(self, connection: Connection) -> None:
        if (topology := self._topology()) is not None:
            topology.connection_established(connection)

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        if (topology := self._topology()) is not None:
            topology.handle_error(connection, error, during_handshake=True)


class Topology:
    """Topology of one client. The greenlets of the topology start at the first use, in the thread of the first use."""

    def __init__(self, settings: TopologySettings) -> None:
        self.settings = settings
        self.description = initial_description(settings)
        self.history = EventLog()
        self.cluster_time: Document | None = None  # the newest cluster time in any reply of a server
        self._delivery = Delivery()
        self._events = TopologyEvents(settings.topology_id, settings.listeners, self._delivery, silent=settings.silent)
        self.servers: dict[Address, Server] = {}
        self.selector = ServerSelector(settings)
        self._srv_monitor: SrvMonitor | None = None
        # Hub of the client's thread. None before the first use in this process, and after a close.
        self.hub: Hub | None = None
        self.epoch = 0  # number of forks from the process that created the client to this process
        self._opened = False
        self.closed = False
        register_after_fork(self)

    def open(self) -> None:
        """Start the monitors at the first use of the client, unless the seeds are still unknown."""
        if self.closed:
            raise InvalidOperation("Cannot use MongoClient after close")
        hub = get_hub()
        if self.hub is hub:
            return
        self.check_thread()
        # Critical section to the end of `with`: if `hub` is set, greenlets may wait for the monitors.
        self.hub = hub
        with self._delivery:
            if self._opened:
                self._restart_in_child()
            elif self.settings.resolve is None:
                self._start_servers()
        if self._srv_monitor is not None:  # a forked child inherited the parent's SRV monitor
            self._srv_monitor.stop()
            self._srv_monitor = None
        if self.settings.srv is not None and self.is_polled():
            self._start_srv_monitor()
        self._delivery.deliver()

    def check_thread(self) -> None:
        """Raise InvalidOperation if the current thread is not the thread of the first use."""
        if self.hub is not None and self.hub is not get_hub():
            raise InvalidOperation(
                "a MongoClient belongs to the native thread that first used it, because gevent cannot switch between "
                "greenlets of different threads; call gevent.monkey.patch_all() before anything else, so that threads "
                "are greenlets, or create a client for each thread"
            )

    def _start_servers(self) -> None:
        self._opened = True
        record, events = self._delivery.record, self._events
        record(events.topology_opened)
        record(events.topology_changed, self._empty_description(), self.description)
        for address in self.settings.seeds:
            record(events.server_opened, address)
        self._mark_load_balancer_known()
        self._update_servers(self.description.server_descriptions())

    def _mark_load_balancer_known(self) -> None:
        """Set the type of a load balancer, which has no monitor."""
        if self.settings.load_balanced:
            for address in self.settings.seeds:
                self.apply(ServerDescription(address, server_type=SERVER_TYPE.LoadBalancer))

    def _empty_description(self) -> TopologyDescription:
        return TopologyDescription(TOPOLOGY_TYPE.Unknown, {}, None, None, None, self.settings)

    def _restart_in_child(self) -> None:
        """Create new monitors and reset the pools at the client's first use in a forked child."""
        self.description = self.description.reset()
        self.selector.clear_cache()
        servers, self.servers = self.servers, {}
        for server in servers.values():
            server.pool.reset_after_fork()
            if server.monitor is not None:
                server.monitor.stop()
            self.servers[server.address] = self._make_server(server.address, server.pool)
        self._mark_load_balancer_known()

    def _start_srv_monitor(self) -> None:
        self._srv_monitor = SrvMonitor(self.settings, self)
        self._srv_monitor.start()

    def close(self) -> None:
        """Stop all greenlets and close all pools. Running operations may continue for 10 seconds."""
        if self.closed:
            return
        # Critical section to the end of `with`. Without servers, checks and errors have no effect.
        # Without a hub, the next use of the client calls `open`, which raises InvalidOperation.
        self.closed = True
        self.hub = None
        record, events = self._delivery.record, self._events
        servers, self.servers = list(self.servers.values()), {}
        before, self.description = self.description, self._empty_description()
        with self._delivery:
            if self._srv_monitor is not None:
                self._srv_monitor.stop()
            self.selector.fail_waiters(lambda: InvalidOperation("Cannot use MongoClient after close"))
            for server in servers:
                server.close()
            if self._opened:
                for server in servers:
                    record(events.server_closed, server.address)
                record(events.topology_changed, before, self.description)
                record(events.topology_closed)
        pools = [server.pool for server in servers if server.pool.machine.in_use]
        if pools:
            # The monitors have stopped, and cannot interrupt connections of failed servers. This
            # timer does not keep the event loop alive.
            get_hub().loop.timer(_GRACE_PERIOD, ref=False).start(_interrupt_operations, pools)
        self._delivery.deliver()

    def mark_forked(self) -> None:
        """Mark the resources as inherited in a forked child before any greenlet runs, without I/O."""
        # Copies of the parent's greenlets detect the changed epoch. Without a hub, the next
        # operation creates new monitors and resets the pools.
        self.hub = None
        self._delivery.reset_after_fork()
        self.epoch += 1
        error = fork_error()
        for server in self.servers.values():
            server.pool.mark_forked(fork_error)
            if server.monitor is not None:
                server.monitor.mark_forked(error)

    def select_server(self, selector: Selector, name: str, deadline: float | None) -> Server:
        """Select a server for an internal task. Logs show `name` as the name of the operation."""
        return self.selector.select(self, selector, NamedOperation(name), deadline, frozenset())

    def ensure_open(self) -> None:
        """Check that the client is open and belongs to this thread. Start the monitors at the first use."""
        if self.hub is not get_hub():
            self.open()

    def server_at(self, address: Address, deadline: float | None, wait: bool) -> Server:
        """Return the server at `address`, for the next command of a cursor or a transaction.

        If `wait` is true, wait while the server is Unknown. The `deadline` of the operation limits the wait.

        :raises AutoReconnect: the server is no longer part of the topology.
        """
        self.ensure_open()
        return self.selector.server_at(self, address, deadline, wait)

    def pools(self) -> list[Pool]:
        return [server.pool for server in list(self.servers.values())]

    def request_checks(self) -> None:
        """Request a check of all servers. If the seeds are unknown and no DNS query is in progress, start a query."""
        if self.settings.resolve is not None and self._srv_monitor is None and self.hub is not None:
            self._start_srv_monitor()
        for server in self.servers.values():
            server.request_check()

    def server_checked(self, description: ServerDescription) -> None:
        """Apply the result of a check to the server description and the pool."""
        error = description.error
        if error is not None:
            self.history.record_failed_check(description)
        # Critical section: if greenlets switched before the clear of the pool, an operation with a
        # selected server could check out an old connection.
        with self._delivery:
            self.apply(description, error, interrupt=isinstance(error, NetworkTimeout))
        self._delivery.deliver(wait=False)  # a monitor does not wait for listeners of other greenlets

    def is_polled(self) -> bool:
        """Return True if the SRV monitor must query DNS for hosts. Replica sets and load balancers need no query."""
        # `hub` is None in a forked child that has not used the client.
        in_use = self.hub is not None and self._opened
        return in_use and not self.settings.load_balanced and self.description.topology_type in POLLED_TOPOLOGY_TYPES

    def seeds_found(self, settings: TopologySettings) -> None:
        """Start the topology with the seeds in `settings`."""
        if self.hub is None or self._opened:  # the client is closed, forked or already started
            return
        self.settings, self.description = settings, initial_description(settings)
        with self._delivery:
            self._start_servers()
            self.selector.wake_waiters(self.description)
        self._delivery.deliver(wait=False)

    def seeds_not_found(self, error: Exception) -> None:
        """Fail all operations that wait for the seeds. The next operation starts a new DNS query."""
        self._srv_monitor = None
        self.selector.fail_waiters(lambda: _copy_error(error))

    def srv_hosts_found(self, hosts: Sequence[Address]) -> None:
        with self._delivery:
            limit = self.settings.srv_max_hosts
            self._replace_description(replace_srv_hosts(self.description, hosts, limit, _random.sample))
        self._delivery.deliver(wait=False)

    def connection_established(self, connection: Connection) -> None:
        """Apply the hello of a new pool connection to the server description (SM-30)."""
        current = self.description.get(connection.address)
        server = self.servers.get(connection.address)
        if current is None or server is None or self.settings.load_balanced:
            return
        if connection.generation != server.pool.generation:
            return  # ignore the hello, which is older than the error that cleared the pool
        rtt, min_rtt = current.round_trip_time, current.min_round_trip_time
        if rtt is None:
            rtt = connection.hello.duration
        with self._delivery:
            self.apply(ServerDescription(connection.address, connection.hello.reply, rtt, None, min_rtt))
        self._delivery.deliver()

    def handle_error(self, connection: Connection, error: BaseException, during_handshake: bool = False) -> None:
        """Apply a connection error to the topology, unless the error is stale."""
        # Critical section: if greenlets switched after the test for staleness, an old error could
        # replace the result of a newer server check.
        with self._delivery:
            application_errors.handle_error(self, connection, error, during_handshake)
        self._delivery.deliver_after(error)

    def advance_cluster_time(self, cluster_time: Document) -> None:
        """Store a validated cluster time for later commands, if it is newer than the stored time."""
        stored_time = self.cluster_time
        if stored_time is None or cluster_time["clusterTime"] > stored_time["clusterTime"]:
            self.cluster_time = cluster_time

    def apply(self, new: ServerDescription, clear_cause: BaseException | None = None, interrupt: bool = False) -> None:
        """Apply a server description to the topology, servers and pool. Do not switch greenlets.

        If `clear_cause` is not None, clear the pool. If `interrupt` is also True, interrupt the
        connections in use.
        """
        previous = self.description.get(new.address)
        if previous is None or is_stale(previous.topology_version, new.topology_version, equal_is_stale=False):
            return
        after = update_topology(self.description, new)
        current = after.get(new.address)
        self._replace_description(after, (previous, current or new))
        if current is None:  # the new description removed the server from the topology
            return
        server = self.servers[new.address]
        # Only a direct connection allows operations on an arbiter or an uninitiated member.
        # Otherwise, the pool of such a server stays paused.
        if current.is_readable or (current.is_server_type_known and after.topology_type == TOPOLOGY_TYPE.Single):
            server.pool.ready()
        if clear_cause is not None:
            server.pool.clear(clear_cause, interrupt=interrupt)

    def _replace_description(
        self, after: TopologyDescription, server_change: tuple[ServerDescription, ServerDescription] | None = None
    ) -> None:
        """Replace the topology description, and record events in the order of the specification, without a switch.

        `server_change` consists of the old and new description of the server that caused the change.
        """
        record, events = self._delivery.record, self._events
        before, self.description = self.description, after
        old, new = before.server_descriptions(), after.server_descriptions()
        dropped_servers = [self.servers.pop(address) for address in list(self.servers) if address not in new]
        # All heartbeat events of a server must be between the opened event and the closed event of the server.
        # Therefore checks end before the closed event, and monitors start after the opened event.
        for server in dropped_servers:
            server.end_checks()
        is_changed = server_change is not None and server_change[0] != server_change[1]
        if server_change is not None and is_changed:
            record(events.server_changed, *server_change)
        for address in old:
            if address not in new:
                record(events.server_closed, address)
        for address in new:
            if address not in old:
                record(events.server_opened, address)
        self.history.record_changes(old, new)
        if is_changed or before != after:
            record(events.topology_changed, before, after)
        self._update_servers(new)
        for server in dropped_servers:
            server.pool.close()
        self.selector.clear_cache()
        self.selector.wake_waiters(after)

    def _update_servers(self, descriptions: Mapping[Address, ServerDescription]) -> None:
        for address, description in descriptions.items():
            if address not in self.servers:
                self.servers[address] = self._make_server(address, self._make_pool(address))
            self.servers[address].supports_retryable_writes = description.retryable_writes_supported

    def _make_pool(self, address: Address) -> Pool:
        settings = self.settings
        events = PoolEvents(
            address, settings.listeners.pool, self._delivery, settings.connection_made, silent=settings.silent
        )
        return Pool(address, settings.pool, settings.connection, events, _PoolOwner(self))

    def _make_server(self, address: Address, pool: Pool) -> Server:
        if self.settings.load_balanced:
            return Server(address, pool, None)
        monitor = Monitor(address, self.settings, self._events, self)
        monitor.start()
        return Server(address, pool, monitor)


def fork_error() -> AutoReconnect:
    """Return the error for greenlets of a forked child that use resources of the parent process."""
    return AutoReconnect("the connection belongs to the parent process; the client reconnects after a fork")


def _copy_error(error: Exception) -> Exception:
    """Return a copy of an error for one of several greenlets, because raising an error changes its traceback."""
    duplicate = copy(error)
    duplicate.__cause__ = error.__cause__
    return duplicate


def _interrupt_operations(pools: list[Pool]) -> None:
    """Interrupt the operations of a closed client that are still in progress."""
    for pool in pools:
        where = address_text(pool.address)
        text = f"{where}: the operation was in progress {_GRACE_PERIOD:g} s after MongoClient.close()"
        pool.interrupt(AutoReconnect(text))
