"""The oplog: the source of change streams."""

from __future__ import annotations

import bisect
import datetime
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bson.binary import Binary
from bson.timestamp import Timestamp

from gmongo.testing import clock
from gmongo.testing.command import CommandError

Document = dict[str, Any]
# The number of stored events. A change stream cannot resume from an older event.
KEPT = 100_000
_TRIMMED = 1000  # the number of events that are removed at once
# The targets of resume tokens: all events up to a time, an event, or the invalidation after an event.
MARK, EVENT, INVALIDATE = 0, 1, 2


class Position(NamedTuple):
    """A position in the oplog. Positions sort in the order of events."""

    time: Timestamp
    order: int = 0
    kind: int = EVENT

    def token(self) -> Document:
        return {"_data": f"82{self.time.time:08X}{self.time.inc:08X}{self.order:08X}{self.kind:02X}"}


def mark(time: Timestamp) -> Position:
    """Return the position after all events up to a time."""
    return Position(time, 0xFFFFFFFF, MARK)


def position_of(token: Any) -> Position:
    """Return the position of a resume token."""
    data = token.get("_data") if isinstance(token, dict) else None
    try:
        if not isinstance(data, str) or len(data) != 28 or not data.startswith("82"):
            raise ValueError
        time, inc, index, kind = (int(part, 16) for part in (data[2:10], data[10:18], data[18:26], data[26:]))
    except ValueError:
        raise CommandError(260, "InvalidResumeToken", f"Bad resume token: {token!r}") from None
    return Position(Timestamp(time, inc), index, kind)


@dataclass(frozen=True)
class Event:
    """A change.

    :param kind: ``insert``, ``update``, ``replace``, ``delete``, ``drop``, ``rename``, ``dropDatabase``, ``create``...
    :param before: the document before the change.
    :param after: the document after the change.
    :param whole: the paths of arrays that the update has written as a whole.
    :param extra: further fields of changes that do not change documents.
    """

    position: Position
    kind: str
    database: str
    collection: str | None
    uuid: Binary | None = None
    before: Document | None = None
    after: Document | None = None
    extra: Document = field(default_factory=dict)
    session: Document = field(default_factory=dict)
    wall_time: datetime.datetime = field(default_factory=lambda: clock.utc_now().replace(tzinfo=None))
    pre_images: bool = False
    whole: frozenset[str] = frozenset()


class Oplog:
    """The events, oldest first."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._dropped = Position(Timestamp(0, 0))

    def append(self, event: Event) -> None:
        self._events.append(event)
        if len(self._events) >= KEPT + _TRIMMED:
            self._dropped = self._events[_TRIMMED - 1].position
            del self._events[:_TRIMMED]

    def check(self, position: Position) -> None:
        """Check that the oplog contains all events after a position."""
        if position < self._dropped:
            raise CommandError(286, "ChangeStreamHistoryLost", "Resume of change stream was not possible, as the "
                               "resume point may no longer be in the oplog.")  # fmt: skip

    def after(self, position: Position) -> list[Event]:
        """Return the events after a position. Removed events cause error 286."""
        self.check(position)
        return self._events[bisect.bisect_right(self._events, position, key=_position) :]

    def at(self, position: Position) -> Event | None:
        """Return the event at exactly this position, or None."""
        index = bisect.bisect_left(self._events, position, key=_position)
        found = self._events[index] if index < len(self._events) else None
        return found if found is not None and found.position == position else None


def _position(event: Event) -> Position:
    return event.position
