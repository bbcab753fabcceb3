"""What the client does when servers are overloaded (Client Backpressure): how often it tries again, and when.

Pure arithmetic; the retry loop acts on it.
"""

from __future__ import annotations

from collections.abc import Callable

from gmongo import _chance

MAX_RETRIES = 5
BASE_BACKOFF = 0.1  # seconds
MAX_BACKOFF = 10.0  # seconds


def backoff(retries: int, base: float, jitter: float) -> float:
    """Seconds to wait before another try (BP-20 to BP-25).

    :param retries: how many there have been already.
    :param base: the longest wait before the first one, in seconds; it doubles from one to the next.
    :param jitter: from 0 to 1.
    """
    return jitter * min(MAX_BACKOFF, base * 2.0**retries)


class TokenBucket:
    """What all operations of a client together may spend on retries after overload errors (BP-55 to BP-60).

    A retry costs a token, and successes bring a tenth of one back each, so that a client whose operations mostly fail
    stops adding to the load. It counts in tenths, because ten times 0.1 is not 1 in floating point.
    """

    CAPACITY = 1000

    __slots__ = ("missing",)

    def __init__(self) -> None:
        self.missing = 0  # tenths of tokens; mostly there is none, and nothing to put in

    @property
    def tokens(self) -> float:
        """What is there now."""
        return (self.CAPACITY * 10 - self.missing) / 10

    def consume(self) -> bool:
        """Take a token out; False if there is not a whole one."""
        if self.missing > (self.CAPACITY - 1) * 10:
            return False
        self.missing += 10
        return True

    def deposit(self, tenths: int) -> None:
        """Put tenths of a token in, up to the capacity."""
        self.missing = max(0, self.missing - tenths)


class Overload:
    """The state and the counts of one client.

    :param max_retries: of one operation.
    :param base: the longest wait before the first retry, in seconds.
    :param retargeting: whether an overloaded server is passed over if there are others; a mongos is in any case.
    :param jitter: where the random numbers from 0 to 1 come from.
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
        jitter: Callable[[], float] = lambda: _chance.random(),
    ) -> None:
        self.max_retries = max_retries
        self.base = base
        self.retargeting = retargeting
        self.jitter = jitter
        self.bucket = TokenBucket()
        self.retries = 0
        self.others = 0  # further tries for another reason, such as an election
        self.errors = 0  # tries that failed, whether another one followed or not
        self.slept = 0.0
        self.exhausted = 0

    def delay(self, retries: int) -> float:
        """Seconds to wait before another try, at random."""
        return backoff(retries, self.base, self.jitter())

    def stats(self) -> dict[str, float]:
        """The counts now: ``tokens`` left, ``retries`` made, seconds ``slept``, and how often an operation failed
        because no token was left (``exhausted``).
        """
        return {
            "tokens": self.bucket.tokens,
            "retries": self.retries,
            "slept": self.slept,
            "exhausted": self.exhausted,
        }
