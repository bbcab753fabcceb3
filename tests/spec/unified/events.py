"""Record the events of a client entity, wait for events, and compare recorded events with expected
events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gevent
from bson.objectid import ObjectId
from gevent.event import Event

from gmongo.events.command import SENSITIVE_COMMANDS
from gmongo.monitoring import CommandStartedEvent
from tests.spec.unified.matching import Matcher, Mismatch
from tests.spec.unified.schema import FormatError
from tests.support.listeners import ForwardingListener

SECONDS_TO_WAIT = 10

_COMMAND_EVENTS = ("commandStartedEvent", "commandSucceededEvent", "commandFailedEvent")
_POOL_EVENTS = (
    "poolCreatedEvent",
    "poolReadyEvent",
    "poolClearedEvent",
    "poolClosedEvent",
    "connectionCreatedEvent",
    "connectionReadyEvent",
    "connectionClosedEvent",
    "connectionCheckOutStartedEvent",
    "connectionCheckOutFailedEvent",
    "connectionCheckedOutEvent",
    "connectionCheckedInEvent",
)
_DISCOVERY_EVENTS = (
    "serverDescriptionChangedEvent",
    "topologyDescriptionChangedEvent",
    "topologyOpeningEvent",
    "topologyClosedEvent",
    "serverHeartbeatStartedEvent",
    "serverHeartbeatSucceededEvent",
    "serverHeartbeatFailedEvent",
)
EVENTS: Mapping[str, tuple[str, ...]] = {"command": _COMMAND_EVENTS, "cmap": _POOL_EVENTS, "sdam": _DISCOVERY_EVENTS}
"""Names of events by ``eventType``."""

_ALL_EVENTS = frozenset(name for names in EVENTS.values() for name in names)
_HELLO_COMMANDS = frozenset({"hello", "ismaster"})

# Class name of an event -> name in the unified test format, if more than the first letter differs.
_EVENT_NAMES = {"TopologyOpenedEvent": "topologyOpeningEvent"}

RecordedEvent = tuple[str, Any]


class Observer(ForwardingListener):
    """Listener that records the events that a client entity observes."""

    def __init__(self, event_names: Iterable[str], ignored_commands: Iterable[str], observe_sensitive: bool) -> None:
        self._event_names = frozenset(event_names)
        if not self._event_names <= _ALL_EVENTS:
            raise FormatError(f"unknown events {sorted(self._event_names - _ALL_EVENTS)}")
        self._ignored_commands = frozenset(name.lower() for name in (*ignored_commands, "configureFailPoint"))
        self._observes_sensitive = observe_sensitive
        self._hidden_request_ids: set[int] = set()
        self._changed = Event()
        self._stores: list[tuple[frozenset[str], list[Any]]] = []
        self.listening = True
        self.checked_out_count = 0
        self.ready_connection_count = 0
        self.ready_pool_count = 0
        self.topology_id: Any = None
        self.events: list[RecordedEvent] = []

    def store(self, class_names: Iterable[str], documents: list[Any]) -> None:
        """For each later event whose class is in `class_names`, append a document to `documents`."""
        self._stores.append((frozenset(class_names), documents))

    def handle(self, event: Any) -> None:
        class_name = type(event).__name__
        name = _EVENT_NAMES.get(class_name, class_name[0].lower() + class_name[1:])
        self._count(name)
        if name == "topologyOpeningEvent":
            self.topology_id = event.topology_id
        if self.listening:
            self._keep(class_name, name, event)
        self._changed.set()

    def _keep(self, class_name: str, name: str, event: Any) -> None:
        for class_names, documents in self._stores:
            if class_name in class_names:
                documents.append({"name": class_name, "observedAt": time.time()})
        if name in self._event_names and not (name in _COMMAND_EVENTS and self._is_ignored(event)):
            self.events.append((name, event))

    def _count(self, name: str) -> None:
        if name == "connectionCheckedOutEvent":
            self.checked_out_count += 1
        elif name == "connectionCheckedInEvent":
            self.checked_out_count -= 1
        elif name == "connectionReadyEvent":
            self.ready_connection_count += 1
        elif name == "poolReadyEvent":
            self.ready_pool_count += 1

    def _is_ignored(self, event: Any) -> bool:
        name = event.command_name.lower()
        if name in self._ignored_commands:
            return True
        if self._observes_sensitive:
            return False
        # If a hello contains authentication, the driver publishes an empty command. The end event of
        # the hello contains no command, but has the same request ID.
        if name in _HELLO_COMMANDS and isinstance(event, CommandStartedEvent) and not event.command:
            self._hidden_request_ids.add(event.request_id)
        return name in SENSITIVE_COMMANDS or event.request_id in self._hidden_request_ids

    def events_of_kind(self, kind: str) -> list[RecordedEvent]:
        """Return the recorded events whose ``eventType`` is `kind`."""
        return [recorded for recorded in self.events if recorded[0] in EVENTS[kind]]

    def text(self) -> str:
        """Return all recorded events as text."""
        return "".join(f"\n  {event_text(recorded)}" for recorded in self.events)

    def wait_until(self, condition: Callable[[], bool], seconds: float = SECONDS_TO_WAIT) -> bool:
        """Wait for events until a condition is true, but at most `seconds`. Return True if the
        condition is true at the end of the wait.
        """
        with gevent.Timeout(seconds, False):
            while not condition():
                self._changed.clear()
                self._changed.wait()
        return condition()


class EventMatcher:
    """Comparison of recorded events with expected events."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def check(self, expected: Mapping[str, Any], recorded: RecordedEvent) -> None:
        """Compare one recorded event with an expected event."""
        ((required, fields),) = expected.items()
        name, event = recorded
        if name != required:
            raise Mismatch(f"the event must be {required} {fields}, was {event_text(recorded)}")
        for field, value in fields.items():
            if field not in _PAIR_FUNCTIONS:
                raise FormatError(f"unknown field {field} of {required}")
            self._matcher.check(*_PAIR_FUNCTIONS[field](value, event), True, f"{required}.{field}")

    def count(self, expected: Mapping[str, Any], events: Iterable[RecordedEvent]) -> int:
        """Return the number of events that match the expected event."""
        return sum(self._matches(expected, recorded) for recorded in events)

    def _matches(self, expected: Mapping[str, Any], recorded: RecordedEvent) -> bool:
        try:
            self.check(expected, recorded)
        except Mismatch:
            return False
        return True

    def check_all(self, expected: Mapping[str, Any], recorder: Observer) -> None:
        """Compare the recorded events of a client with an element of ``expectEvents``."""
        kind = expected.get("eventType", "command")
        actual, required = recorder.events_of_kind(kind), expected["events"]
        text = "".join(f"\n  {event_text(recorded)}" for recorded in actual)
        for index, event in enumerate(required):
            if index >= len(actual):
                raise Mismatch(
                    f"{kind} event {index} of {expected['client']} is missing: {event}. Recorded events:{text}"
                )
            try:
                self.check(event, actual[index])
            except Mismatch as error:
                raise Mismatch(f"{kind} event {index} of {expected['client']}: {error}. Recorded events:{text}")
        if len(actual) > len(required) and not expected.get("ignoreExtraEvents", False):
            raise Mismatch(f"{len(actual) - len(required)} surplus {kind} events of {expected['client']}:{text}")


