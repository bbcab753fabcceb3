"""The state of the clients of this process, read from what they hold anyway."""

from __future__ import annotations

import os
from typing import TypeGuard

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo._fork import forkables
from gmongo._telemetry.slow import SlowOperations
from gmongo._telemetry.text import exception_of
from gmongo._version import __version__
from gmongo.cmap.holders import greenlet_name, holders
from gmongo.cmap.pool import Pool
from gmongo.execution.executor import Executor
from gmongo.sdam.history import Happening
from gmongo.sdam.server_description import ServerDescription
from gmongo.status.shape import picked
from gmongo.wire.address import address_text
from gmongo.wire.message import next_request_id

_SHOWN = 200  # of each kind: a page is for people


def process_state(query_text: bool = False) -> DocumentDict:
    """What the clients of this process are and do, as values that JSON has. Nothing is sent, and nothing is waited for.
    Any thread may ask.

    A mapping with ``process`` (its number), ``version`` (of gmongo), ``requests`` (how many it has sent, checks of
    servers included; each look counts as one) and ``clients``: for each client that is not
    closed, ``number`` (in the order in which they were made), ``application`` (its ``appName``), ``topology``,
    ``servers`` with their pools, ``operations`` (what runs, and what it waits for), ``slow`` (operations, with
    ``slow_operation_ms``), ``history`` (checks that failed, elections) and ``retries``. Times are in milliseconds.

    :param query_text: whether the text of slow operations is in it, which holds the users' data; False by default.
        There is such text if ``query_text_max_length`` of the client's ``tracing`` asks for it.
    """
    executors = sorted((each for each in forkables() if _is_shown(each)), key=lambda each: each.number)
    clients = [_client(each) for each in executors]
    # A request has a number, one more than the one before. To take the next is to know how many there were.
    state = {"process": os.getpid(), "version": __version__, "requests": next_request_id(), "clients": clients}
    return picked(state, query_text)


def _is_shown(each: object) -> TypeGuard[Executor]:
    """Whether it is the executor of a client that is open, and not one of the driver's own that sends plaintext."""
    return isinstance(each, Executor) and not each.topology.closed and not each.topology.settings.silent


def _client(executor: Executor) -> DocumentDict:
    topology, overload = executor.topology, executor.overload
    description = topology.description
    application = topology.settings.connection.metadata.get("application") or {}
    happened = list(topology.history.happenings)
    return {
        "number": executor.number,
        "application": application.get("name", ""),
        "topology": description.topology_type_name,
        "replicaSet": description.replica_set_name or "",
        "servers": [
            _server(each, server.pool if (server := topology.servers.get(address)) else None)
            for address, each in sorted(description.server_descriptions().items(), key=lambda item: str(item[0]))
        ],
        "operations": _operations(executor)[:_SHOWN],
        "slow": [_slow(each) for each in _slow_operations(executor)],
        "history": [_happening(each) for each in reversed(happened)],
        "retries": {**overload.stats(), "others": overload.others, "errors": overload.errors},
    }


def _server(description: ServerDescription, pool: Pool | None) -> DocumentDict:
    round_trip = description.round_trip_time
    return {
        "address": address_text(description.address),
        "type": description.server_type_name,
        "roundTripMS": None if round_trip is None else _milliseconds(round_trip),
        "minRoundTripMS": _milliseconds(description.min_round_trip_time),
        "error": _reason(description.error),
        "pool": None if pool is None else _pool(pool),
    }


def _pool(pool: Pool) -> DocumentDict:
    stats = pool.stats()
    oldest = stats["oldest_wait"]
    return {
        **{name: stats[name] for name in ("state", "generation", "total", "available", "pending", "waiting")},
        "inUse": stats["in_use"],
        "inUseBy": stats["in_use_by"],
        "maxPoolSize": pool.options.max_pool_size,
        "minPoolSize": pool.options.min_pool_size,
        "oldestWaitMS": None if oldest is None else _milliseconds(oldest),
    }


def _operations(executor: Executor) -> list[DocumentDict]:
    """What runs now: who waits for a server, for a connection, for a reply, or before another try."""
    topology, now = executor.topology, _clock.monotonic()
    running = [
        _running("server selection", waiter.purpose, "", greenlet_name(waiter.greenlet), now - waiter.since)
        for waiter in topology.selector.waiters()
    ]
    for pool in topology.pools():
        where = address_text(pool.address)
        running += [
            _running("connection check-out", None, where, greenlet_name(waiter.greenlet), now - waiter.since)
            for waiter in list(pool.machine.queue.waiters)
        ]
        running += [
            _running("connecting", None, where, each["greenlet"], each["seconds"], each["connection"])
            for each in holders(pool.machine.pending)
        ]
        running += [
            _running("on a connection", each["operation"], where, each["greenlet"], each["seconds"], each["connection"])
            for each in holders(pool.machine.in_use)
        ]
    for waiting, (operation, since) in executor.backing_off.copy().items():
        running.append(_running("back-off", operation, "", greenlet_name(waiting), now - since))
    return sorted(running, key=lambda each: -float(each["sinceMS"]))


def _running(
    phase: str, operation: str | None, server: str, greenlet: str, seconds: float, connection: int | None = None
) -> DocumentDict:
    return {
        "phase": phase,
        "operation": operation or "",
        "server": server,
        "greenlet": greenlet,
        "sinceMS": _milliseconds(seconds),
        "connection": connection,
    }


def _slow_operations(executor: Executor) -> list[DocumentDict]:
    observers = () if executor.observers is None else executor.observers.all
    return [found for each in observers if isinstance(each, SlowOperations) for found in reversed(list(each.last))]


def _slow(found: DocumentDict) -> DocumentDict:
    return {**found, "agoMS": _ago(found["moment"])}


def _happening(happening: Happening) -> DocumentDict:
    return {
        "what": happening.kind,
        "server": address_text(happening.address),
        "error": _reason(happening.error),
        "times": happening.times,
        "agoMS": _ago(happening.moment),
        "sinceMS": _ago(happening.first),
    }


def _reason(error: BaseException | None) -> str:
    """An error in words without data of the application's."""
    return "" if error is None else exception_of(error, 0)["exception.message"]


def _ago(moment: float) -> float:
    return _milliseconds(_clock.monotonic() - moment)


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)
