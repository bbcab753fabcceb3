"""The oplog, which records the events that change streams show."""

from __future__ import annotations

import bisect
import datetime
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from bson.binary import Binary
from bson.timestamp import Timestamp

from gmongo.testing import clock
from gmongo.testing.command import error

Document = dict[str, Any]
# The number of the latest events that the oplog always keeps.
MAX_EVENTS = 100_000
_REMOVAL_COUNT = 1000  # The number of events that the oplog removes in one step.
# The kinds of positions: after all events up to a time, after an event, or after the invalidation that an event causes.
AFTER_TIME, AFTER_EVENT, AFTER_INVALIDATION = 0, 1, 2


class Position(NamedTuple):
    """A position in the oplog. Positions sort in the order of events."""

    time: Timestamp  # the logical time of an event, or the time of a position without an event
    order: int = 0  # the number of the event among the events with an equal time
    kind: int = AFTER_EVENT  # `AFTER_TIME`, `AFTER_EVENT` or `AFTER_INVALIDATION`

    def token(self) -> Document:
        return {"_data": f"82{self.time.time:08X}{self.time.inc:08X}{self.order:08X}{self.kind:02X}"}


def create_position_after(time: Timestamp) -> Position:
    """Return the position after all events whose time is not later than `time`."""
    return Position(time, 0xFFFFFFFF, AFTER_TIME)


def parse_token(token: Any) -> Position:
    """Return the position that a resume token contains."""
    data = token.get("_data") if isinstance(token, dict) else None
    try:
        if not isinstance(data, str) or len(data) != 28 or not data.startswith("82"):
            raise ValueError
        time, increment, order, kind = (int(part, 16) for part in (data[2:10], data[10:18], data[18:26], data[26:]))
    except ValueError:
        raise error(260, f"Bad resume token: {token!r}") from None
    return Position(Timestamp(time, increment), order, kind)


@dataclass(frozen=True)
class Event:
    """A change of a document, a collection or a database."""

    position: Position  # the position in the oplog
    kind: str  # the `operationType` in change streams, such as `insert`, `drop` or `create`
    database: str  # the name of the database
    collection: str | None  # the name of the collection, or None if the event concerns a database
    uuid: Binary | None = None  # the UUID of the collection
    before: Document | None = None  # the document before the change, or None if there was no document
    after: Document | None = None  # the document after the change, or None if there is no document
    extra: Document = field(default_factory=dict)  # further fields of an event that concerns a collection or a database
    session: Document = field(default_factory=dict)  # the fields `lsid` and `txnNumber` of an event in a transaction
    # The date and time of the change, in UTC.
    wall_time: datetime.datetime = field(default_factory=lambda: clock.utc_now().replace(tzinfo=None))
    has_pre_images: bool = False  # True if change streams can show the document before the change
    # The paths of the values that change streams show completely, from `Update.find_whole_paths`.
    whole_paths: frozenset[str] | None = frozenset()


class Oplog:
    """The recorded events, in the order of time."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._last_removed_position = Position(Timestamp(0, 0))

    def append(self, event: Event) -> None:
        self._events.append(event)
        if len(self._events) >= MAX_EVENTS + _REMOVAL_COUNT:
            self._last_removed_position = self._events[_REMOVAL_COUNT - 1].position
            del self._events[:_REMOVAL_COUNT]

    def check(self, position: Position) -> None:
        """Check that the oplog still contains all events after a position."""
        if position < self._last_removed_position:
            raise error(286, "Resume of change stream was not possible, as the "
                               "resume point may no longer be in the oplog.")  # fmt: skip

    def after(self, position: Position) -> list[Event]:
        self.check(position)
        return self._events[bisect.bisect_right(self._events, position, key=attrgetter("position")) :]

    def event_at(self, position: Position) -> Event | None:
        """Return the event at this position. Return None if the position has no event."""
        index = bisect.bisect_left(self._events, position, key=attrgetter("position"))
        event = self._events[index] if index < len(self._events) else None
        return event if event is not None and event.position == position else None