def event_text(recorded: RecordedEvent) -> str:
    name, event = recorded
    fields = ("command", "reply", "failure", "reason", "awaited", "previous_description", "new_description")
    shown = ", ".join(f"{field}={getattr(event, field)!s:.300}" for field in fields if hasattr(event, field))
    return f"{name} {getattr(event, 'command_name', '')}({shown})"


def _flag_pair(value: bool, actual: bool) -> tuple[Any, Any]:
    return value, actual


def _type_pair(required: Mapping[str, Any], description: Any) -> tuple[Any, Any]:
    for attribute in ("server_type_name", "topology_type_name"):
        if hasattr(description, attribute):
            return required, {"type": getattr(description, attribute)}
    raise TypeError(f"neither a server nor a topology description: {description!r}")


# Functions, keyed by the field name of an expected event. The arguments are the expected value and
# the recorded event. A function returns the pair of the expected and the actual value to compare.
_PAIR_FUNCTIONS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "command": lambda required, event: (required, event.command),
    "reply": lambda required, event: (required, event.reply),
    "commandName": lambda required, event: (required, event.command_name),
    "databaseName": lambda required, event: (required, event.database_name),
    "reason": lambda required, event: (required, event.reason),
    "awaited": lambda required, event: (required, event.awaited),
    "interruptInUseConnections": lambda required, event: (required, event.interrupt_connections),
    "hasServiceId": lambda required, event: _flag_pair(
        required, isinstance(event.service_id, ObjectId) and any(event.service_id.binary)
    ),
    "hasServerConnectionId": lambda required, event: _flag_pair(
        required, isinstance(event.server_connection_id, int) and event.server_connection_id > 0
    ),
    "previousDescription": lambda required, event: _type_pair(required, event.previous_description),
    "newDescription": lambda required, event: _type_pair(required, event.new_description),
}
