"""Source of randomness of the driver and of simulated deployments.

Callers use ``_random.random()`` and the other functions of this module. Callers read the function from this module at
each call. A test can therefore install a seeded generator, as :class:`gmongo.testing.VirtualTime` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import urandom
from random import Random, random, sample
from uuid import UUID

__all__ = ["random", "repeatable", "sample", "urandom", "uuid4"]


def uuid4() -> UUID:
    """Return a random UUID."""
    return UUID(bytes=urandom(16), version=4)


@contextmanager
def repeatable(seed: int | float | str) -> Iterator[None]:
    """Use one generator with the given seed for all random values of this module within the ``with`` block."""
    global random, sample, urandom
    before, generator = (random, sample, urandom), Random(seed)
    random, sample, urandom = generator.random, generator.sample, generator.randbytes
    try:
        yield
    finally:
        random, sample, urandom = before
