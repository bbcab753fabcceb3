"""Generator of ObjectIds for documents without an ``_id`` (ObjectId specification).

Identifiers of one process and second ascend until the counter overflows. The driver does not use the
generator of ``bson``, because its lock takes more time than the encoding of a document.
"""

from __future__ import annotations

from itertools import count

from bson.objectid import ObjectId

from gmongo import _clock, _random
from gmongo._fork import register_after_fork

_COUNTER_BITS = 24
_RANDOM_BITS = 40


class _ObjectIdGenerator:
    """Generator of ObjectIds. An ObjectId has 4 bytes of seconds, 5 random bytes of the process and 3 counter bytes."""

    def __init__(self) -> None:
        self.restart()
        register_after_fork(self)

    def restart(self) -> None:
        """Choose new random bytes and a new initial count, as in a new process."""
        self._random = int.from_bytes(_random.urandom(_RANDOM_BITS // 8), "big") << _COUNTER_BITS
        self._counter = count(int.from_bytes(_random.urandom(_COUNTER_BITS // 8), "big"))

    mark_forked = restart

    def make(self) -> ObjectId:
        seconds = int(_clock.time()) % (1 << 32) << _RANDOM_BITS + _COUNTER_BITS
        return ObjectId((seconds | self._random | next(self._counter) % (1 << _COUNTER_BITS)).to_bytes(12, "big"))


_generator = _ObjectIdGenerator()
new_object_id, restart = _generator.make, _generator.restart
