"""The commands of authentication, fail points and server parameters, and the command ``shutdown``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gmongo.testing.command import NO_CODE, error
from gmongo.testing.simulation.call import Call, CloseConnection


def _sasl_start(call: Call) -> dict[str, Any]:
    mechanisms = call.member.parameters["authenticationMechanisms"]
    return call.connection.authentication.sasl_start(call.request.database, call.body, mechanisms)


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


def _configure_fail_point(call: Call) -> dict[str, Any]:
    if not call.member.parameters["enableTestCommands"]:
        raise error(59, "no such command: 'configureFailPoint'")
    body = call.body
    data = body.get("data") or {}
    return {"count": call.member.fail_points.configure(body[call.name], body.get("mode"), data)}


def _shutdown(call: Call) -> dict[str, Any]:
    call.member.kill()
    raise CloseConnection


_COMPATIBILITY_VERSION_NAME = "featureCompatibilityVersion"
_GENERIC_FIELDS = frozenset(
    {"comment", "lsid", "writeConcern", "readConcern", "maxTimeMS", "apiVersion", "apiStrict", "apiDeprecationErrors"}
)


def _find_parameters(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each field that names a parameter."""
    return ((name, value) for name, value in list(body.items())[1:] if name[0] != "$" and name not in _GENERIC_FIELDS)


def _get_parameter(call: Call) -> dict[str, Any]:
    release = ".".join(map(str, call.cluster.version[:2]))
    current = {**call.member.parameters, _COMPATIBILITY_VERSION_NAME: {"version": release}}
    argument = call.body[call.name]
    if argument == "*" or (isinstance(argument, Mapping) and argument.get("allParameters")):
        return current
    values = {name: current[name] for name, _ in _find_parameters(call.body) if name in current}
    if not values:
        raise error(NO_CODE, "no option found to get")
    return values


def _set_parameter(call: Call) -> dict[str, Any]:
    changes = list(_find_parameters(call.body))
    if not changes:
        raise error(NO_CODE, "no option found to set, use help:true to see options ")
    old_values = [call.member.parameters.change(name, value) for name, value in changes]
    call.cluster.limits.reset()
    return {"was": old_values[0]}


COMMANDS = {
    "authenticate": _authenticate, "configureFailPoint": _configure_fail_point, "getParameter": _get_parameter,
    "logout": _logout, "saslContinue": _sasl_continue, "saslStart": _sasl_start, "setParameter": _set_parameter,
    "shutdown": _shutdown
}  # fmt: skip
