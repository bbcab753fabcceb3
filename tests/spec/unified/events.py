"""The events of a client: recording them, waiting for them, and comparing them with what a test expects."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gevent
from bson.objectid import ObjectId
from gevent.event import Event

from gmongo.events.command import SENSITIVE
from gmongo.monitoring import CommandStartedEvent
from tests.spec.unified.matching import Matcher, Mismatch
from tests.spec.unified.schema import FormatError
from tests.support.listeners import HearsAll

SECONDS_TO_WAIT = 10

_COMMAND = ("commandStartedEvent", "commandSucceededEvent", "commandFailedEvent")
_POOL = (
    *("poolCreatedEvent", "poolReadyEvent", "poolClearedEvent", "poolClosedEvent"),
    *("connectionCreatedEvent", "connectionReadyEvent", "connectionClosedEvent"),
    *("connectionCheckOutStartedEvent", "connectionCheckOutFailedEvent"),
    *("connectionCheckedOutEvent", "connectionCheckedInEvent"),
)
_DISCOVERY = (
    *("serverDescriptionChangedEvent", "topologyDescriptionChangedEvent"),
    *("topologyOpeningEvent", "topologyClosedEvent"),
    *("serverHeartbeatStartedEvent", "serverHeartbeatSucceededEvent", "serverHeartbeatFailedEvent"),
)
KINDS: Mapping[str, tuple[str, ...]] = {"command": _COMMAND, "cmap": _POOL, "sdam": _DISCOVERY}
"""The names of events by the ``eventType`` of an expectation."""

_ALL = frozenset(name for names in KINDS.values() for name in names)
_HELLOS = frozenset({"hello", "ismaster"})

# Where the class has another name than the format.
_NAMES = {"TopologyOpenedEvent": "topologyOpeningEvent"}

Recorded = tuple[str, Any]


class Observer(HearsAll):
    """Hears all events of a client, and keeps those that a test observes.

    :param observed: the names of the events to keep.
    :param ignored: commands whose events are not kept.
    :param sensitive: whether the events of sensitive commands are kept.
    """

    def __init__(self, observed: Iterable[str], ignored: Iterable[str], sensitive: bool) -> None:
        self._observed = frozenset(observed)
        if not self._observed <= _ALL:
            raise FormatError(f"unknown events {sorted(self._observed - _ALL)}")
        self._ignored = frozenset(name.lower() for name in (*ignored, "configureFailPoint"))
        self._sensitive = sensitive
        self._hidden_requests: set[int] = set()
        self._changed = Event()
        self._stores: list[tuple[frozenset[str], list[Any]]] = []
        self.listening = True
        self.connections_checked_out = 0
        self.ready_connections = 0
        self.ready_pools = 0
        self.topology_id: Any = None
        self.events: list[Recorded] = []

    def store(self, names: Iterable[str], entity: list[Any]) -> None:
        """Append the events with these names (as classes are named) to a list, as documents."""
        self._stores.append((frozenset(names), entity))

    def hear(self, event: Any) -> None:
        kind = type(event).__name__
        name = _NAMES.get(kind, kind[0].lower() + kind[1:])
        self._count(name)
        if name == "topologyOpeningEvent":
            self.topology_id = event.topology_id
        if self.listening:
            self._keep(kind, name, event)
        self._changed.set()

    def _keep(self, kind: str, name: str, event: Any) -> None:
        for names, entity in self._stores:
            if kind in names:
                entity.append({"name": kind, "observedAt": time.time()})
        if name in self._observed and not (name in _COMMAND and self._is_ignored(event)):
            self.events.append((name, event))

    def _count(self, name: str) -> None:
        if name == "connectionCheckedOutEvent":
            self.connections_checked_out += 1
        elif name == "connectionCheckedInEvent":
            self.connections_checked_out -= 1
        elif name == "connectionReadyEvent":
            self.ready_connections += 1
        elif name == "poolReadyEvent":
            self.ready_pools += 1

    def _is_ignored(self, event: Any) -> bool:
        name = event.command_name.lower()
        if name in self._ignored:
            return True
        if self._sensitive:
            return False
        # A redacted hello is known by its empty command; its reply may look like any other.
        if name in _HELLOS and isinstance(event, CommandStartedEvent) and not event.command:
            self._hidden_requests.add(event.request_id)
        return name in SENSITIVE or event.request_id in self._hidden_requests

    def of_kind(self, kind: str) -> list[Recorded]:
        """The events of an ``eventType``."""
        return [recorded for recorded in self.events if recorded[0] in KINDS[kind]]

    def shown(self) -> str:
        """All recorded events, for a message."""
        return "".join(f"\n  {show(recorded)}" for recorded in self.events)

    def wait_until(self, happened: Callable[[], bool], seconds: float = SECONDS_TO_WAIT) -> bool:
        """Wait for events until something has happened; False if that takes too long."""
        with gevent.Timeout(seconds, False):
            while not happened():
                self._changed.clear()
                self._changed.wait()
        return happened()


class EventMatcher:
    """Compares events.

    :param matcher: for the values in them.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def check(self, expected: Mapping[str, Any], recorded: Recorded) -> None:
        """Compare an event.

        :raises Mismatch: it is not as expected.
        """
        ((wanted, fields),) = expected.items()
        name, event = recorded
        if name != wanted:
            raise Mismatch(f"the event must be {wanted} {fields}, was {show(recorded)}")
        for field, value in fields.items():
            if field not in _FIELDS:
                raise FormatError(f"unknown field {field} of {wanted}")
            self._matcher.check(*_FIELDS[field](value, event), True, f"{wanted}.{field}")

    def count(self, expected: Mapping[str, Any], events: Iterable[Recorded]) -> int:
        """How many of the events are as expected."""
        return sum(self._matches(expected, recorded) for recorded in events)

    def _matches(self, expected: Mapping[str, Any], recorded: Recorded) -> bool:
        try:
            self.check(expected, recorded)
        except Mismatch:
            return False
        return True

    def check_all(self, expected: Mapping[str, Any], recorder: Observer) -> None:
        """Compare the events of a client with an element of ``expectEvents``.

        :raises Mismatch: an event is missing, other than expected, or surplus.
        """
        kind = expected.get("eventType", "command")
        found, wanted = recorder.of_kind(kind), expected["events"]
        shown = "".join(f"\n  {show(recorded)}" for recorded in found)
        for index, one in enumerate(wanted):
            if index >= len(found):
                raise Mismatch(f"{kind} event {index} of {expected['client']} is missing: {one}; there are{shown}")
            try:
                self.check(one, found[index])
            except Mismatch as error:
                raise Mismatch(f"{kind} event {index} of {expected['client']}: {error}; there are{shown}")
        if len(found) > len(wanted) and not expected.get("ignoreExtraEvents", False):
            raise Mismatch(f"{len(found) - len(wanted)} surplus {kind} events of {expected['client']}:{shown}")


