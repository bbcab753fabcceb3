"""Server selection, with a cache of suitable servers and a queue of waiting greenlets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from gevent import get_hub

from gmongo import _clock, _random
from gmongo.cmap.wait_queue import Waiter, WaitQueue
from gmongo.errors import AutoReconnect, ConfigurationError, ServerSelectionTimeoutError
from gmongo.events.sdam import SelectionEvents, SelectionRequest
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.sdam.server import Server
from gmongo.sdam.settings import TopologySettings
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.wire.address import Address, address_text
from gmongo.wire.timeout import Seconds, limit_text

Result = TypeVar("Result")

# Maximum number of cache entries, one for each selector. A new topology description clears the cache.
_MAX_CACHED_CHOICES = 64
_NEGLIGIBLE_SECONDS = 0.001  # time limits with a smaller difference count as equal


class Selectable(Protocol):
    """The attributes and methods of a topology that server selection uses."""

    description: TopologyDescription
    servers: dict[Address, Server]
    hub: object

    def open(self) -> None: ...

    def request_checks(self) -> None: ...


class SelectingOperation(Protocol):
    """The attributes of an operation that server selection uses."""

    @property
    def name(self) -> str: ...

    @property
    def operation_id(self) -> int | None: ...


class ServerSelector:
    """Server selection of a client. The topology is a parameter of the methods, to avoid a reference cycle."""

    def __init__(self, settings: TopologySettings) -> None:
        self._settings = settings
        self._events = SelectionEvents(silent=settings.silent)
        self._is_logged = self._events.is_enabled
        # id() of a selector -> (the selector, the only suitable server or None, all suitable servers)
        self._choices: dict[int, tuple[Selector, Server | None, list[Server]]] = {}
        self._queue: WaitQueue[TopologyDescription] = WaitQueue()

    def select(
        self,
        topology: Selectable,
        selector: Selector,
        operation: SelectingOperation,
        deadline: float | None,
        deprioritized: frozenset[Address],
    ) -> Server:
        """Select a server for an operation, and wait if no server is suitable.

        ``serverSelectionTimeoutMS`` and the `deadline` of the operation limit the wait. Select
        `deprioritized` servers only if no other server is suitable.
        """
        if topology.hub is not get_hub():
            topology.open()
        choice = None if deprioritized else self._choices.get(id(selector))
        if choice is None or self._is_logged():
            request = SelectionRequest(selector, operation.name, operation.operation_id)
            return self._select_uncached(topology, request, deadline, deprioritized)
        return choice[1] or choose_less_busy(choice[2])

    def _select_uncached(
        self, topology: Selectable, request: SelectionRequest, deadline: float | None, deprioritized: frozenset[Address]
    ) -> Server:
        """Select a server without reading the cache, and log the selection if logging is active."""
        log = self._events if self._is_logged() else None
        if log:
            log.started(request, topology.description)
        servers = self._find_suitable(topology, request.selector, deprioritized)
        if not servers:
            servers = self._wait_for_suitable(topology, request, deadline, deprioritized)
        server = servers[0] if len(servers) == 1 else choose_less_busy(servers)
        if log:
            log.succeeded(request, topology.description, server.address)
        return server

    def server_at(self, topology: Selectable, address: Address, deadline: float | None, wait: bool) -> Server:
        """Return the server at `address`, as :meth:`Topology.server_at` describes."""

        def find() -> Server | None:
            server = topology.servers.get(address)
            if server is None:
                raise AutoReconnect(f"server {address_text(address)} is no longer part of the topology")
            description = topology.description.get(address)
            is_known = description is not None and description.is_server_type_known
            return server if is_known or not wait else None

        def explain_failure() -> str:
            return f"server {address_text(address)}, which has the cursor or the transaction, is Unknown"

        return find() or self._wait_until_found(topology, find, self._compute_end_of_wait(deadline), explain_failure)

    @property
    def waiter_count(self) -> int:
        return len(self._queue.waiters)

    def waiters(self) -> list[Waiter[TopologyDescription]]:
        return list(self._queue.waiters)

    def clear_cache(self) -> None:
        self._choices.clear()

    def wake_waiters(self, description: TopologyDescription) -> None:
        """Let all waiters repeat their selection in order of arrival. Do not switch greenlets."""
        self._queue.hand_over_to_all(description)

    def fail_waiters(self, make_error: Callable[[], Exception]) -> None:
        """Let each waiting greenlet raise a new error. Do not switch greenlets."""
        self._choices.clear()
        self._queue.evict(make_error)

    def _find_suitable(
        self, topology: Selectable, selector: Selector, deprioritized: frozenset[Address]
    ) -> list[Server]:
        """Return, and possibly cache, the suitable servers in the latency window."""
        topology.description.check_compatible()
        custom_selector = self._settings.server_selector
        suitable = topology.description.apply_selector(selector, None, custom_selector, deprioritized)
        servers = [topology.servers[server.address] for server in suitable if server.address in topology.servers]
        if servers and not deprioritized and custom_selector is None:
            if len(self._choices) >= _MAX_CACHED_CHOICES:
                self._choices.clear()
            self._choices[id(selector)] = selector, servers[0] if len(servers) == 1 else None, servers
        return servers

    def _wait_for_suitable(
        self, topology: Selectable, request: SelectionRequest, deadline: float | None, deprioritized: frozenset[Address]
    ) -> list[Server]:
        log = self._events if self._is_logged() else None
        end = self._compute_end_of_wait(deadline)
        self._events.waiting(request, topology.description, end - _clock.monotonic())
        try:
            return self._wait_until_found(
                topology,
                lambda: self._find_suitable(topology, request.selector, deprioritized),
                end,
                lambda: _explain_failure(topology.description, request.selector, _describe_checks(topology)),
                request.operation_name,
            )
        except Exception as error:
            if log:
                log.failed(request, topology.description, error)
            raise

    def _wait_until_found(
        self,
        topology: Selectable,
        find: Callable[[], Result | None],
        end: float,
        explain_failure: Callable[[], str],
        operation: str | None = None,
    ) -> Result:
        """Wait until `find` succeeds, and return its result.

        Every change of the topology wakes all waiters in order. The waiter keeps its place in the queue until `find`
        succeeds. If each woken waiter rejoined the queue, the order of the waiters would change.
        """
        waiter, limit = self._queue.join(operation), end - _clock.monotonic()
        try:
            while True:
                # reset before `find`, so that a topology change during `find` ends the next sleep
                waiter.item = None
                result = find()
                if result:
                    return result
                seconds_left = end - _clock.monotonic()
                if seconds_left <= 0:
                    # `sleep` does not raise if the timeout coincides with a topology change.
                    raise self._make_timeout_error(topology, explain_failure(), limit, end)
                topology.request_checks()
                waiter.sleep(seconds_left, lambda: self._make_timeout_error(topology, explain_failure(), limit, end))
        finally:
            self._queue.leave(waiter)

    def _compute_end_of_wait(self, deadline: float | None) -> float:
        """Return the time at which server selection times out, measured by :mod:`gmongo._clock`."""
        end = _clock.monotonic() + self._settings.server_selection_timeout
        return end if deadline is None else min(end, deadline)

    def _make_timeout_error(
        self, topology: Selectable, reason: str, limit: float, end: float
    ) -> ServerSelectionTimeoutError:
        """Return the error for a wait of at most `limit` seconds, which ended at the time `end`."""
        timeout, description = self._settings.server_selection_timeout, topology.description
        if limit < timeout - _NEGLIGIBLE_SECONDS:
            timeout = max(0.0, round(limit, 3))
        option = f" of {limit_text(end)}" if isinstance(end, Seconds) else " (serverSelectionTimeoutMS)"
        # If a server has no TLS, it reads the TLS handshake as the start of a message, and waits.
        is_connecting = topology.servers and not description.has_known_servers
        tls_hint = ", connecting with TLS" if self._settings.connection.tls and is_connecting else ""
        return ServerSelectionTimeoutError(
            f"{reason}, Timeout: {timeout:g}s{option}{tls_hint}, Topology Description: {description!r}"
        )


def choose_less_busy(servers: list[Server]) -> Server:
    """Choose two random servers, and return the server with fewer operations in progress."""
    first, second = _random.sample(servers, 2)
    return first if first.pool.operation_count <= second.pool.operation_count else second


def _describe_checks(topology: Selectable) -> list[str]:
    """Return a text for each server whose first check is in progress: the stage and its duration."""
    return [
        progress
        for address, server in topology.servers.items()
        if (description := topology.description.get(address))
        and description.error is None
        and server.monitor is not None
        and (progress := server.monitor.progress)
    ]


def _explain_failure(topology: TopologyDescription, selector: Selector, checks: Sequence[str] = ()) -> str:
    """Return the reason why no server is suitable. `checks` are the texts from :func:`_describe_checks`."""
    servers = topology.server_descriptions()
    errors = [server.error for server in servers.values() if server.error]
    set_name = topology.replica_set_name
    if topology.settings.resolve is not None:
        names = ", ".join(address_text(seed) for seed in topology.settings.seeds)
        return f"DNS has not answered the queries for the SRV and TXT records of {names} yet"
    if not servers and set_name is not None:
        seeds = ", ".join(map(address_text, topology.settings.seeds))
        return (
            f"No replica set members available for replica set name {set_name!r}: {seeds} replied, but not as a member "
            "of this replica set; check the option replicaSet"
        )
    if not topology.has_known_servers:
        reason = ", ".join([*map(str, errors), *checks])
        if not errors:
            reason = f"No servers found yet ({reason})" if reason else "No servers found yet"
        if set_name is not None and errors and servers.keys().isdisjoint(topology.settings.seeds):
            reason += " (addresses from the replica set configuration; the options of the client have other addresses)"
        return reason
    if isinstance(errors and errors[0], ConfigurationError):
        return str(errors[0])
    if selector.mode == WRITABLE.mode:
        return "No primary available for writes" if selector is WRITABLE else "No primary available"
    return f"No replica set members match selector {selector!r}"
