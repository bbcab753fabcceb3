"""A recorder of commands and server failures."""

from __future__ import annotations

from typing import Any

from tests.support.recorder import Recorder


class FailureRecorder(Recorder):
    """Select the events of failed commands, Unknown servers and cleared pools."""

    @property
    def failures(self) -> list[Any]:
        """Return the events of failed commands."""
        return self.of("CommandFailed")

    @property
    def server_faults(self) -> list[Any]:
        """Return the events of Unknown servers and cleared pools."""
        changes = self.of("ServerDescriptionChanged")
        unknown = [event for event in changes if not event.new_description.is_server_type_known]
        return unknown + self.of("PoolCleared")
