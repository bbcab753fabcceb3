"""The commands ``replSet...``, which only members of a replica set have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gmongo.testing.command import error
from gmongo.testing.simulation.call import Call
from gmongo.testing.simulation.waiting import pause

if TYPE_CHECKING:
    from gmongo.testing.simulation.topologies.replica_set import ReplicaSet

_DEFAULT_SECONDS = 10.0  # the default of fields with a time in seconds
_CHECK_INTERVAL = 0.01  # seconds


def _find_replica_set(call: Call) -> ReplicaSet:
    return cast("ReplicaSet", call.cluster.topology)


def _parse_seconds(call: Call, field: str) -> float:
    value = call.body.get(field, 0 if call.body.get("force") else _DEFAULT_SECONDS)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise error(2, f"{field} has to be a nonnegative number, not {value!r}")
    return float(value)


def _step_down(call: Call) -> dict[str, Any]:
    replica_set = _find_replica_set(call)
    seconds, catch_up = _parse_seconds(call, call.name) or 60.0, _parse_seconds(call, "secondaryCatchUpPeriodSecs")
    if seconds < catch_up:
        raise error(2, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
    if call.member is not replica_set.primary:
        raise error(10107, "not primary so can't step down")
    _await_secondary(call, replica_set, catch_up)
    if call.member is replica_set.primary:
        replica_set.step_down(call.member, seconds)
    return {}


def _await_secondary(call: Call, replica_set: ReplicaSet, remaining: float) -> None:
    """Wait until another member can become primary. Do not wait if the field ``force`` is True."""
    while not replica_set.has_successor() and not call.body.get("force"):
        if remaining <= 0:
            raise error(262, "No electable secondaries caught up as of now")
        pause(_CHECK_INTERVAL)
        remaining -= _CHECK_INTERVAL


def _freeze(call: Call) -> dict[str, Any]:
    replica_set = _find_replica_set(call)
    seconds = _parse_seconds(call, call.name)
    if call.member is replica_set.primary and seconds:
        raise error(95, "cannot freeze node when primary or running for election. state: Primary")
    replica_set.forbid_election(call.member, seconds)
    return {"info": "unfreezing"} if not seconds else {}


def _step_up(call: Call) -> dict[str, Any]:
    replica_set = _find_replica_set(call)
    if call.member is not replica_set.primary and not replica_set.step_up(call.member):
        raise error(125, "Election failed.")
    return {}


COMMANDS = {"replSetFreeze": _freeze, "replSetStepDown": _step_down, "replSetStepUp": _step_up}