def show(recorded: Recorded) -> str:
    """An event for a message."""
    name, event = recorded
    fields = ("command", "reply", "failure", "reason", "awaited", "previous_description", "new_description")
    shown = ", ".join(f"{field}={getattr(event, field)!s:.300}" for field in fields if hasattr(event, field))
    return f"{name} {getattr(event, 'command_name', '')}({shown})"


def _is_set(value: bool, found: bool) -> tuple[Any, Any]:
    return value, found


def _description(wanted: Mapping[str, Any], description: Any) -> tuple[Any, Any]:
    for attribute in ("server_type_name", "topology_type_name"):
        if hasattr(description, attribute):
            return wanted, {"type": getattr(description, attribute)}
    raise TypeError(f"neither a server nor a topology description: {description!r}")


# Field of an expectation -> from (wanted value, event) what to compare with what.
_FIELDS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "command": lambda wanted, event: (wanted, event.command),
    "reply": lambda wanted, event: (wanted, event.reply),
    "commandName": lambda wanted, event: (wanted, event.command_name),
    "databaseName": lambda wanted, event: (wanted, event.database_name),
    "reason": lambda wanted, event: (wanted, event.reason),
    "awaited": lambda wanted, event: (wanted, event.awaited),
    "interruptInUseConnections": lambda wanted, event: (wanted, event.interrupt_connections),
    "hasServiceId": lambda wanted, event: _is_set(
        wanted, isinstance(event.service_id, ObjectId) and any(event.service_id.binary)
    ),
    "hasServerConnectionId": lambda wanted, event: _is_set(
        wanted, isinstance(event.server_connection_id, int) and event.server_connection_id > 0
    ),
    "previousDescription": lambda wanted, event: _description(wanted, event.previous_description),
    "newDescription": lambda wanted, event: _description(wanted, event.new_description),
}
