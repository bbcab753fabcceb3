"""Execute a command on a member: check the command, apply fail points, call the handler, and complete the reply."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from bson import Binary, Int64

from gmongo.testing.command import CommandError, error
from gmongo.testing.simulation import fail_points, stable_api
from gmongo.testing.simulation.access_rules import check_access, check_generic_fields
from gmongo.testing.simulation.call import Call, CloseConnection
from gmongo.testing.simulation.cluster import Cluster
from gmongo.testing.simulation.commands import administration, diagnostics, operations, users
from gmongo.testing.simulation.commands.operations import Operation
from gmongo.testing.simulation.error_labels import add_labels
from gmongo.testing.simulation.hello import record_app_name, reply_to_hello
from gmongo.testing.simulation.sleeping import execute_sleep
from gmongo.testing.simulation.versions import STREAMS_AND_LABELS_VERSION
from gmongo.testing.simulation.write_concern import (
    CODES_THAT_AWAIT_WRITE_CONCERN,
    check_write_concern,
    satisfy_write_concern,
)
from gmongo.testing.store import fields
from gmongo.testing.store.commands import COMMANDS as STORE_COMMANDS
from gmongo.testing.unsupported import not_supported

_log = logging.getLogger("gmongo.testing")
_NO_SIGNATURE = {"hash": Binary(bytes(20)), "keyId": Int64(0)}
# The commands whose fields a server checks after fail points. For all other commands, a server checks
# the fields before fail points.
_COMMANDS_CHECKED_AFTER_FAIL_POINTS = ("saslStart", "saslContinue")


def list_command_names(cluster: Cluster) -> set[str]:
    """Return the names of all commands that a deployment supports."""
    return {*_COMMANDS, *cluster.topology.commands, *STORE_COMMANDS}


def _list_commands(call: Call) -> dict[str, Any]:
    return {"commands": {name: {"help": ""} for name in sorted(list_command_names(call.cluster))}}


_COMMANDS: dict[str, Callable[[Call], dict[str, Any]]] = {
    "hello": reply_to_hello, "isMaster": reply_to_hello, "ismaster": reply_to_hello,
    "listCommands": _list_commands,
    **administration.COMMANDS, **diagnostics.COMMANDS, **operations.COMMANDS, **users.COMMANDS
}  # fmt: skip


def answer(call: Call) -> dict[str, Any]:
    """Execute a command, and return the reply. If the command fails, return an error reply."""
    try:
        with call.member.operations.register(call) as operation:
            _check_command(call)
            active_fail_point = call.member.fail_points.find(call)
            if active_fail_point is not None:
                fail_points.apply_before(call, *active_fail_point)
            if call.name in _COMMANDS_CHECKED_AFTER_FAIL_POINTS:
                fields.check_command(call.request, call.cluster.version)
            reply = _execute(call, operation)
            if active_fail_point is not None:
                fail_points.apply_after(call, *active_fail_point, reply)
    except CommandError as problem:
        reply = problem.reply()
    except (CloseConnection, OSError):
        raise
    except Exception as problem:
        _log.exception("the simulated deployment cannot execute %r", call.body)
        reply = error(1, f"the simulated deployment cannot execute {call.name}: {problem!r}").reply()
    return _add_common_fields(call, reply)


def _check_command(call: Call) -> None:
    record_app_name(call)  # before the fail points apply, because a fail point can match the name
    call.cluster.limits.admit_request(call)
    is_known_command = _find_handler(call) is not None or call.cluster.store.supports(call.name)
    if is_known_command:
        fields.check_duplicate_and_stable_api_fields(call.request, call.cluster.version)
    stable_api.check_stable_api(call)
    if is_known_command and call.name not in _COMMANDS_CHECKED_AFTER_FAIL_POINTS:
        fields.check_command(call.request, call.cluster.version)
        check_generic_fields(call)
    check_access(call)


def _find_handler(call: Call) -> Callable[[Call], dict[str, Any]] | None:
    return _COMMANDS.get(call.name) or call.cluster.topology.commands.get(call.name)


def _execute(call: Call, operation: Operation) -> dict[str, Any]:
    handler = _find_handler(call)
    if handler is not None:
        if call.request.in_transaction:
            raise error(263, "This command is not supported in transactions")
        return handler(call)
    if not call.cluster.store.supports(call.name):
        if call.name in fields.TABLE:
            raise not_supported("an unimplemented administrative command", call.name)
        raise error(59, f"no such command: '{call.name}'")
    call.cluster.topology.admit(call)
    check_write_concern(call)
    execute_sleep(call, operation)
    operations.replace_current_op_stage(call)
    call.cluster.store.run_due_work(call.member.parameters)
    try:
        reply = call.cluster.store.execute(call.request)
    except CommandError as failure:
        if failure.code not in CODES_THAT_AWAIT_WRITE_CONCERN:
            raise
        reply = failure.reply()
    call.cluster.record_change_stream(call.body, reply)
    satisfy_write_concern(call, reply)
    return reply


def _add_common_fields(call: Call, reply: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the reply with the fields that any reply may have, such as ``ok`` and the cluster time."""
    reply = dict(reply)
    reply.setdefault("ok", 1.0)
    supports_retryable_label = call.cluster.version >= STREAMS_AND_LABELS_VERSION
    add_labels(call.request, reply, supports_retryable_label)
    if not reply["ok"]:
        reply = {name: reply[name] for name in ("errorLabels", "writeConcernError") if name in reply} | reply
    topology = call.cluster.topology
    if topology.has_cluster_time:
        logical_time = call.cluster.store.now()
        reply |= {
            "$clusterTime": {"clusterTime": logical_time, "signature": _NO_SIGNATURE},
            "operationTime": logical_time,
            **reply,
        }
    topology.add_fields(call, reply)
    return reply
