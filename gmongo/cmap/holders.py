"""What holds the connections of a pool, for the error of a check-out that waited in vain."""

from __future__ import annotations

from collections.abc import Collection
from heapq import nsmallest
from operator import attrgetter

from greenlet import greenlet

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo.cmap.connection import Connection


def holders(in_use: Collection[Connection], most: int | None = None) -> list[DocumentDict]:
    """The holders of connections, the longest holder first.

    :param in_use: the connections that are checked out.
    :param most: how many to show; None is all.
    :returns: for each: ``connection`` (its ID), ``greenlet`` (the name of the greenlet, and what it runs),
        ``operation`` (the last command, None before the first), ``purpose``, and ``seconds`` since the check-out.
    """
    now = _clock.monotonic()
    found = list(in_use)  # in one step: another thread may look while connections are checked out
    longest = nsmallest(len(found) if most is None else most, found, key=attrgetter("checked_out_at"))
    return [
        {
            "connection": connection.id,
            "greenlet": greenlet_name(holder()),
            "operation": connection.last_command,
            "purpose": connection.purpose.value,
            "seconds": now - connection.checked_out_at,
        }
        for connection in longest
        if (holder := connection.holder) is not None
    ]


def greenlet_name(user: greenlet | None) -> str:
    """A greenlet by name. Its repr would show arguments, which may be secret, or long."""
    if user is None:
        return "a greenlet that is gone"
    name = getattr(user, "name", None)
    if name is None:
        return "main" if user.parent is None else type(user).__name__
    if user.dead:
        return f"{name}, which has ended"
    runs = getattr(getattr(user, "_run", None), "__qualname__", None)
    return f"{name} ({runs})" if runs else str(name)
