"""Retry limits and backoff after overload errors (Client Backpressure), without waits and I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gmongo import _random

MAX_RETRIES = 5
BASE_BACKOFF = 0.1  # seconds
MAX_BACKOFF = 10.0  # seconds


def backoff(retries: int, base: float, jitter: float) -> float:
    """Return the seconds to wait before a retry (BP-20 to BP-25). Each of the earlier `retries` doubles the maximum."""
    return jitter * min(MAX_BACKOFF, base * 2.0**retries)


class TokenBucket:
    """Token bucket that limits the retries of a client after overload errors (BP-55 to BP-60).

    A retry takes one token, and a successful operation returns 0.1 tokens. If most operations fail, the client soon
    stops retrying. The bucket counts tenths of tokens, because floating-point sums of 0.1 are inexact.
    """

    CAPACITY = 1000

    def __init__(self) -> None:
        self.missing = 0  # tenths of tokens that retries have taken and successful operations have not returned

    @property
    def tokens(self) -> float:
        return (self.CAPACITY * 10 - self.missing) / 10

    def consume(self) -> bool:
        """Take one token. Return False if less than one token is left."""
        if self.missing > (self.CAPACITY - 1) * 10:
            return False
        self.missing += 10
        return True

    def deposit(self, tenths: int) -> None:
        """Put `tenths` tenths of a token into the bucket, up to the capacity."""
        self.missing = max(0, self.missing - tenths)


@dataclass(eq=False, repr=False)
class BackpressurePolicy:
    """Settings, token bucket and counters for the retries of one client."""

    max_retries: int
    base: float  # maximum backoff in seconds before the first retry
    retargeting: bool  # True if retries deprioritize an overloaded server. Retries always deprioritize a failed mongos
    jitter: Callable[[], float] = lambda: _random.random()
    bucket: TokenBucket = field(default_factory=TokenBucket)
    retries: int = 0
    others: int = 0  # number of retries after network errors and elections, which took no token
    errors: int = 0  # number of failed attempts
    slept: float = 0.0
    exhausted: int = 0

    def stats(self) -> dict[str, float]:
        """Return the counters of :meth:`MongoClient.retry_stats`."""
        return {"tokens": self.bucket.tokens, "retries": self.retries, "slept": self.slept, "exhausted": self.exhausted}
