"""The control protocol of a remote deployment. The deployment sends one reply to each request."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gmongo.testing.channel import Channel
from gmongo.testing.command import CommandError
from gmongo.testing.simulation.command_log import ReceivedCommand
from gmongo.testing.simulation.fail_points import FailPointHandle
from gmongo.testing.simulation.member import Member

if TYPE_CHECKING:
    from gmongo.testing.deployment import Deployment

FAULT_METHODS = frozenset({
    "delay", "drop_after", "drop_connections", "freeze", "garbage", "heal", "kill", "partition", "restart",
    "step_down", "thaw"
})  # fmt: skip
_FAIL_POINT_HANDLES: WeakKeyDictionary[Deployment, list[FailPointHandle]] = WeakKeyDictionary()
_EXCEPTION_TYPES = {kind.__name__: kind for kind in (ValueError, TypeError, RuntimeError, OverflowError)}


def serve_control(channel: Channel, deployment: Deployment) -> None:
    """Execute the requests that arrive through `channel`, until the other end closes the channel."""
    while (request := channel.receive()) is not None:
        try:
            reply = {"result": REQUEST_HANDLERS[request["request"]](deployment, *request["arguments"])}
        except Exception as problem:
            reply = create_exception_reply(problem)
        channel.send({"number": request["number"], **reply})


def create_exception_reply(problem: Exception) -> dict[str, Any]:
    """Return the reply that describes an exception. :func:`raise_problem` raises the exception at the other end."""
    if isinstance(problem, CommandError):
        description = {"code": problem.code, "name": problem.name, "message": problem.message}
        return {"problem": "CommandError", **description, "labels": problem.labels, "fields": dict(problem.fields)}
    return {"problem": type(problem).__name__, "message": str(problem)}


def raise_problem(reply: Mapping[str, Any]) -> None:
    """Raise the exception that a reply describes. Do nothing if the reply describes no exception."""
    if "problem" not in reply:
        return
    if reply["problem"] == "CommandError":
        raise CommandError(reply["code"], reply["name"], reply["message"], reply["labels"], **dict(reply["fields"]))
    raise _EXCEPTION_TYPES.get(reply["problem"], OSError)(reply["message"])  # most other exceptions are OSErrors


def _describe(deployment: Deployment) -> dict[str, Any]:
    members = deployment.members
    return {
        "uri": deployment.uri,
        "primary": members.index(members.primary) if members.has_primary else None,
        "secondaries": [members.index(member) for member in members.secondaries],
        "members": [_describe_member(member) for member in members],
    }


def _describe_member(member: Member) -> dict[str, Any]:
    names = ("number", "app_name", "peer_port", "busy_with", "operations")
    connections = [{name: getattr(connection, name) for name in names} for connection in member.connections.values()]
    facts = {name: getattr(member, name) for name in ("port", "alive", "reachable", "uptime", "created", "traits")}
    return {**facts, "connections": connections}


def _cause_fault(deployment: Deployment, number: int, name: str, arguments: list[Any], kwargs: dict[str, Any]) -> None:
    if not 0 <= number < len(deployment.members):
        raise ValueError(f"there is no member {number}, only 0 to {len(deployment.members) - 1}")
    if name not in FAULT_METHODS:
        raise ValueError(f"{name!r} is not one of {sorted(FAULT_METHODS)}")
    getattr(deployment.members[number], name)(*arguments, **kwargs)


def _list_commands(deployment: Deployment, known_count: int) -> dict[str, Any]:
    """Return the state of the log, and the commands that follow the first `known_count` logged commands."""
    log = deployment.commands
    new_commands = log[max(0, known_count - log.first) :]
    names = [field.name for field in dataclasses.fields(ReceivedCommand) if field.init]
    command_documents = [{name: getattr(command, name) for name in names} for command in new_commands]
    return {"first": log.first, "forgotten": log.forgotten, "enabled": log.enabled, "commands": command_documents}


def _log_commands(deployment: Deployment, enabled: bool) -> None:
    deployment.commands.enabled = enabled


def _set_network(deployment: Deployment, name: str, value: Any) -> None:
    if name == "random":
        version, state, gauss = value
        deployment.network.random = random.Random()
        deployment.network.random.setstate((version, tuple(state), gauss))
    else:
        setattr(deployment.network, name, value)


def _set_fail_point(deployment: Deployment, name: Any, mode: Any, data: Any, member_number: int | None) -> int:
    """Set a fail point, and return its number for the request ``count of fail point``."""
    handles = _FAIL_POINT_HANDLES.setdefault(deployment, [])
    target = _find_member(deployment, member_number)
    handles.append(deployment.set_fail_point(name, mode, data, member=target))
    return len(handles) - 1


def _find_member(deployment: Deployment, number: int | None) -> Member | None:
    return None if number is None else deployment.members[number]


REQUEST_HANDLERS: Mapping[str, Callable[..., Any]] = {
    "advance": lambda deployment, seconds: deployment.advance(seconds),
    "clear commands": lambda deployment: deployment.commands.clear(),
    "commands": _list_commands,
    "count of fail point": lambda deployment, number: _FAIL_POINT_HANDLES[deployment][number].count,
    "describe": _describe,
    "fault": _cause_fault,
    "log commands": _log_commands,
    "network": lambda deployment: {"latency": deployment.network.latency, "loss": deployment.network.loss},
    "rate limit": lambda deployment, requests, connections, burst, member_number: deployment.rate_limit(
        requests, connections, burst=burst, member=_find_member(deployment, member_number)
    ),
    "set fail point": _set_fail_point,
    "set network": _set_network,
    "uri of": lambda deployment, hosts, options: deployment.uri_of(hosts, **options),
}
