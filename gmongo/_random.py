"""Random values. Callers import this module instead of its functions, which tests replace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import urandom
from random import Random, random, sample
from uuid import UUID

__all__ = ["random", "repeatable", "sample", "urandom", "uuid4"]


def uuid4() -> UUID:
    return UUID(bytes=urandom(16), version=4)


@contextmanager
def repeatable(seed: int | float | str) -> Iterator[None]:
    """Use one generator with the given seed for all random values of this module within the ``with`` block."""
    global random, sample, urandom
    original_functions, generator = (random, sample, urandom), Random(seed)
    random, sample, urandom = generator.random, generator.sample, generator.randbytes
    try:
        yield
    finally:
        random, sample, urandom = original_functions
