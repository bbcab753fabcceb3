"""Records the commands that a client sends, for tests that look at them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gmongo import MongoClient
from gmongo.collection import Collection
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


class Recorded(NamedTuple):
    """A collection, and what its client sends."""

    collection: Collection[Any]
    recorder: Recorder


@contextmanager
def recorded_collection(uri: str, **options: Any) -> Iterator[Recorded]:
    """A new collection, of a client whose commands are recorded from now on; it is gone afterwards.

    :param options: of the client.
    """
    recorder = Recorder()
    client: MongoClient[Any]
    with MongoClient(uri, event_listeners=[recorder], **options) as client:
        collection = client.gmongo_tests[f"r{uuid.uuid4().hex[:12]}"]
        yield Recorded(collection, recorder)
        collection.drop()
