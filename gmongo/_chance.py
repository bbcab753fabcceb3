"""Where the driver and its simulated deployments get chance from.

Whatever draws lots or makes an identifier calls ``_chance.random()`` and its neighbours. The names are looked up in
this module at each call, so that a seeded generator can be put there, as :class:`gmongo.testing.VirtualTime` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import urandom
from random import Random, random, sample
from uuid import UUID

__all__ = ["random", "repeatable", "sample", "urandom", "uuid4"]


def uuid4() -> UUID:
    """A random UUID."""
    return UUID(bytes=urandom(16), version=4)


@contextmanager
def repeatable(seed: int | float | str) -> Iterator[None]:
    """While this lasts, all chance comes from one generator with this seed."""
    global random, sample, urandom
    before, generator = (random, sample, urandom), Random(seed)
    random, sample, urandom = generator.random, generator.sample, generator.randbytes
    try:
        yield
    finally:
        random, sample, urandom = before
