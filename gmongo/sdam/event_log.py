"""Log of recent SDAM events, such as failed checks and elections, for the statistics of a client."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from gmongo import _clock
from gmongo.sdam.server_description import ServerDescription
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address

_MAX_EVENTS = 100


class SdamEvent(NamedTuple):
    """One SDAM event of a server, or consecutive events with the same kind and error class."""

    moment: float  # Time of the last merged event, as measured by `_clock.monotonic()`.
    kind: str
    address: Address
    error: BaseException | None  # Error of the last merged event.
    event_count: int  # Number of merged events.
    first_moment: float  # Time of the first merged event.


class EventLog:
    """Log of the last hundred SDAM events of one topology."""

    def __init__(self) -> None:
        self.events: deque[SdamEvent] = deque(maxlen=_MAX_EVENTS)

    def record_failed_check(self, description: ServerDescription) -> None:
        self._add_event("check failed", description.address, description.error)

    def record_changes(
        self, old: Mapping[Address, ServerDescription], new: Mapping[Address, ServerDescription]
    ) -> None:
        for address in new.keys() - old.keys():
            self._add_event("joined", address)
        for address in old.keys() - new.keys():
            self._add_event("left", address)
        for address, after in new.items():
            before = old.get(address)
            kind = None if before is None else _describe_change(before, after)
            if kind is not None:
                self._add_event(kind, address, after.error)

    def _add_event(self, kind: str, address: Address, error: BaseException | None = None) -> None:
        event_count, events = 1, self.events
        moment = first_event_moment = _clock.monotonic()
        for last in reversed(events):
            if last.address == address:
                if last.kind == kind and type(last.error) is type(error):
                    events.remove(last)
                    event_count += last.event_count
                    first_event_moment = last.first_moment
                break
        events.append(SdamEvent(moment, kind, address, error, event_count, first_event_moment))


def _describe_change(old: ServerDescription, new: ServerDescription) -> str | None:
    if old.server_type == new.server_type:
        is_primary = new.server_type == SERVER_TYPE.RSPrimary
        return "elected again" if is_primary and old.election_id != new.election_id else None
    if new.server_type == SERVER_TYPE.RSPrimary:
        return "elected primary" if old.is_server_type_known else "found: primary"
    if old.server_type == SERVER_TYPE.RSPrimary:
        return "primary lost" if new.is_server_type_known else "primary became unknown"
    return f"became {new.server_type_name}" if old.is_server_type_known else f"found: {new.server_type_name}"
