"""Recorders of client events. Each event can be printed as one short line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.listeners import ForwardingListener, ForwardingPoolListener
from tests.support.wait import eventually


def short_name(event: Any) -> str:
    """Return the short name of an event, such as ``HeartbeatStarted`` for
    ``ServerHeartbeatStartedEvent``.
    """
    return type(event).__name__.removesuffix("Event").replace("ServerHeartbeat", "Heartbeat")


def event_line(event: Any) -> str:
    """Return a line that describes an event, such as ``HeartbeatStarted awaited``."""
    words = [short_name(event)]
    if getattr(event, "awaited", False):
        words.append("awaited")
    if hasattr(event, "new_description"):
        new = event.new_description
        words.append(getattr(new, "server_type_name", None) or new.topology_type_name)
    if getattr(event, "interrupt_connections", False):
        words.append("interrupting")
    return " ".join(words)


def short_pool_event_name(event: Any) -> str:
    """Return the short name of a pool event, such as ``Failed`` for
    ``ConnectionCheckOutFailedEvent``.
    """
    return type(event).__name__.removesuffix("Event").removeprefix("Connection").removeprefix("CheckOut")


def pool_event_line(event: Any) -> str:
    """Return a line that describes a pool event, such as ``Closed 1 stale``."""
    number = getattr(event, "connection_id", 0)
    words = [short_pool_event_name(event), str(number or ""), getattr(event, "reason", "")]
    return " ".join(word for word in words if word)


class _Recorder:
    """Recorder that keeps events in the order in which the client published the events.

    :ivar hooks: Functions that the recorder calls with each event of a kind, keyed by the short
        name of the event.
    """

    _name = staticmethod(short_name)
    _line = staticmethod(event_line)

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.hooks: dict[str, Callable[[Any], Any]] = {}

    def handle(self, event: Any) -> None:
        self.events.append(event)
        hook = self.hooks.get(self._name(event))
        if hook is not None:
            hook(event)

    def clear(self) -> None:
        """Delete the recorded events."""
        self.events.clear()

    def events_named(self, kind: str) -> list[Any]:
        """Return the recorded events whose short name is `kind`."""
        return [event for event in self.events if self._name(event) == kind]

    @property
    def event_lines(self) -> list[str]:
        return [self._line(event) for event in self.events]

    def lines_starting_with(self, *beginnings: str) -> list[str]:
        """Return the event lines that start with one of `beginnings`."""
        return [each for each in self.event_lines if each.startswith(beginnings)]

    def wait_for(self, beginning: str, count: int = 1) -> Any:
        """Wait until `count` event lines start with `beginning`.

        Return the event that the last of these `count` lines describes.
        """
        eventually(lambda: len(self.lines_starting_with(beginning)) >= count)
        return [event for event in self.events if self._line(event).startswith(beginning)][count - 1]


class Recorder(_Recorder, ForwardingListener):
    """Recorder of all kinds of events: command, pool, heartbeat, server and topology events."""

    @property
    def commands(self) -> list[str]:
        """Command name of each CommandStartedEvent."""
        return [event.command_name for event in self.events_named("CommandStarted")]

    def sent_commands(self, name: str) -> list[Any]:
        """Return the command document of each CommandStartedEvent whose command name is `name`."""
        return [event.command for event in self.events_named("CommandStarted") if event.command_name == name]

    def command(self, name: str) -> Any:
        """Return the command document of the only CommandStartedEvent whose command name is
        `name`.
        """
        (command,) = self.sent_commands(name)
        return command


class PoolRecorder(_Recorder, ForwardingPoolListener):
    """Recorder of pool and connection events."""

    _name = staticmethod(short_pool_event_name)
    _line = staticmethod(pool_event_line)
