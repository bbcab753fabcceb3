"""The fail points of a member, which the command ``configureFailPoint`` sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gmongo import _random
from gmongo._nearest import did_you_mean
from gmongo.testing.command import error
from gmongo.testing.simulation.call import Call, CloseConnection
from gmongo.testing.simulation.error_labels import RESUMABLE_CODES
from gmongo.testing.simulation.versions import STREAMS_AND_LABELS_VERSION
from gmongo.testing.simulation.waiting import wait_for
from gmongo.testing.simulation.write_concern import COMMANDS_WITHOUT_WRITE_CONCERN
from gmongo.testing.unsupported import not_supported

FAIL_COMMAND = "failCommand"
ON_TRANSACTIONAL_WRITE = "onPrimaryTransactionalWrite"
ON_GET_MORE = "failGetMoreAfterCursorCheckout"
ON_TIME_LIMIT = "maxTimeAlwaysTimeOut"

_FIELDS = {
    FAIL_COMMAND: frozenset(
        {
            "failCommands", "errorCode", "errorExtraInfo", "errorLabels", "closeConnection",
            "blockConnection", "blockTimeMS", "writeConcernError", "appName", "namespace",
            "failInternalCommands", "failLocalClients", "threadName", "failAllCommands"
        }
    ),
    ON_TRANSACTIONAL_WRITE: frozenset({"closeConnection", "failBeforeCommitExceptionCode"}),
    ON_GET_MORE: frozenset({"errorCode", "closeConnection"}),
    ON_TIME_LIMIT: frozenset()
}  # fmt: skip
_ALIASES = {"ismaster": "isMaster", "findandmodify": "findAndModify", "deleteIndexes": "dropIndexes"}
_EXEMPT_COMMANDS = frozenset({"configureFailPoint"})
_CODES_WITH_EXTRA_INFO = frozenset({121, 359, 361, 11000, 13388})  # a server requires errorExtraInfo for these errors
_RETRYABLE_WRITES = frozenset({"insert", "update", "delete", "findAndModify", "bulkWrite"})
_ERROR_MESSAGE = "Failing command via a fail point"
_MODES_WITH_AMOUNT = frozenset({"times", "skip", "activationProbability"})


@dataclass
class FailPoint:
    """A fail point of a member."""

    mode: str  # off, alwaysOn, times, skip or activationProbability
    amount: float = 0  # the value of `times`, `skip` or `activationProbability`
    data: Mapping[str, Any] = field(default_factory=dict)
    affected_count: int = 0  # the number of commands that the fail point affected

    def enter(self) -> bool:
        """Return True if the fail point affects the next command that matches `data`. Update the counters."""
        if self.mode == "times":
            self.amount -= 1
            affects = self.amount >= 0
            if self.amount <= 0:
                self.mode = "off"
        elif self.mode == "skip" and self.amount > 0:
            self.amount -= 1
            affects = False
        else:
            affects = self.mode != "activationProbability" or _random.random() < self.amount
        self.affected_count += affects
        return affects


class FailPointHandle:
    """A fail point that :meth:`~gmongo.testing.Deployment.set_fail_point` has set.

    :param count: a function that returns the number of affected commands.
    """

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count

    @property
    def count(self) -> int:
        """The number of commands that the fail point affected."""
        return self._count()


class FailPoints(dict[str, FailPoint]):
    """The fail points of one member, by name."""

    def configure(self, name: Any, mode: Any, data: Any) -> int:
        """Set a fail point. Return the number of commands that the previous fail point of this name affected."""
        if not isinstance(name, str) or name not in _FIELDS:
            raise not_supported("an unimplemented fail point", repr(name) + did_you_mean(str(name), _FIELDS))
        new_point = _parse_mode(mode, data)
        unknown_names = sorted(set(data) - _FIELDS[name]) if mode != "off" else []
        if unknown_names:
            hint = did_you_mean(unknown_names[0], _FIELDS[name]) or f", only {', '.join(sorted(_FIELDS[name]))}"
            raise error(9, f"{name} has no field {unknown_names[0]!r}{hint}")
        _check_data(name, new_point)
        old_point, self[name] = self.get(name), new_point
        return old_point.affected_count if old_point else 0

    def find(self, call: Call) -> tuple[str, FailPoint] | None:
        """If a fail point affects the command, return its name and the fail point. Otherwise return None."""
        for name, matches in _MATCHERS.items():
            point = self.get(name)
            if point is not None and point.mode != "off" and matches(call, point.data) and point.enter():
                return name, point
        return None


# Fail points may name these commands, although the simulation does not execute the commands. Tests
# of the driver name the commands in fail points.
_UNSIMULATED_COMMANDS = ("copydb", "copydbgetnonce", "copydbsaslstart", "updateUser", "usersInfo")


def check_commands(data: Mapping[str, Any], known_names: Collection[str]) -> None:
    """Check the command names in ``failCommands``. A real server does not check these names."""
    names = data.get("failCommands")
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and _ALIASES.get(name, name) not in {*known_names, *_UNSIMULATED_COMMANDS}:
            raise error(59, f"failCommands contains the unknown command {name!r}{did_you_mean(name, known_names)}")


def _parse_mode(mode: Any, data: Mapping[str, Any]) -> FailPoint:
    if mode in ("off", "alwaysOn"):
        return FailPoint(mode, data=data)
    if not isinstance(mode, Mapping) or len(mode) != 1 or not _MODES_WITH_AMOUNT & set(mode):
        raise error(2, f"fail point mode {mode!r} is not 'off', 'alwaysOn', times, skip or activationProbability")
    ((kind, amount),) = mode.items()
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or amount < 0:
        raise error(9, f"fail point mode {kind} {amount!r} is not a nonnegative number")
    return FailPoint("off" if kind == "times" and amount == 0 else kind, amount, data)


def _check_data(name: str, point: FailPoint) -> None:
    if point.mode == "off" or name != FAIL_COMMAND:
        return
    commands = point.data.get("failCommands")
    if commands is not None and not isinstance(commands, list):
        raise error(9, f"failCommands of failCommand must be an array, and is {commands!r}")
    block_time = point.data.get("blockTimeMS")
    if point.data.get("blockConnection") and not isinstance(block_time, (int, float)):
        raise error(9, f"blockTimeMS of failCommand must be a number if blockConnection is set, and is {block_time!r}")


def _matches_command(call: Call, data: Mapping[str, Any]) -> bool:
    if call.name in _EXEMPT_COMMANDS:
        return False
    fail_commands = {_ALIASES.get(name, name) for name in data.get("failCommands", ())}
    if _ALIASES.get(call.name, call.name) not in fail_commands and not data.get("failAllCommands"):
        return False
    if call.connection.internal and not data.get("failInternalCommands"):
        return False
    if "appName" in data and data["appName"] != call.connection.app_name:
        return False
    return "namespace" not in data or data["namespace"] == f"{call.request.database}.{call.body.get(call.name)}"


def _matches_write(call: Call, data: Mapping[str, Any]) -> bool:
    number = call.request.transaction_number
    return call.name in _RETRYABLE_WRITES and number is not None and not call.cluster.store.has_executed(call.request)


_MATCHERS: Mapping[str, Callable[[Call, Mapping[str, Any]], bool]] = {
    FAIL_COMMAND: _matches_command,
    ON_TRANSACTIONAL_WRITE: _matches_write,
    ON_GET_MORE: lambda call, data: call.name == "getMore",
    ON_TIME_LIMIT: lambda call, data: bool(call.body.get("maxTimeMS")),
}


def apply_before(call: Call, name: str, point: FailPoint) -> None:
    """Apply a fail point before the execution of the command."""
    data = point.data
    if name == ON_TIME_LIMIT:
        raise error(50, "operation exceeded time limit")
    if data.get("blockConnection"):
        _block(call, data["blockTimeMS"] / 1000)
    if "failBeforeCommitExceptionCode" in data:
        if data.get("closeConnection", True):
            raise CloseConnection
        raise error(data["failBeforeCommitExceptionCode"], _ERROR_MESSAGE)
    if data.get("closeConnection"):
        raise CloseConnection
    if data.get("errorCode") in _CODES_WITH_EXTRA_INFO and not data.get("errorExtraInfo"):
        raise error(40671, f"Missing required extra info for error code {data['errorCode']}: set errorExtraInfo")
    if "errorCode" in data:
        raise error(data["errorCode"], _ERROR_MESSAGE, **_create_error_fields(call, data))


def _block(call: Call, seconds: float) -> None:
    max_time_ms = call.body.get("maxTimeMS")
    max_seconds = max_time_ms / 1000 if max_time_ms and call.name != "getMore" else seconds
    # If a client disconnects, a server kills the client's operations, except unacknowledged writes.
    is_unacknowledged = (call.body.get("writeConcern") or {}).get("w") == 0
    end_event = call.connection.closed_by_member if is_unacknowledged else call.connection.closed
    if wait_for(end_event, min(seconds, max_seconds)):
        raise CloseConnection
    if max_seconds < seconds:
        raise error(50, "operation exceeded time limit")


def _create_error_fields(call: Call, data: Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(data.get("errorExtraInfo") or {})
    if "errorLabels" in data:
        fields["errorLabels"] = list(data["errorLabels"])
    elif call.name == "getMore" and "failCommands" not in data and call.cluster.is_change_stream(call.body["getMore"]):
        is_resumable = call.cluster.version >= STREAMS_AND_LABELS_VERSION and data["errorCode"] in RESUMABLE_CODES
        fields |= {"errorLabels": ["ResumableChangeStreamError"]} if is_resumable else {}
    return fields


def apply_after(call: Call, name: str, point: FailPoint, reply: dict[str, Any]) -> None:
    """Apply a fail point after the execution of the command."""
    data = point.data
    if "writeConcernError" in data and call.name not in COMMANDS_WITHOUT_WRITE_CONCERN:
        reply["writeConcernError"] = dict(data["writeConcernError"])
        if "errorLabels" in data:
            reply["errorLabels"] = list(data["errorLabels"])
    elif name == ON_TRANSACTIONAL_WRITE and data.get("closeConnection", True):
        raise CloseConnection  # close the connection after the write, without a reply
