"""A recorder of events that can return only the failures."""

from __future__ import annotations

from typing import Any

from tests.support.recorder import Recorder


class FailureRecorder(Recorder):
    """Recorder with properties for failed commands, servers marked Unknown, and cleared pools."""

    @property
    def failures(self) -> list[Any]:
        """Return each CommandFailedEvent."""
        return self.events_named("CommandFailed")

    @property
    def server_faults(self) -> list[Any]:
        """Return the events that mark a server Unknown, and each PoolClearedEvent."""
        changes = self.events_named("ServerDescriptionChanged")
        unknown = [event for event in changes if not event.new_description.is_server_type_known]
        return unknown + self.events_named("PoolCleared")
