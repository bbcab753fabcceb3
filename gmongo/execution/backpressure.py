"""Retry limits and backoff after overload errors (Client Backpressure).

These classes only calculate: the retry loop waits and retries.
"""

from __future__ import annotations

from collections.abc import Callable

from gmongo import _random

MAX_RETRIES = 5
BASE_BACKOFF = 0.1  # seconds
MAX_BACKOFF = 10.0  # seconds


def backoff(retries: int, base: float, jitter: float) -> float:
    """Return the seconds to wait before a retry (BP-20 to BP-25).

    :param retries: number of earlier retries of the operation.
    :param base: greatest backoff before the first retry in seconds; the limit doubles with each retry.
    :param jitter: random number from 0 to 1, by which the greatest backoff is multiplied.
    """
    return jitter * min(MAX_BACKOFF, base * 2.0**retries)


class TokenBucket:
    """Token bucket that limits the retries of a client after overload errors (BP-55 to BP-60).

    A retry costs one token, and a successful operation returns 0.1 tokens. A client whose operations mostly fail soon
    has no token, and does not add load by retries. The bucket counts tenths of tokens as integers, because
    floating-point sums of 0.1 are inexact.
    """

    CAPACITY = 1000

    __slots__ = ("missing",)

    def __init__(self) -> None:
        self.missing = 0  # missing tenths of tokens. The value is usually 0, and then no deposit is necessary

    @property
    def tokens(self) -> float:
        """Number of tokens that are left."""
        return (self.CAPACITY * 10 - self.missing) / 10

    def consume(self) -> bool:
        """Take one token, and return True. Return False if less than one token is left."""
        if self.missing > (self.CAPACITY - 1) * 10:
            return False
        self.missing += 10
        return True

    def deposit(self, tenths: int) -> None:
        """Return tenths of a token to the bucket, up to the capacity."""
        self.missing = max(0, self.missing - tenths)


class BackpressurePolicy:
    """Settings, token bucket and counters for the retries of one client.

    :param max_retries: greatest number of retries of one operation.
    :param base: greatest backoff before the first retry in seconds.
    :param retargeting: True to deprioritize an overloaded server; a mongos that returned an error is always
        deprioritized.
    :param jitter: function that returns a random number from 0 to 1.
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
        self.others = 0  # retries without a token, after network errors and elections
        self.errors = 0  # failed attempts
        self.slept = 0.0
        self.exhausted = 0

    def delay(self, retries: int) -> float:
        """Return a random backoff before a retry in seconds."""
        return backoff(retries, self.base, self.jitter())

    def stats(self) -> dict[str, float]:
        """Return the counters of the client.

        ``tokens`` is the number of tokens that are left. ``retries`` counts the retries that took a token.
        ``slept`` is the sum of the backoffs in seconds. ``exhausted`` counts the operations that failed because
        no token was left.
        """
        return {
            "tokens": self.bucket.tokens,
            "retries": self.retries,
            "slept": self.slept,
            "exhausted": self.exhausted,
        }
