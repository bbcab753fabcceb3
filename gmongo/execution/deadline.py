"""The limit of time for whole operations (Client-side Operations Timeout).

A deadline is a moment on the clock of :mod:`gmongo._clock`, read once, when an operation begins, and handed down.
An infinite one sets no limit, but does replace the older time-outs, as ``timeoutMS=0`` demands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from math import inf

from gmongo import _clock
from gmongo._documents import Document, DocumentDict
from gmongo._short_text import short
from gmongo.errors import ConfigurationError
from gmongo.wire.limit import limit_text, remaining, seconds_of

_current: ContextVar[float | None] = ContextVar("gmongo_deadline", default=None)

current_deadline = _current.get
"""The deadline set by an enclosing :func:`until`, or None."""


def deadline_after(seconds: float | None, option: str) -> float | None:
    """The deadline of a limit: infinity for 0, which is without limit, and None for None, where no limit is set.

    :param option: the option or function that sets the limit, for errors.
    """
    if seconds is None:
        return None
    return seconds_of((seconds, option), _clock.monotonic() + seconds) if seconds else inf


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Have everything in the block end by `deadline`, or by that of a block around it."""
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
    """Limit the time of all operations in the block, taken together::

        with gmongo.timeout(5):
            orders.insert_one(order)
            customers.update_one(filter, update)

    The limit covers everything: finding a server, waiting for a connection, the network, the server's work, retries.
    The errors that it ends in have ``error.timeout`` set. Inside another such block it can only shorten the time.

    Specification: Client Side Operations Timeout.

    :param seconds: 0 is without limit, but does replace the older time-outs such as ``socketTimeoutMS``; None changes
        nothing.
    :raises TypeError: `seconds` is not a number.
    :raises ValueError: it is negative.
    """
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float))):
        raise TypeError(f"timeout must be a number of seconds or None, not {seconds!r}")
    if seconds is not None and seconds < 0:
        raise ValueError(f"timeout must be 0 or more seconds, not {seconds!r}")
    return until(deadline_after(seconds, "gmongo.timeout"))


def checked_timeout(name: str, milliseconds: object) -> float | None:
    """A limit that was given in milliseconds, in seconds; None stays None.

    :param name: of the option, for the message.
    :raises TypeError: it is not a number.
    :raises ValueError: it is negative.
    """
    if milliseconds is None:
        return None
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        raise TypeError(f"{name} must be a number of milliseconds or None, not {short(milliseconds)}")
    if not milliseconds >= 0:
        raise ValueError(f"{name} must be 0 or more milliseconds, not {milliseconds!r}")
    return milliseconds / 1000


def without_wtimeout(write_concern: Document) -> DocumentDict:
    """A write concern without its time-out, which a deadline replaces."""
    return {name: value for name, value in write_concern.items() if name != "wtimeout"}


def check_await_time(max_await_time_ms: int | None, deadline: float | None) -> None:
    """Refuse to have a server wait for new documents for longer than there is time.

    :raises ConfigurationError: it would.
    """
    left = remaining(deadline)
    # Rounded, since a moment less another is seldom exactly what was added.
    if left is not None and max_await_time_ms is not None and max_await_time_ms >= round(left * 1000, 3):
        raise ConfigurationError(
            f"max_await_time_ms must be less than the time that is left of {limit_text(deadline)}, "
            f"but {max_await_time_ms} ms is not less than {max(0.0, left) * 1000:.0f} ms"
        )
