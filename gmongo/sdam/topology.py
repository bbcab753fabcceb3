"""The topology of one client: its description and its servers, their beginning and end, and how changes are applied.

The description is replaced, never changed. Replacing it, creating and dropping servers, and turning pools ready happen
in one run without a switch, a ``with self._delivery``, in which what happens is noted for listeners; pools note in the
same place, so that the events of both come in order. It is delivered after that. Which server an operation gets is
decided in `server_selector`, what an operation's error means for a server in `application_errors`.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from copy import copy

from gevent import get_hub
from gevent.hub import Hub

from gmongo import _chance
from gmongo._documents import Document
from gmongo._fork import register_after_fork
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.cmap.connection import Connection
from gmongo.cmap.pool import Pool
from gmongo.errors import AutoReconnect, InvalidOperation
from gmongo.events.delivery import Delivery
from gmongo.events.pool import PoolEvents
from gmongo.events.sdam import TopologyEvents
from gmongo.events.selection import Named
from gmongo.sdam import application_errors
from gmongo.sdam.history import History
from gmongo.sdam.monitor import Monitor
from gmongo.sdam.network_errors import is_network_timeout
from gmongo.sdam.selection import Selector
from gmongo.sdam.server import Server
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.server_selector import ServerSelector
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.srv_monitor import POLLED, SrvMonitor
from gmongo.sdam.topology_description import TopologyDescription, initial_description
from gmongo.sdam.transitions import is_stale, updated, with_srv_hosts
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address, address_text

_GRACE = 10.0  # seconds after a close for operations in progress


class _PoolOwner:
    """What pools hold of the topology: a weak reference, so that a dropped client is collected at once."""

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
        self.history = History()
        self.cluster_time: Document | None = None  # the newest seen
        self._delivery = Delivery()
        self._events = TopologyEvents(settings.topology_id, settings.listeners, self._delivery, silent=settings.silent)
        self.servers: dict[Address, Server] = {}
        self.selector = ServerSelector(settings)
        self._srv_monitor: SrvMonitor | None = None
        # Whose greenlets use it; None before the first use, after a fork and after the last use.
        self.hub: Hub | None = None
        self.epoch = 0  # how many forks lie behind
        self._opened = False
        self._closed = False
        register_after_fork(self)

    def __repr__(self) -> str:
        return f"<Topology {self.description!r}>"

    # Opening and closing

    def open(self) -> None:
        """Start the monitors, if that has not been done yet. Without seeds, they start when DNS has named the seeds.

        :raises InvalidOperation: the client is closed, or belongs to another thread.
        """
        if self._closed:
            raise InvalidOperation("Cannot use MongoClient after close")
        hub = get_hub()
        if self.hub is hub:
            return
        self.check_thread()
        # Critical section: from here to the end of the block. A greenlet that finds the hub set takes the client as
        # open, and waits for monitors that are there.
        self.hub = hub
        with self._delivery:
            if self._opened:
                self._begin_again_in_child()
            elif self.settings.resolve is None:
                self._begin()
        self._watch_srv()
        self._delivery.deliver()

    def check_thread(self) -> None:
        """Refuse use by another native thread than that of the first use.

        :raises InvalidOperation: it is another one.
        """
        if self.hub is not None and self.hub is not get_hub():
            raise InvalidOperation(
                "a MongoClient belongs to the native thread that first used it, because greenlets cannot be switched "
                "from another one; call gevent.monkey.patch_all() before anything else, so that threads are greenlets, "
                "or make a client for each thread"
            )

    def _begin(self) -> None:
        self._opened = True
        note, events = self._delivery.note, self._events
        note(events.topology_opened)
        note(events.topology_changed, self._nothing_known(), self.description)
        for address in self.settings.seeds:
            note(events.server_opened, address)
        self._take_load_balancer_as_known()
        self._update_servers(self.description.server_descriptions())

    def _take_load_balancer_as_known(self) -> None:
        """A load balancer has no monitor that would find out what it is."""
        if self.settings.load_balanced:
            for address in self.settings.seeds:
                self.apply(ServerDescription(address, server_type=SERVER_TYPE.LoadBalancer))

    def _nothing_known(self) -> TopologyDescription:
        return TopologyDescription(TOPOLOGY_TYPE.Unknown, {}, None, None, None, self.settings)

    def _begin_again_in_child(self) -> None:
        """After a fork: new monitors, and pools that have forgotten what belongs to the parent."""
        self.description = self.description.reset()
        self.selector.forget()
        servers, self.servers = self.servers, {}
        for server in servers.values():
            server.pool.reset_after_fork()
            if server.monitor is not None:
                server.monitor.stop()
            self.servers[server.address] = self._monitored(server.address, server.pool)
        self._take_load_balancer_as_known()

    def _watch_srv(self) -> None:
        if self._srv_monitor is not None:  # the parent's, in a forked child
            self._srv_monitor.stop()
            self._srv_monitor = None
        if self.settings.srv is not None and self.is_polled():
            self._start_srv_monitor()

    def _start_srv_monitor(self) -> None:
        self._srv_monitor = SrvMonitor(self.settings, self)
        self._srv_monitor.start()

    def close(self) -> None:
        """Stop all greenlets and close all pools. Waits for nothing but listeners. Operations in progress have 10 s."""
        if self._closed:
            return
        # Critical section: from here to the end of the block. Checks and errors of servers that are not part of the
        # topology have no effect, and without a hub the next use of the client goes to `open`, which refuses it.
        self._closed = True
        self.hub = None
        note, events = self._delivery.note, self._events
        servers, self.servers = list(self.servers.values()), {}
        before, self.description = self.description, self._nothing_known()
        with self._delivery:
            if self._srv_monitor is not None:
                self._srv_monitor.stop()
            self.selector.fail(lambda: InvalidOperation("Cannot use MongoClient after close"))
            for server in servers:
                server.close()
            if self._opened:
                for server in servers:
                    note(events.server_closed, server.address)
                note(events.topology_changed, before, self.description)
                note(events.topology_closed)
        pools = [server.pool for server in servers if server.pool.machine.in_use]
        if pools:
            # No monitor watches these connections any more. The loop keeps the timer, which does not keep it running.
            get_hub().loop.timer(_GRACE, ref=False).start(_interrupt, pools)
        self._delivery.deliver()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def mark_forked(self) -> None:
        """In a forked child, before anything runs: mark everything that belongs to the parent. No I/O, no switch."""
        # Greenlets that the child has copied go on, each where its parent's was: with the epoch an operation finds out
        # that it is a copy, and without a hub the next one makes monitors and pools anew.
        self.hub = None
        self._delivery.reset_after_fork()
        self.epoch += 1
        error = forked()
        for server in self.servers.values():
            server.pool.mark_forked(forked)
            if server.monitor is not None:
                server.monitor.mark_forked(error)

    # Selecting

    def select_server(self, selector: Selector, name: str, deadline: float | None = None) -> Server:
        """A server for what is no operation; the further parameters are those of :meth:`ServerSelector.select`.

        :param name: of what asks for it, for logs.
        """
        return self.selector.select(self, selector, Named(name), deadline, frozenset())

    def ensure_open(self) -> None:
        """Refuse use after the client was closed, and by another native thread.

        :raises InvalidOperation: it is one of these.
        """
        if self.hub is not get_hub():
            self.open()

    def server_at(self, address: Address, deadline: float | None, wait: bool) -> Server:
        """The server at `address`, for the further commands of a cursor or of a transaction.

        :param deadline: on the clock of ``gmongo._clock``, beside ``serverSelectionTimeoutMS``.
        :param wait: until the server is known again, if its last check failed.
        :raises AutoReconnect: it is no longer part of the topology.
        :raises ServerSelectionTimeoutError: it was not known in time.
        """
        self.ensure_open()
        return self.selector.server_at(self, address, deadline, wait)

    def pools(self) -> list[Pool]:
        """The pools of all servers."""
        return [server.pool for server in list(self.servers.values())]

    def request_checks(self) -> None:
        """Have all servers checked soon, or the DNS query for the seeds made, if it is not in progress."""
        if self.settings.resolve is not None and self._srv_monitor is None and self.hub is not None:
            self._start_srv_monitor()
        for server in self.servers.values():
            server.request_check()

    # Applying what was found out

    def server_checked(self, description: ServerDescription) -> None:
        """Apply a monitor's check: change the description, and make the pool ready or clear it."""
        error = description.error
        if error is not None:
            self.history.check_failed(description)
        # Critical section: the server is unknown and its pool cleared in one step. With a switch between them, an
        # operation that had selected the server would still check out a connection of before.
        with self._delivery:
            self.apply(description, error, interrupt=error is not None and is_network_timeout(error))
        self._delivery.deliver(wait=False)  # a monitor does not wait for listeners to the events of others

    def is_polled(self) -> bool:
        """Whether SRV records say of which hosts the topology consists: not for replica sets and load balancers."""
        # It is not in use in a forked child that leaves the client alone.
        in_use = self.hub is not None and self._opened
        return in_use and not self.settings.load_balanced and self.description.topology_type in POLLED

    def seeds_found(self, settings: TopologySettings) -> None:
        """Begin with the seeds that DNS has named.

        :param settings: with these seeds.
        """
        if self.hub is None or self._opened:  # closed, forked, or found by a query that was repeated
            return
        self.settings, self.description = settings, initial_description(settings)
        with self._delivery:
            self._begin()
            self.selector.wake(self.description)
        self._delivery.deliver(wait=False)

    def seeds_not_found(self, error: Exception) -> None:
        """End all operations that wait for the seeds. The next operation has DNS queried again.

        :param error: of the query.
        """
        self._srv_monitor = None
        self.selector.fail(lambda: _again(error))

    def srv_hosts_found(self, hosts: Sequence[Address]) -> None:
        """Take over the hosts that the SRV records name now."""
        with self._delivery:
            self._replace(with_srv_hosts(self.description, hosts, self.settings.srv_max_hosts, _chance.sample))
        self._delivery.deliver(wait=False)

    def connection_established(self, connection: Connection) -> None:
        """Apply what the handshake of an application's connection says of the server (SM-30)."""
        current = self.description.get(connection.address)
        server = self.servers.get(connection.address)
        if current is None or server is None or self.settings.load_balanced:
            return
        if connection.generation != server.pool.generation:
            return  # it says how the server was before the error that cleared the pool
        rtt, smallest = current.round_trip_time, current.min_round_trip_time
        if rtt is None:
            rtt = connection.hello.duration
        with self._delivery:
            self.apply(ServerDescription(connection.address, connection.hello.reply, rtt, None, smallest))
        self._delivery.deliver()

    def handle_error(self, connection: Connection, error: BaseException, during_handshake: bool = False) -> None:
        """Apply what an application's error on a connection says of the server, unless it is stale."""
        # Critical section: whether the error is stale, and its effect. With a switch between them, it could undo what a
        # newer check has found.
        with self._delivery:
            application_errors.handle_error(self, connection, error, during_handshake)
        self._delivery.deliver_after(error)

    def advance_cluster_time(self, cluster_time: Document) -> None:
        """Remember the newest cluster time seen, for all later commands. It has been checked."""
        known = self.cluster_time
        if known is None or cluster_time["clusterTime"] > known["clusterTime"]:
            self.cluster_time = cluster_time

    def apply(self, new: ServerDescription, clear_for: BaseException | None = None, interrupt: bool = False) -> None:
        """Let one server's new description take effect. Does not switch.

        :param clear_for: the error because of which its pool is cleared, too.
        :param interrupt: whether the clear interrupts connections in use.
        """
        previous = self.description.get(new.address)
        if previous is None or is_stale(previous.topology_version, new.topology_version, equal_is_stale=False):
            return
        after = updated(self.description, new)
        current = after.get(new.address)
        self._replace(after, (previous, current or new))
        if current is None:  # what it says of itself has removed it
            return
        server = self.servers[new.address]
        # The application sends no operation to an arbiter or a member without configuration, except directly.
        if current.is_readable or (current.is_server_type_known and after.topology_type == TOPOLOGY_TYPE.Single):
            server.pool.ready()
        if clear_for is not None:
            server.pool.clear(clear_for, interrupt=interrupt)

    def _replace(
        self, after: TopologyDescription, changed: tuple[ServerDescription, ServerDescription] | None = None
    ) -> None:
        """Put a description in the place of the present one. Does not switch; events are noted in the order that the
        specification demands, and those of checks and pools where they belong between them.

        :param changed: the server's description that is the reason, before and after.
        """
        note, events = self._delivery.note, self._events
        before, self.description = self.description, after
        old, new = before.server_descriptions(), after.server_descriptions()
        dropped = [self.servers.pop(address) for address in list(self.servers) if address not in new]
        # The heartbeats of a server lie between its opening and its closing: its check ends before the one is noted,
        # its monitor is made after the other.
        for server in dropped:
            server.end_checks()
        is_changed = changed is not None and changed[0] != changed[1]
        if changed is not None and is_changed:
            note(events.server_changed, *changed)
        for address in old:
            if address not in new:
                note(events.server_closed, address)
        for address in new:
            if address not in old:
                note(events.server_opened, address)
        self.history.changed(old, new)
        if is_changed or before != after:
            note(events.topology_changed, before, after)
        self._update_servers(new)
        for server in dropped:
            server.pool.close()
        # Last: a waiter looks among the servers that are there now, when the loop lets it go on.
        self.selector.forget()
        self.selector.wake(after)

    def _update_servers(self, descriptions: Mapping[Address, ServerDescription]) -> None:
        """Create servers for new addresses, and pass each what its description says it can do."""
        for address, description in descriptions.items():
            if address not in self.servers:
                self.servers[address] = self._monitored(address, self._make_pool(address))
            self.servers[address].supports_retryable_writes = description.retryable_writes_supported

    def _make_pool(self, address: Address) -> Pool:
        chosen = self.settings
        events = PoolEvents(
            address, chosen.listeners.pool, self._delivery, chosen.connection_made, silent=chosen.silent
        )
        return Pool(address, chosen.pool, chosen.connection, events, _PoolOwner(self))

    def _monitored(self, address: Address, pool: Pool) -> Server:
        if self.settings.load_balanced:
            return Server(address, pool, None)
        monitor = Monitor(address, self.settings, self._events, self)
        monitor.start()
        return Server(address, pool, monitor)


def forked() -> AutoReconnect:
    """What ends the operation of a greenlet that is a forked child's copy of one of its parent's."""
    return AutoReconnect("the connection belongs to the parent process; the client reconnects after a fork")


def _again(error: Exception) -> Exception:
    """The same error for one more greenlet: raising an error changes the error."""
    again = copy(error)
    again.__cause__ = error.__cause__
    return again


def _interrupt(pools: list[Pool]) -> None:
    """End the operations that a closed client has in progress."""
    for pool in pools:
        where = address_text(pool.address)
        pool.interrupt(AutoReconnect(f"{where}: the operation was in progress {_GRACE:g} s after MongoClient.close()"))
