"""Retry limits and backoff after overload errors (Client Backpressure).

These classes only calculate. The retry loop acts on the results.
"""

from __future__ import annotations

from collections.abc import Callable

from gmongo import _random

MAX_RETRIES = 5
BASE_BACKOFF = 0.1  # seconds
MAX_BACKOFF = 10.0  # seconds


def backoff(retries: int, base: float, jitter: float) -> float:
    """Return the backoff before a retry in seconds (BP-20 to BP-25).

    :param retries: number of retries before this one.
    :param base: greatest backoff before the first retry in seconds; it doubles with each retry.
    :param jitter: random number from 0 to 1.
    """
    return jitter * min(MAX_BACKOFF, base * 2.0**retries)


class TokenBucket:
    """Token bucket that limits the retries of a client after overload errors (BP-55 to BP-60).

    A retry costs one token, and a success returns 0.1 tokens. So a client whose operations mostly fail stops adding
    load. The bucket counts tenths of tokens as integers, because floating-point sums of 0.1 are inexact.
    """

    CAPACITY = 1000

    __slots__ = ("missing",)

    def __init__(self) -> None:
        self.missing = 0  # tenths of tokens. 0 is the usual case, without a deposit

    @property
    def tokens(self) -> float:
        """Number of tokens."""
        return (self.CAPACITY * 10 - self.missing) / 10

    def consume(self) -> bool:
        """Take one token, and return False if less than one token is left."""
        if self.missing > (self.CAPACITY - 1) * 10:
            return False
        self.missing += 10
        return True

    def deposit(self, tenths: int) -> None:
        """Add tenths of a token, up to the capacity."""
        self.missing = max(0, self.missing - tenths)


class BackpressurePolicy:
    """Token bucket and counters of one client.

    :param max_retries: greatest number of retries of one operation.
    :param base: greatest backoff before the first retry in seconds.
    :param retargeting: True to deprioritize an overloaded server; an overloaded mongos is always deprioritized.
    :param jitter: returns random numbers from 0 to 1.
    """

    __slots__ = (
        "base",
        "bucket",
        "errors",
        "exhausted",
        "jitter",
        "max_retries",
        "others",
        "retargeting",
        "retries",
        "slept",
    )

    def __init__(
        self,
        max_retries: int,
        base: float,
        retargeting: bool,
        jitter: Callable[[], float] = lambda: _random.random(),
    ) -> None:
        self.max_retries = max_retries
        self.base = base
        self.retargeting = retargeting
        self.jitter = jitter
        self.bucket = TokenBucket()
        self.retries = 0
        self.others = 0  # retries for another reason, such as an election
        self.errors = 0  # failed attempts
        self.slept = 0.0
        self.exhausted = 0

    def delay(self, retries: int) -> float:
        """Return a random backoff before a retry in seconds."""
        return backoff(retries, self.base, self.jitter())

    def stats(self) -> dict[str, float]:
        """Return ``tokens`` left, ``retries``, seconds ``slept``, and ``exhausted`` (failures for lack of tokens)."""
        return {
            "tokens": self.bucket.tokens,
            "retries": self.retries,
            "slept": self.slept,
            "exhausted": self.exhausted,
        }
