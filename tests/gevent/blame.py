"""What a client says of its commands, and of its servers."""

from __future__ import annotations

from typing import Any

from tests.support.recorder import Recorder


class BlameRecorder(Recorder):
    """Knows what has begun and ended, and whatever was held against a server."""

    @property
    def begun(self) -> list[int]:
        """The commands that were sent, by the numbers of their requests."""
        return [event.request_id for event in self.of("CommandStarted")]

    @property
    def ended(self) -> list[int]:
        """Those that have ended."""
        return [event.request_id for event in self.of("CommandSucceeded") + self.failures]

    @property
    def failures(self) -> list[Any]:
        """The events of commands that failed."""
        return self.of("CommandFailed")

    @property
    def blamed(self) -> list[Any]:
        """The events of servers that became Unknown, and of pools that were cleared."""
        changes = self.of("ServerDescriptionChanged")
        unknown = [event for event in changes if not event.new_description.is_server_type_known]
        return unknown + self.of("PoolCleared")
