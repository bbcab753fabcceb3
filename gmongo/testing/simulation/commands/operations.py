"""The commands ``currentOp``, ``killOp`` and ``serverStatus``, and the stage ``$currentOp``."""

from __future__ import annotations

import os
from typing import Any

from bson import Int64

from gmongo.testing import clock
from gmongo.testing.command import error
from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.operations import describe
from gmongo.testing.store.matching import compile_filter
from gmongo.testing.store.values import long_of

# The fields of the command `currentOp` that are options. The other fields are conditions that select operations.
_NOT_CONDITIONS = frozenset({
    "currentOp", "comment", "lsid", "maxTimeMS", "apiVersion", "apiStrict", "apiDeprecationErrors", "readConcern",
    "writeConcern", "txnNumber"
})  # fmt: skip
# The options of the stage `$currentOp`.
_STAGE_OPTIONS = frozenset({
    "allUsers", "backtrace", "idleConnections", "idleCursors", "idleSessions", "localOps", "targetAllNodes",
    "truncateOps"
})  # fmt: skip
# The number of connections that a member would accept, for `serverStatus`. The simulation enforces no limit.
_MOST_CONNECTIONS = 10_000


def _current_op(call: Call) -> dict[str, Any]:
    everything = bool(call.body.get("$all"))
    conditions = {
        name: value
        for name, value in call.body.items()
        if name not in _NOT_CONDITIONS and (not name.startswith("$") or name in ("$or", "$and", "$nor", "$expr"))
    }
    match = compile_filter({} if everything else conditions)
    return {"inprog": [operation for operation in _operations(call, everything) if match(operation)]}


def _operations(call: Call, with_idle: bool) -> list[dict[str, Any]]:
    """Return a document for each running operation and, if `with_idle` is True, for each idle connection."""
    operations = [operation.description() for operation in call.member.operations]
    busy = {operation["connectionId"] for operation in operations}
    if with_idle:
        idle = [connection for connection in call.member.connections.values() if connection.number not in busy]
        operations += [describe(connection, active=False) for connection in idle]
    return operations


def replace_current_op_stage(call: Call) -> None:
    """Replace a ``$currentOp`` that is the first stage of an aggregation by a ``$documents`` with the operations.

    Do nothing for other commands, and for aggregations of other databases than ``admin``.
    """
    pipeline = call.body.get("pipeline")
    if call.name != "aggregate" or call.request.database != "admin" or call.body["aggregate"] != 1:
        return
    first = pipeline[0] if isinstance(pipeline, list) and pipeline else None
    options = first.get("$currentOp") if isinstance(first, dict) and len(first) == 1 else None
    if not isinstance(pipeline, list) or not isinstance(options, dict):
        return
    for name, value in options.items():
        if name not in _STAGE_OPTIONS:
            raise error(40415, f"BSON field '$currentOp.{name}' is an unknown field.")
        if not isinstance(value, bool):
            raise error(9, f"The '{name}' parameter of the $currentOp stage must be a boolean value")
    operations = _operations(call, options.get("idleConnections", False))
    call.request.body = {**call.body, "pipeline": [{"$documents": {"$literal": operations}}, *pipeline[1:]]}


def _kill_op(call: Call) -> dict[str, Any]:
    number = long_of(call.body["op"])
    if not -(2**31) <= number < 2**31:
        raise error(26823, f"invalid op : {number}. Op ID cannot be represented with 32 bits")
    call.member.operations.kill(number)
    return {"info": "attempting to kill op"}


def _server_status(call: Call) -> dict[str, Any]:
    sections = {**_sections(call), **call.cluster.store.status()}
    shown = {name: section for name, section in sections.items() if call.body.get(name, 1)}
    return {**_process_fields(call), **shown}


def _process_fields(call: Call) -> dict[str, Any]:
    member, up = call.member, call.member.uptime
    return {
        "host": member.address,
        "version": call.cluster.version_text,
        "process": "mongos" if call.cluster.topology.describe(member).get("msg") == "isdbgrid" else "mongod",
        "pid": Int64(os.getpid()),
        "uptime": up,
        "uptimeMillis": Int64(up * 1000),
        "uptimeEstimate": Int64(up),
        "localTime": clock.utc_now(),
    }


def _sections(call: Call) -> dict[str, Any]:
    member, hello_fields = call.member, call.cluster.topology.describe(call.member)
    open_now = len(member.connections)
    return {
        "connections": {
            "current": open_now,
            "available": _MOST_CONNECTIONS - open_now,
            "totalCreated": member.created,
            "active": sum(1 for _ in member.operations),
        },
        "ingressRequestRateLimiter": {"rejectedAdmissions": call.cluster.limits.rejected},
        "storageEngine": {"name": "gmongo.testing"},
        **({"repl": hello_fields} if "setName" in hello_fields else {}),
    }


COMMANDS = {"currentOp": _current_op, "killOp": _kill_op, "serverStatus": _server_status}
