"""Meaning of a cursor's time limit (Client Side Operations Timeout, "Cursors")."""

from __future__ import annotations

from gmongo._short_text import short
from gmongo.errors import ConfigurationError
from gmongo.execution.executor import Executor

CURSOR_LIFETIME = "cursor_lifetime"
ITERATION = "iteration"


def limits_each_iteration(mode: object, executor: Executor, tailable: bool, writes: bool = False) -> bool:
    """Return True if the time limit applies to each iteration of a cursor, and False if to the whole cursor.

    :param mode: the application's timeout mode; None uses the default of the cursor type.
    :param executor: the executor of the cursor.
    :param tailable: True if the cursor stays open after its last document.
    :param writes: True if the command writes its result to a collection.
    :raises ValueError: the mode does not exist.
    :raises ConfigurationError: the cursor does not support the mode, or has no time limit.
    """
    if mode is None:
        return tailable
    if mode not in (CURSOR_LIFETIME, ITERATION):
        raise ValueError(f'timeout_mode must be "{CURSOR_LIFETIME}" or "{ITERATION}", not {short(mode)}')
    if not executor.has_limit:
        raise ConfigurationError("timeout_mode needs a time limit: set timeout_ms")
    if tailable and mode == CURSOR_LIFETIME:
        raise ConfigurationError(f'a tailable cursor has no end: its timeout_mode must be "{ITERATION}"')
    if writes and mode == ITERATION:
        raise ConfigurationError(f'a pipeline that writes returns nothing: its timeout_mode cannot be "{ITERATION}"')
    return bool(mode == ITERATION)
