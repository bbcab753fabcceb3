"""The running operations of a member, for ``currentOp`` and ``killOp``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bson.int64 import Int64
from gevent.event import Event

from gmongo.testing import clock

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.connection import Connection

_KINDS = {"insert": "insert", "update": "update", "delete": "remove", "find": "query", "getMore": "getmore"}


class Operation:
    """A running command."""

    def __init__(self, number: int, call: Call) -> None:
        self.number = number
        self.over = Event()  # is set if the operation is killed, or its connection is closed
        self._killed = False
        self._call = call
        self._since, self._started = clock.monotonic(), clock.utc_now()
        call.connection.closed_by_member.rawlink(self._end)

    def _end(self, _event: Event) -> None:
        self.over.set()

    def close(self) -> None:
        """Stop waiting for the end of the connection. Call the method after the command has ended."""
        self._call.connection.closed_by_member.unlink(self._end)

    def kill(self) -> None:
        """Mark the operation as killed, and wake the operation. The operation ends at its next check of the mark."""
        self._killed = True
        self.over.set()
        self._call.cluster.store.wake()

    def is_killed(self) -> bool:
        return self._killed

    def description(self) -> dict[str, Any]:
        """Return the document that describes the operation in the reply to ``currentOp``."""
        call, elapsed = self._call, clock.monotonic() - self._since
        target = call.body.get(call.name)
        name = target if isinstance(target, str) else "$cmd.aggregate" if call.name == "aggregate" else "$cmd"
        lsid = call.body.get("lsid")
        return {
            **describe(call.connection, active=True),
            "currentOpTime": self._started.isoformat(timespec="milliseconds"),
            **({"lsid": lsid} if lsid else {}),
            "opid": self.number,
            "secs_running": Int64(elapsed),
            "microsecs_running": Int64(elapsed * 1_000_000),
            "op": _KINDS.get(call.name, "command"),
            "ns": f"{call.request.database}.{name}",
            "command": call.body,
            "numYields": 0,
            "locks": {},
            "waitingForLock": False,
        }


def describe(connection: Connection, *, active: bool) -> dict[str, Any]:
    """Return the fields that describe a connection in the reply to ``currentOp``."""
    fields: dict[str, Any] = {
        "type": "op",
        "host": connection.member.address,
        "desc": f"conn{connection.number}",
        "connectionId": connection.number,
        "client": f"{connection.member.host}:{connection.peer_port}",
    }
    if connection.app_name is not None:
        fields["appName"] = connection.app_name
    return {**fields, "active": active}


class Operations:
    """The running operations of a member."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._running: dict[int, Operation] = {}

    def __iter__(self) -> Iterator[Operation]:
        return iter(list(self._running.values()))

    @contextmanager
    def running(self, call: Call) -> Iterator[Operation]:
        """Register a command as a running operation until the end of the ``with`` block."""
        operation = Operation(next(self._numbers), call)
        self._running[operation.number] = operation
        call.request.killed = operation.is_killed
        try:
            yield operation
        finally:
            del self._running[operation.number]
            operation.close()

    def kill(self, number: int) -> None:
        """Kill the running operation with this number. Do nothing if there is no such operation."""
        operation = self._running.get(number)
        if operation is not None:
            operation.kill()
