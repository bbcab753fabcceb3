"""The server of each operation: choices that are remembered, and a queue of greenlets that wait for a server.

Which servers suit is decided by pure functions in `selection`; this owns what selecting remembers and waits on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from gevent import get_hub

from gmongo import _chance, _clock
from gmongo.cmap.wait_queue import Waiter, WaitQueue
from gmongo.errors import AutoReconnect, ConfigurationError, ServerSelectionTimeoutError
from gmongo.events.selection import Asked, SelectionEvents
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.sdam.server import Server
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.wire.address import Address, address_text
from gmongo.wire.limit import Seconds, limit_text

Found = TypeVar("Found")

# Choices are remembered until the description changes, for this many read preferences.
_CHOICES_KEPT = 64
_NEGLIGIBLE = 0.001  # seconds


class Selectable(Protocol):
    """What servers are selected from: the topology."""

    description: TopologyDescription
    servers: dict[Address, Server]
    hub: object

    def open(self) -> None:
        """Start, if that has not been done here.

        :raises InvalidOperation: the client is closed, or in use by another native thread.
        """

    def request_checks(self) -> None:
        """Have all servers checked soon."""


class Asking(Protocol):
    """What a server is selected for: an operation."""

    @property
    def name(self) -> str:
        """Its name, for logs."""

    @property
    def operation_id(self) -> int | None:
        """What ties it together with others in logs, if it is one of several."""


class ServerSelector:
    """Selects servers of one topology, which is given with each call, so that neither keeps the other alive.

    :param settings: of the client.
    """

    def __init__(self, settings: TopologySettings) -> None:
        self._settings = settings
        self._events = SelectionEvents(silent=settings.silent)
        self._is_logged = self._events.wanted
        # id of a selector -> itself, the only server if there is just one, all servers
        self._choices: dict[int, tuple[Selector, Server | None, list[Server]]] = {}
        self._queue: WaitQueue[TopologyDescription] = WaitQueue()

    def select(
        self,
        topology: Selectable,
        selector: Selector,
        operation: Asking,
        deadline: float | None,
        deprioritized: frozenset[Address],
    ) -> Server:
        """The server for an operation, waiting for one if there is none.

        :param topology: to select from.
        :param selector: a read preference, or ``WRITABLE``.
        :param deadline: on the clock of ``gmongo._clock``, beside ``serverSelectionTimeoutMS``.
        :param deprioritized: servers to pass over if there are others.
        :raises ServerSelectionTimeoutError: none was found in time.
        :raises ConfigurationError: the servers are too old or too new.
        """
        if topology.hub is not get_hub():
            topology.open()
        kept = None if deprioritized else self._choices.get(id(selector))
        if kept is None or self._is_logged():
            asked = Asked(selector, operation.name, operation.operation_id)
            return self._select_anew(topology, asked, deadline, deprioritized)
        return kept[1] or less_busy_of_two(kept[2])

    def _select_anew(
        self, topology: Selectable, asked: Asked, deadline: float | None, deprioritized: frozenset[Address]
    ) -> Server:
        """Select with all there is to it, when no choice is remembered or selections are logged."""
        log = self._events if self._is_logged() else None
        if log:
            log.started(asked, topology.description)
        servers = self._suitable(topology, asked.selector, deprioritized)
        if not servers:
            servers = self._wait_for_suitable(topology, asked, deadline, deprioritized)
        server = servers[0] if len(servers) == 1 else less_busy_of_two(servers)
        if log:
            log.succeeded(asked, topology.description, server.address)
        return server

    def server_at(self, topology: Selectable, address: Address, deadline: float | None, wait: bool) -> Server:
        """The server at `address`; the parameters are those of ``Topology.server_at``."""

        def look() -> Server | None:
            server = topology.servers.get(address)
            if server is None:
                raise AutoReconnect(f"server {address_text(address)} is no longer part of the topology")
            description = topology.description.get(address)
            is_known = description is not None and description.is_server_type_known
            return server if is_known or not wait else None

        def complaint() -> str:
            return f"server {address_text(address)}, which has the cursor or the transaction, is not known now"

        return look() or self._wait(topology, look, self._end(deadline), complaint)

    @property
    def waiting(self) -> int:
        """How many greenlets wait for a server."""
        return len(self._queue.waiters)

    def waiters(self) -> list[Waiter[TopologyDescription]]:
        """The waiters for a server, the longest wait first."""
        return list(self._queue.waiters)

    def forget(self) -> None:
        """Forget the choices, since the description has changed. Does not switch."""
        self._choices.clear()

    def wake(self, description: TopologyDescription) -> None:
        """Have all waiters look again, in order of arrival. Does not switch."""
        self._queue.hand_to_all(description)

    def fail(self, make_error: Callable[[], Exception]) -> None:
        """End all waits with an error. Does not switch.

        :param make_error: makes an error for each waiter.
        """
        self._choices.clear()
        self._queue.evict(self._queue.detach(), make_error)

    def _suitable(self, topology: Selectable, selector: Selector, deprioritized: frozenset[Address]) -> list[Server]:
        """The servers among which one is chosen; remembered for as long as the description stays."""
        topology.description.check_compatible()
        custom = self._settings.server_selector
        found = topology.description.apply_selector(selector, None, custom, deprioritized)
        servers = [topology.servers[server.address] for server in found if server.address in topology.servers]
        if servers and not deprioritized and custom is None:
            if len(self._choices) >= _CHOICES_KEPT:
                self._choices.clear()
            self._choices[id(selector)] = selector, servers[0] if len(servers) == 1 else None, servers
        return servers

    def _wait_for_suitable(
        self, topology: Selectable, asked: Asked, deadline: float | None, deprioritized: frozenset[Address]
    ) -> list[Server]:
        log = self._events if self._is_logged() else None
        end = self._end(deadline)
        self._events.waiting(asked, topology.description, end - _clock.monotonic())
        try:
            return self._wait(
                topology,
                lambda: self._suitable(topology, asked.selector, deprioritized),
                end,
                lambda: _complaint(topology.description, asked.selector, _checks_in_progress(topology)),
                asked.operation,
            )
        except Exception as error:
            if log:
                log.failed(asked, topology.description, error)
            raise

    def _wait(
        self,
        topology: Selectable,
        look: Callable[[], Found | None],
        end: float,
        complaint: Callable[[], str],
        operation: str | None = None,
    ) -> Found:
        """Wait for changes until there is what is looked for. Every change wakes all waiters, in order.

        A waiter keeps its place in the queue until then: the next change may come when some waiters have looked after
        this one and others have not. If the first queued up anew, the others would overtake them.

        :param look: finds it, or something false.
        :param end: when the wait is over.
        :param complaint: what is missing then, in the words of a person.
        :param operation: its name, for people.
        """
        waiter, limit = self._queue.join(operation), end - _clock.monotonic()
        try:
            while True:
                waiter.item = None  # before the look, so that no change is missed
                found = look()
                if found:
                    return found
                left = end - _clock.monotonic()
                if left <= 0:  # A change in the pass of the loop in which the limit ends keeps the timer from raising.
                    raise self._timed_out(topology, complaint(), limit, end)
                topology.request_checks()
                waiter.sleep(left, lambda: self._timed_out(topology, complaint(), limit, end))
        finally:
            self._queue.leave(waiter)

    def _end(self, deadline: float | None) -> float:
        """Until when a server is waited for, on the clock of :mod:`gmongo._clock`."""
        end = _clock.monotonic() + self._settings.server_selection_timeout
        return end if deadline is None else min(end, deadline)

    def _timed_out(self, topology: Selectable, complaint: str, limit: float, end: float) -> ServerSelectionTimeoutError:
        """The error for a wait of `limit` seconds until `end`."""
        timeout, description = self._settings.server_selection_timeout, topology.description
        if limit < timeout - _NEGLIGIBLE:
            timeout = max(0.0, round(limit, 3))
        option = f" of {limit_text(end)}" if isinstance(end, Seconds) else " (serverSelectionTimeoutMS)"
        # A server without TLS takes the first bytes of TLS for those of a message, and waits for the rest.
        is_connecting = topology.servers and not description.has_known_servers
        tls = ", connecting with TLS" if self._settings.connection.tls and is_connecting else ""
        return ServerSelectionTimeoutError(
            f"{complaint}, Timeout: {timeout:g}s{option}{tls}, Topology Description: {description!r}"
        )


def less_busy_of_two(servers: list[Server]) -> Server:
    """Of two servers taken at random, the one with fewer operations in progress."""
    first, second = _chance.sample(servers, 2)
    return first if first.pool.operation_count <= second.pool.operation_count else second


def _checks_in_progress(topology: Selectable) -> list[str]:
    """Return the stage of the first check of each server, with its age."""
    progress = [
        server.monitor.progress
        for address, server in topology.servers.items()
        if server.monitor is not None and (known := topology.description.get(address)) and known.error is None
    ]
    return [text for text in progress if text is not None]


def _complaint(topology: TopologyDescription, selector: Selector, checks: Sequence[str] = ()) -> str:
    """What is missing, in the words of a person.

    :param checks: those in progress of servers of which nothing is known.
    """
    servers = topology.server_descriptions()
    errors = [server.error for server in servers.values() if server.error]
    name = topology.replica_set_name
    if topology.settings.resolve is not None:
        names = ", ".join(address_text(seed) for seed in topology.settings.seeds)
        return f"DNS has not answered the queries for the SRV and TXT records of {names} yet"
    if not servers and name is not None:
        seeds = ", ".join(map(address_text, topology.settings.seeds))
        return (
            f"No replica set members available for replica set name {name!r}: {seeds} answered, but not as a member of "
            "it; look at the option replicaSet"
        )
    if not topology.has_known_servers:
        found = ", ".join([*map(str, errors), *checks])
        if not errors:
            found = f"No servers found yet ({found})" if found else "No servers found yet"
        if name is not None and errors and servers.keys().isdisjoint(topology.settings.seeds):
            found += " (addresses of the replica set's configuration, not those that the client was given)"
        return found
    if isinstance(errors and errors[0], ConfigurationError):
        return str(errors[0])
    if selector.mode == WRITABLE.mode:
        return "No primary available for writes" if selector is WRITABLE else "No primary available"
    return f"No replica set members match selector {selector!r}"
