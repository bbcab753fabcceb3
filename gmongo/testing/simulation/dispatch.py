"""The execution of a command by a member: checks, fail points, handlers, and common fields of replies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from bson import Binary, Int64

from gmongo.testing.command import CommandError
from gmongo.testing.simulation import fail_points, generic_fields, stable_api
from gmongo.testing.simulation.authentication.access import check_access
from gmongo.testing.simulation.call import Call, CloseConnection
from gmongo.testing.simulation.commands.operations import show_operations
from gmongo.testing.simulation.commands.table import COMMANDS
from gmongo.testing.simulation.error_codes import error
from gmongo.testing.simulation.error_labels import add_labels
from gmongo.testing.simulation.hello import note_app_name
from gmongo.testing.simulation.operations import Operation
from gmongo.testing.simulation.sleeping import execute_sleep
from gmongo.testing.simulation.versions import STREAMS_AND_LABELS
from gmongo.testing.simulation.write_concern import AFTER_WHICH_WRITES_WAIT, check_write_concern, satisfy_write_concern
from gmongo.testing.store import fields
from gmongo.testing.unsupported import not_supported

_log = logging.getLogger("gmongo.testing")
_NO_SIGNATURE = {"hash": Binary(bytes(20)), "keyId": Int64(0)}


# A server parses these commands after the fail points.
_PARSED_LATE = ("saslStart", "saslContinue")


def answer(call: Call) -> dict[str, Any]:
    """Return the reply to a command. Errors are replies, too.

    :raises CloseConnection: the connection must be closed without a reply.
    """
    with call.member.operations.of(call) as operation:
        reply = _answer(call, operation)
    call.member.operations.note(call, reply)
    return reply


def _answer(call: Call, operation: Operation) -> dict[str, Any]:
    try:
        _check(call)
        met = call.member.fail_points.find(call)
        if met is not None:
            fail_points.act_before(call, *met)
        if call.name in _PARSED_LATE:
            fields.check(call.request, call.cluster.version)
        reply = _execute(call, operation)
        if met is not None:
            fail_points.act_after(call, *met, reply)
    except CommandError as problem:
        reply = problem.reply()
    except (CloseConnection, OSError):
        raise
    except Exception as problem:
        _log.exception("the simulated deployment cannot execute %r", call.body)
        reply = error(1, f"the simulated deployment cannot execute {call.name}: {problem!r}").reply()
    return _decorate(call, reply)


def _check(call: Call) -> None:
    note_app_name(call)
    call.cluster.limits.admit_request(call)
    known = _handler(call) is not None or call.cluster.store.handles(call.name)
    if known:
        fields.check_first(call.request, call.cluster.version)
    stable_api.check(call)
    if known and call.name not in _PARSED_LATE:
        fields.check(call.request, call.cluster.version)
        generic_fields.check(call)
    check_access(call)


def _handler(call: Call) -> Callable[[Call], dict[str, Any]] | None:
    return COMMANDS.get(call.name) or call.cluster.topology.commands.get(call.name)


def _execute(call: Call, operation: Operation) -> dict[str, Any]:
    handler = _handler(call)
    if handler is not None:
        if call.request.in_transaction:
            raise error(263, "This command is not supported in transactions")
        return handler(call)
    if not call.cluster.store.handles(call.name):
        if call.name in fields.TABLE:
            raise not_supported("another command", call.name)
        raise error(59, f"no such command: '{call.name}'")
    call.cluster.topology.admit(call)
    check_write_concern(call)
    execute_sleep(call, operation)
    show_operations(call)
    call.cluster.store.run_due_work(call.member.parameters)
    try:
        reply = call.cluster.store.execute(call.request)
    except CommandError as failure:
        if failure.code not in AFTER_WHICH_WRITES_WAIT:
            raise
        reply = failure.reply()
    call.cluster.note_change_stream(call.body, reply)
    satisfy_write_concern(call, reply)
    return reply


def _decorate(call: Call, reply: dict[str, Any]) -> dict[str, Any]:
    """Add the common fields of replies."""
    reply = dict(reply)
    reply.setdefault("ok", 1.0)
    modern = call.cluster.version >= STREAMS_AND_LABELS
    add_labels(call.request, reply, modern)
    if not reply["ok"]:
        reply = {name: reply[name] for name in ("errorLabels", "writeConcernError") if name in reply} | reply
    topology = call.cluster.topology
    if topology.gossips:
        now = call.cluster.store.now()
        reply |= {"$clusterTime": {"clusterTime": now, "signature": _NO_SIGNATURE}, "operationTime": now, **reply}
    topology.decorate(call, reply)
    return reply
