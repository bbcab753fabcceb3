"""The recorder of events. Tests look at what it heard: the events themselves, or their story in a few words each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.listeners import HearsAll, HearsPools
from tests.support.wait import eventually


def short_name(event: Any) -> str:
    """``ServerHeartbeatStartedEvent`` is ``HeartbeatStarted``, ``ServerClosedEvent`` is ``ServerClosed``."""
    return type(event).__name__.removesuffix("Event").replace("ServerHeartbeat", "Heartbeat")


def line(event: Any) -> str:
    """An event in a few words, such as ``HeartbeatStarted awaited``."""
    words = [short_name(event)]
    if getattr(event, "awaited", False):
        words.append("awaited")
    if hasattr(event, "new_description"):
        new = event.new_description
        words.append(getattr(new, "server_type_name", None) or new.topology_type_name)
    if getattr(event, "interrupt_connections", False):
        words.append("interrupting")
    return " ".join(words)


def pool_word(event: Any) -> str:
    """``ConnectionCheckOutFailedEvent`` is ``Failed``, ``ConnectionClosedEvent`` is ``Closed``, and so on."""
    return type(event).__name__.removesuffix("Event").removeprefix("Connection").removeprefix("CheckOut")


def pool_line(event: Any) -> str:
    """An event of a pool in a few words, such as ``Closed 1 stale``."""
    number = getattr(event, "connection_id", 0)
    words = [pool_word(event), str(number or ""), getattr(event, "reason", "")]
    return " ".join(word for word in words if word)


class _Recorder:
    """Keeps events in their order.

    :ivar hooks: lets a test act inside a listener: short name -> what to do with the event.
    """

    _name = staticmethod(short_name)
    _line = staticmethod(line)

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.hooks: dict[str, Callable[[Any], Any]] = {}

    def hear(self, event: Any) -> None:
        self.events.append(event)
        hook = self.hooks.get(self._name(event))
        if hook is not None:
            hook(event)

    def forget(self) -> None:
        """Begin anew."""
        self.events.clear()

    def of(self, kind: str) -> list[Any]:
        """The events with that short name."""
        return [event for event in self.events if self._name(event) == kind]

    @property
    def story(self) -> list[str]:
        """All events in a few words each."""
        return [self._line(event) for event in self.events]

    def only(self, *kinds: str) -> list[str]:
        """Those of the story that begin with one of `kinds`."""
        return [each for each in self.story if each.startswith(kinds)]

    def wait_for(self, words: str, count: int = 1) -> Any:
        """Wait until `count` lines of the story begin with `words`; returns the event of the last of them."""
        eventually(lambda: len(self.only(words)) >= count)
        return [event for event in self.events if self._line(event).startswith(words)][count - 1]


class Recorder(_Recorder, HearsAll):
    """Hears everything of the clients that it is given to."""

    @property
    def commands(self) -> list[str]:
        """The names of the commands that were sent."""
        return [event.command_name for event in self.of("CommandStarted")]

    def sent(self, name: str) -> list[Any]:
        """The commands of this name that were sent."""
        return [event.command for event in self.of("CommandStarted") if event.command_name == name]

    def command(self, name: str) -> Any:
        """The one command of this name that was sent."""
        (command,) = self.sent(name)
        return command


class PoolRecorder(_Recorder, HearsPools):
    """Hears pools only, and has shorter words for what they do."""

    _name = staticmethod(pool_word)
    _line = staticmethod(pool_line)
