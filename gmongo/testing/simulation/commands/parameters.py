"""The commands ``getParameter`` and ``setParameter``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gmongo.testing.command import NO_CODE
from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.error_codes import error

_COMPATIBILITY = "featureCompatibilityVersion"
_GENERIC = frozenset(
    {"comment", "lsid", "writeConcern", "readConcern", "maxTimeMS", "apiVersion", "apiStrict", "apiDeprecationErrors"}
)


def _parameter_fields(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each field that names a parameter."""
    return ((name, value) for name, value in list(body.items())[1:] if name[0] != "$" and name not in _GENERIC)


def _get_parameter(call: Call) -> dict[str, Any]:
    release = ".".join(map(str, call.cluster.version[:2]))
    known = {**call.member.parameters, _COMPATIBILITY: {"version": release}}
    argument = call.body[call.name]
    if argument == "*" or (isinstance(argument, Mapping) and argument.get("allParameters")):
        return known
    values = {name: known[name] for name, _ in _parameter_fields(call.body) if name in known}
    if not values:
        raise error(NO_CODE, "no option found to get")
    return values


def _set_parameter(call: Call) -> dict[str, Any]:
    changes = list(_parameter_fields(call.body))
    if not changes:
        raise error(NO_CODE, "no option found to set, use help:true to see options ")
    before = [call.member.parameters.change(name, value) for name, value in changes]
    call.cluster.limits.reset()
    return {"was": before[0]}


COMMANDS = {"getParameter": _get_parameter, "setParameter": _set_parameter}
