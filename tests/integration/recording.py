"""Records the commands that a client sends, for tests that look at them."""

from __future__ import annotations

from typing import Any

from gmongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent


class Recorder(CommandListener):
    """Keeps the events of commands in the order in which they came."""

    def __init__(self) -> None:
        self.events: list[CommandStartedEvent] = []
        self.replies: list[CommandSucceededEvent] = []
        self.failures: list[CommandFailedEvent] = []

    def started(self, event: CommandStartedEvent) -> None:
        self.events.append(event)

    def succeeded(self, event: CommandSucceededEvent) -> None:
        self.replies.append(event)

    def failed(self, event: CommandFailedEvent) -> None:
        self.failures.append(event)

    def clear(self) -> None:
        """Forget everything so far."""
        for events in (self.events, self.replies, self.failures):
            events.clear()

    @property
    def names(self) -> list[str]:
        """The names of the commands sent."""
        return [event.command_name for event in self.events]

    def sent(self, name: str) -> list[Any]:
        """The commands of this name."""
        return [event.command for event in self.events if event.command_name == name]

    def only(self, name: str) -> Any:
        """The one command of this name."""
        (command,) = self.sent(name)
        return command
