"""The ``_id`` of documents that are inserted without one (ObjectId specification).

What a process makes in one second is in order. ``bson`` makes them, too, but with a lock for each: for an insert of
thousands that takes longer than to encode the documents.
"""

from __future__ import annotations

from itertools import count

from bson.objectid import ObjectId

from gmongo import _chance, _clock
from gmongo._fork import register_after_fork

_COUNTER_BITS = 24
_RANDOM_BITS = 40


class _Maker:
    """Four bytes of seconds, five that are random for the process, three of a counter that begins at random."""

    def __init__(self) -> None:
        self.begin()
        register_after_fork(self)

    def begin(self) -> None:
        """Begin as a new process does."""
        self._random = int.from_bytes(_chance.urandom(_RANDOM_BITS // 8), "big") << _COUNTER_BITS
        self._counter = count(int.from_bytes(_chance.urandom(_COUNTER_BITS // 8), "big"))

    mark_forked = begin

    def make(self) -> ObjectId:
        """A new one, unlike all others."""
        seconds = int(_clock.time()) % (1 << 32) << _RANDOM_BITS + _COUNTER_BITS
        return ObjectId((seconds | self._random | next(self._counter) % (1 << _COUNTER_BITS)).to_bytes(12, "big"))


_maker = _Maker()
new_object_id, begin = _maker.make, _maker.begin
