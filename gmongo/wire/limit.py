"""Limits of time on code that may switch."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gevent import Timeout

_NO_LIMIT: AbstractContextManager[Any] = nullcontext()


def interrupt_after(seconds: float | None, error: BaseException, ref: bool = True) -> AbstractContextManager[Any]:
    """Interrupt the body of a ``with`` after `seconds` by raising `error` in it; None is no limit and costs no timer.

    The very object `error` is thrown, so a time-out of somebody else around the same code keeps its identity.

    :param ref: whether the timer keeps the hub running; False for background greenlets.
    """
    if seconds is None:
        return _NO_LIMIT
    if seconds <= 0:
        raise error
    return Timeout(seconds, error, ref=ref)
