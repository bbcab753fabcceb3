"""The commands ``saslStart``, ``saslContinue``, ``authenticate`` and ``logout``."""

from __future__ import annotations

from typing import Any

from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.error_codes import error


def _sasl_start(call: Call) -> dict[str, Any]:
    allowed = call.member.parameters["authenticationMechanisms"]
    return call.connection.authentication.sasl_start(call.request.database, call.body, allowed)


def _sasl_continue(call: Call) -> dict[str, Any]:
    return call.connection.authentication.sasl_continue(call.body)


def _authenticate(call: Call) -> dict[str, Any]:
    mechanism = call.body.get("mechanism")
    if mechanism not in call.member.parameters["authenticationMechanisms"]:
        raise error(334, f"Received authentication for mechanism {mechanism} which is unknown or not enabled")
    return call.connection.authentication.authenticate(call.request.database, call.body)


def _logout(call: Call) -> dict[str, Any]:
    call.connection.authentication.log_out(call.request.database)
    return {}


COMMANDS = {"authenticate": _authenticate, "logout": _logout, "saslContinue": _sasl_continue, "saslStart": _sasl_start}
