"""Running operations, the commands ``currentOp``, ``killOp`` and ``serverStatus``, and the stage ``$currentOp``."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bson import Int64
from gevent.event import Event

from gmongo.testing import clock
from gmongo.testing.command import error
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.values import to_long

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.connection import Connection

_OPERATION_TYPES = {"insert": "insert", "update": "update", "delete": "remove", "find": "query", "getMore": "getmore"}
# The fields of the command `currentOp` that are options. The other fields, except fields such as
# `$db`, are conditions that select operations.
_OPTION_FIELDS = frozenset({
    "currentOp", "comment", "lsid", "maxTimeMS", "apiVersion", "apiStrict", "apiDeprecationErrors", "readConcern",
    "writeConcern", "txnNumber"
})  # fmt: skip
# The options of the stage `$currentOp`.
_STAGE_OPTIONS = frozenset({
    "allUsers", "backtrace", "idleConnections", "idleCursors", "idleSessions", "localOps", "targetAllNodes",
    "truncateOps"
})  # fmt: skip
# The limit of connections in the reply to `serverStatus`. The simulation enforces no limit.
_MAX_CONNECTIONS = 10_000


class Operation:
    """A running command."""

    def __init__(self, number: int, call: Call) -> None:
        self.number = number
        self.interrupted = Event()  # is set if the operation is killed, or the member closes the connection
        self._killed = False
        self._call = call
        self._start_time, self._start_date = clock.monotonic(), clock.utc_now()
        call.connection.closed_by_member.rawlink(self._interrupt)

    def _interrupt(self, _event: Event) -> None:
        self.interrupted.set()

    def close(self) -> None:
        """Remove the callback for the end of the connection. Call the method after the command has ended."""
        self._call.connection.closed_by_member.unlink(self._interrupt)

    def kill(self) -> None:
        """Mark the operation as killed, and wake the operation. The operation ends at its next check of the mark."""
        self._killed = True
        self.interrupted.set()
        self._call.cluster.store.wake()

    def is_killed(self) -> bool:
        return self._killed

    def describe(self) -> dict[str, Any]:
        """Return the document that describes the operation in the reply to ``currentOp``."""
        call, elapsed = self._call, clock.monotonic() - self._start_time
        target = call.body.get(call.name)
        name = target if isinstance(target, str) else "$cmd.aggregate" if call.name == "aggregate" else "$cmd"
        lsid = call.body.get("lsid")
        return {
            **_describe_connection(call.connection, active=True),
            "currentOpTime": self._start_date.isoformat(timespec="milliseconds"),
            **({"lsid": lsid} if lsid else {}),
            "opid": self.number,
            "secs_running": Int64(elapsed),
            "microsecs_running": Int64(elapsed * 1_000_000),
            "op": _OPERATION_TYPES.get(call.name, "command"),
            "ns": f"{call.request.database}.{name}",
            "command": call.body,
            "numYields": 0,
            "locks": {},
            "waitingForLock": False,
        }


def _describe_connection(connection: Connection, *, active: bool) -> dict[str, Any]:
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
    def register(self, call: Call) -> Iterator[Operation]:
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
        """Kill the running operation with this number. Do nothing if the operation does not exist."""
        operation = self._running.get(number)
        if operation is not None:
            operation.kill()


def _run_current_op(call: Call) -> dict[str, Any]:
    includes_all = bool(call.body.get("$all"))
    conditions = {
        name: value
        for name, value in call.body.items()
        if name not in _OPTION_FIELDS and (not name.startswith("$") or name in ("$or", "$and", "$nor", "$expr"))
    }
    match = compile_filter({} if includes_all else conditions)
    return {"inprog": [operation for operation in _list_operations(call, includes_all) if match(operation)]}


def _list_operations(call: Call, includes_idle: bool) -> list[dict[str, Any]]:
    """Return a document for each running operation and, if `includes_idle` is True, for each idle connection."""
    operations = [operation.describe() for operation in call.member.operations]
    busy_ids = {operation["connectionId"] for operation in operations}
    if includes_idle:
        idle = [connection for connection in call.member.connections.values() if connection.number not in busy_ids]
        operations += [_describe_connection(connection, active=False) for connection in idle]
    return operations


def replace_current_op_stage(call: Call) -> None:
    """If ``$currentOp`` is the first stage of an aggregation, replace the stage by ``$documents``.

    The stage ``$documents`` contains the operations. Do nothing outside the database ``admin``.
    """
    pipeline = call.body.get("pipeline")
    if call.name != "aggregate" or call.request.database != "admin" or call.body["aggregate"] != 1:
        return
    stage = pipeline[0] if isinstance(pipeline, list) and pipeline else None
    options = stage.get("$currentOp") if isinstance(stage, dict) and len(stage) == 1 else None
    if not isinstance(pipeline, list) or not isinstance(options, dict):
        return
    for name, value in options.items():
        if name not in _STAGE_OPTIONS:
            raise error(40415, f"BSON field '$currentOp.{name}' is an unknown field.")
        if not isinstance(value, bool):
            raise error(9, f"The '{name}' parameter of the $currentOp stage must be a boolean value")
    operations = _list_operations(call, options.get("idleConnections", False))
    call.request.body = {**call.body, "pipeline": [{"$documents": {"$literal": operations}}, *pipeline[1:]]}


def _kill_op(call: Call) -> dict[str, Any]:
    number = to_long(call.body["op"])
    if not -(2**31) <= number < 2**31:
        raise error(26823, f"invalid op : {number}. Op ID cannot be represented with 32 bits")
    call.member.operations.kill(number)
    return {"info": "attempting to kill op"}


def _get_server_status(call: Call) -> dict[str, Any]:
    sections = {**_create_sections(call), **call.cluster.store.describe_status()}
    shown_sections = {name: section for name, section in sections.items() if call.body.get(name, 1)}
    return {**_describe_process(call), **shown_sections}


def _describe_process(call: Call) -> dict[str, Any]:
    member, uptime = call.member, call.member.uptime
    return {
        "host": member.address,
        "version": call.cluster.version_text,
        "process": "mongos" if call.cluster.topology.describe(member).get("msg") == "isdbgrid" else "mongod",
        "pid": Int64(os.getpid()),
        "uptime": uptime,
        "uptimeMillis": Int64(uptime * 1000),
        "uptimeEstimate": Int64(uptime),
        "localTime": clock.utc_now(),
    }


def _create_sections(call: Call) -> dict[str, Any]:
    member, hello_fields = call.member, call.cluster.topology.describe(call.member)
    open_count = len(member.connections)
    return {
        "connections": {
            "current": open_count,
            "available": _MAX_CONNECTIONS - open_count,
            "totalCreated": member.created,
            "active": sum(1 for _ in member.operations),
        },
        "ingressRequestRateLimiter": {"rejectedAdmissions": call.cluster.limits.rejected_count},
        "storageEngine": {"name": "gmongo.testing"},
        **({"repl": hello_fields} if "setName" in hello_fields else {}),
    }


COMMANDS = {"currentOp": _run_current_op, "killOp": _kill_op, "serverStatus": _get_server_status}
