"""The commands ``configureFailPoint`` and ``shutdown``, which cause faults."""

from __future__ import annotations

from typing import Any

from gmongo.testing.simulation.call import Call, CloseConnection
from gmongo.testing.simulation.error_codes import error


def _configure_fail_point(call: Call) -> dict[str, Any]:
    if not call.member.parameters["enableTestCommands"]:
        raise error(59, "no such command: 'configureFailPoint'")
    body = call.body
    data = body.get("data") or {}
    return {"count": call.member.fail_points.configure(body[call.name], body.get("mode"), data)}


def _shutdown(call: Call) -> dict[str, Any]:
    call.member.kill()
    raise CloseConnection


COMMANDS = {"configureFailPoint": _configure_fail_point, "shutdown": _shutdown}
