"""Deadlines of whole operations (Client Side Operations Timeout).

Each operation computes its deadline at its start, as a time of :mod:`gmongo._clock`. With an infinite
deadline (``timeoutMS=0``), an operation has no time limit, and ignores older options such as
``socketTimeoutMS``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from contextvars import ContextVar
from math import inf
from types import TracebackType

from gmongo import _clock
from gmongo._documents import Document, DocumentDict
from gmongo._truncated_repr import short
from gmongo.errors import ConfigurationError
from gmongo.wire.timeout import limit_text, remaining, seconds_of

_current: ContextVar[float | None] = ContextVar("gmongo_deadline", default=None)

current_deadline = _current.get
"""Return the deadline of the enclosing :func:`until` block, or None."""


def deadline_after(seconds: float | None, option: str) -> float | None:
    """Return the deadline `seconds` from now, infinity for 0 (no limit), or None for None (unset)."""
    if seconds is None:
        return None
    return seconds_of((seconds, option), _clock.monotonic() + seconds) if seconds else inf


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Limit the operations in the block by `deadline`, or an earlier deadline of an outer block."""
    outer = _current.get()
    if deadline is None or (outer is not None and outer <= deadline):
        yield
        return
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)


def timeout(seconds: float | None) -> AbstractContextManager[None]:
    """Limit the total time of all operations in the block.

    ::

        with gmongo.timeout(5):
            orders.insert_one(order)
            customers.update_one(filter, update)

    The limit includes server selection, the connection check-out, the network, the command on the
    server, and retries. After the timeout of an operation, ``error.timeout`` is True. A nested block
    can only shorten the limit. As a decorator of a function, ``timeout`` limits each call.

    Specification: Client Side Operations Timeout.

    :param seconds: time limit in seconds. 0 means no limit, and disables older options such as
        ``socketTimeoutMS``. None keeps the current time limit.
    :raises TypeError: `seconds` is not a number.
    :raises ValueError: `seconds` is negative.
    """
    return _LimitedBlock(checked_seconds(seconds))


class _LimitedBlock(ContextDecorator):
    """Context manager that limits the time of each of its blocks, in sequence or nested."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._blocks: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        block = until(deadline_after(self._seconds, "gmongo.timeout"))
        block.__enter__()
        self._blocks.append(block)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocks.pop().__exit__(kind, error, trace)

    def _recreate_cm(self) -> _LimitedBlock:
        return _LimitedBlock(self._seconds)  # concurrent calls of a decorated function have separate deadlines


def checked_seconds(seconds: float | None) -> float | None:
    """Check that `seconds` is None or a number of at least 0, and return `seconds`."""
    return checked_timeout("timeout", seconds, "seconds")


def checked_timeout(name: str, limit: object, unit: str = "milliseconds") -> float | None:
    """Check that `limit` is None or a number of at least 0, and return `limit` in seconds."""
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        raise TypeError(f"{name} must be a number of {unit} or None, not {short(limit)}")
    if not limit >= 0:
        raise ValueError(f"{name} must be 0 or more {unit}, not {limit!r}")
    return limit if unit == "seconds" else limit / 1000


def without_wtimeout(write_concern: Document) -> DocumentDict:
    """Return a copy of a write concern without ``wtimeout``, which a deadline replaces."""
    return {name: value for name, value in write_concern.items() if name != "wtimeout"}


def check_await_time(max_await_time_ms: int | None, deadline: float | None) -> None:
    """Raise ConfigurationError unless ``max_await_time_ms`` ends before the deadline."""
    time_left = remaining(deadline)
    # Round the milliseconds, because floating-point subtraction is inexact.
    if time_left is not None and max_await_time_ms is not None and max_await_time_ms >= round(time_left * 1000, 3):
        raise ConfigurationError(
            f"max_await_time_ms must be less than the time that is left of {limit_text(deadline)}, "
            f"but {max_await_time_ms} ms is not less than {max(0.0, time_left) * 1000:.0f} ms"
        )
