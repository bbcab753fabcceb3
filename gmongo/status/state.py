"""Functions that collect the state of the MongoDB clients in this process."""

from __future__ import annotations

import os
from typing import TypeGuard

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo._fork import list_forkables
from gmongo._telemetry.slow import SlowOperations, rounded_milliseconds
from gmongo._telemetry.text import error_attributes
from gmongo._version import __version__
from gmongo.cmap.checked_out_report import checked_out_report, greenlet_name
from gmongo.cmap.pool import Pool
from gmongo.execution.executor import Executor
from gmongo.sdam.event_log import SdamEvent
from gmongo.sdam.server_description import ServerDescription
from gmongo.status.schema import select_fields
from gmongo.wire.address import address_text
from gmongo.wire.message import next_request_id

_MAX_OPERATIONS = 200  # maximum number of operations in the state of a client


def process_state(query_text: bool = False) -> DocumentDict:
    """Return the state of the clients in this process as JSON values, without I/O. Any thread may call this function.

    The mapping has ``process`` (the process ID), ``version`` (of gmongo), ``requests`` and
    ``clients``. ``requests`` is the number of used request IDs: one for each request, heartbeat, bulk
    write and call of this function. An open client has these fields, with times in milliseconds:

    - ``number``: the number of the client, in the order in which the process created its clients.
    - ``application``: the option ``appName``.
    - ``topology`` and ``replicaSet``: the topology type and the name of the replica set.
    - ``servers``: the servers and their pools.
    - ``operations``: the operations in progress and their phases.
    - ``slow``: the latest slow operations, if the client has the option ``slow_operation_ms``.
    - ``history``: the latest failed heartbeats, elections, and added and removed servers.
    - ``retries``: the counters of retries.

    :param query_text: True to include the text of slow operations, which contains user data; False by
        default. Clients keep the text if ``tracing`` has a ``query_text_max_length``.
    """
    executors = sorted((each for each in list_forkables() if _is_shown(each)), key=lambda each: each.number)
    clients = [_client_state(each) for each in executors]
    # Request IDs are consecutive numbers from 1, so a new request ID is the number of used IDs.
    state = {"process": os.getpid(), "version": __version__, "requests": next_request_id(), "clients": clients}
    return select_fields(state, query_text)


def _is_shown(candidate: object) -> TypeGuard[Executor]:
    """Return True for the executor of an open client, unless the client is silent."""
    return isinstance(candidate, Executor) and not (candidate.topology.closed or candidate.topology.settings.silent)


def _client_state(executor: Executor) -> DocumentDict:
    topology, overload = executor.topology, executor.overload
    description = topology.description
    application = topology.settings.connection.metadata.get("application") or {}
    return {
        "number": executor.number,
        "application": application.get("name", ""),
        "topology": description.topology_type_name,
        "replicaSet": description.replica_set_name or "",
        "servers": [
            _server_state(each, server.pool if (server := topology.servers.get(address)) else None)
            for address, each in sorted(description.server_descriptions().items(), key=lambda item: str(item[0]))
        ],
        "operations": _list_operations(executor)[:_MAX_OPERATIONS],
        "slow": [
            {**entry, "agoMS": _milliseconds_since(entry["moment"])}
            for observer in (() if executor.observers is None else executor.observers.all)
            if isinstance(observer, SlowOperations)
            for entry in reversed(list(observer.entries))
        ],
        "history": [_event_state(each) for each in reversed(list(topology.history.events))],
        "retries": {**overload.stats(), "others": overload.other_retry_count, "errors": overload.failed_attempt_count},
    }


def _server_state(description: ServerDescription, pool: Pool | None) -> DocumentDict:
    round_trip = description.round_trip_time
    return {
        "address": address_text(description.address),
        "type": description.server_type_name,
        "roundTripMS": None if round_trip is None else rounded_milliseconds(round_trip),
        "minRoundTripMS": rounded_milliseconds(description.min_round_trip_time),
        "error": _error_text(description.error),
        "pool": None if pool is None else _pool_state(pool),
    }


def _pool_state(pool: Pool) -> DocumentDict:
    stats = pool.stats()
    oldest_wait = stats["oldest_wait"]
    return {
        **{name: stats[name] for name in ("state", "generation", "total", "available", "pending", "waiting")},
        "inUse": stats["in_use"],
        "inUseBy": stats["in_use_by"],
        "maxPoolSize": pool.options.max_pool_size,
        "minPoolSize": pool.options.min_pool_size,
        "oldestWaitMS": None if oldest_wait is None else rounded_milliseconds(oldest_wait),
    }


def _list_operations(executor: Executor) -> list[DocumentDict]:
    """Return the operations in progress, each with its phase."""
    topology, now = executor.topology, _clock.monotonic()
    operations = [
        _operation_state("server selection", waiter.operation, "", greenlet_name(waiter.greenlet), now - waiter.since)
        for waiter in topology.selector.waiters()
    ]
    for pool in topology.pools():
        label = address_text(pool.address)
        operations += [
            _operation_state("connection check-out", None, label, greenlet_name(waiter.greenlet), now - waiter.since)
            for waiter in list(pool.machine.queue.waiters)
        ]
        connections = pool.machine.pending, pool.machine.in_use
        for phase, group in zip(("connecting", "on a connection"), connections, strict=True):
            for each in checked_out_report(group):
                name = None if phase == "connecting" else each["operation"]
                usage = each["greenlet"], each["seconds"], each["connection"]
                operations.append(_operation_state(phase, name, label, *usage))
    for waiting_greenlet, (operation, since) in executor.backoffs.copy().items():
        operations.append(_operation_state("back-off", operation, "", greenlet_name(waiting_greenlet), now - since))
    return sorted(operations, key=lambda each: -float(each["sinceMS"]))


def _operation_state(
    phase: str, operation: str | None, server: str, greenlet: str, seconds: float, connection: int | None = None
) -> DocumentDict:
    return {
        "phase": phase,
        "operation": operation or "",
        "server": server,
        "greenlet": greenlet,
        "sinceMS": rounded_milliseconds(seconds),
        "connection": connection,
    }


def _event_state(event: SdamEvent) -> DocumentDict:
    return {
        "what": event.kind,
        "server": address_text(event.address),
        "error": _error_text(event.error),
        "times": event.event_count,
        "agoMS": _milliseconds_since(event.moment),
        "sinceMS": _milliseconds_since(event.first_moment),
    }


def _error_text(error: BaseException | None) -> str:
    """Return the text of an error without data of the application, or an empty string for None."""
    return "" if error is None else error_attributes(error, 0)["exception.message"]


def _milliseconds_since(moment: float) -> float:
    return rounded_milliseconds(_clock.monotonic() - moment)
