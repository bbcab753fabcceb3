"""What a limit of time means for a cursor (Client Side Operations Timeout, "Cursors")."""

from __future__ import annotations

from gmongo._short_text import short
from gmongo.errors import ConfigurationError
from gmongo.execution.executor import Executor

CURSOR_LIFETIME = "cursor_lifetime"
ITERATION = "iteration"


def limits_each_iteration(mode: object, executor: Executor, tailable: bool, writes: bool = False) -> bool:
    """Whether each iteration of a cursor has its limit for itself, rather than the cursor as a whole.

    :param mode: what the application asks for; None is the default for the kind of cursor.
    :param executor: that runs the operations of the cursor.
    :param tailable: whether the cursor goes on at the end of its documents.
    :param writes: whether the command writes its result elsewhere.
    :raises ValueError: there is no such mode.
    :raises ConfigurationError: the mode is not possible for such a cursor, or there is no limit.
    """
    if mode is None:
        return tailable
    if mode not in (CURSOR_LIFETIME, ITERATION):
        raise ValueError(f'timeout_mode must be "{CURSOR_LIFETIME}" or "{ITERATION}", not {short(mode)}')
    if not executor.has_limit:
        raise ConfigurationError("timeout_mode says what a limit of time means, but there is none: set timeout_ms")
    if tailable and mode == CURSOR_LIFETIME:
        raise ConfigurationError(f'a tailable cursor has no end: its timeout_mode must be "{ITERATION}"')
    if writes and mode == ITERATION:
        raise ConfigurationError(f'a pipeline that writes returns nothing: its timeout_mode cannot be "{ITERATION}"')
    return bool(mode == ITERATION)
