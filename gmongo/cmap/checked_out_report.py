"""Report of the connections in use, for pool statistics and for errors of check-out timeouts."""

from __future__ import annotations

from collections.abc import Collection
from heapq import nsmallest
from operator import attrgetter

from greenlet import greenlet

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo.cmap.connection import Connection


def checked_out_report(in_use: Collection[Connection], max_connections: int | None = None) -> list[DocumentDict]:
    """Describe at most `max_connections` connections in use, in the order of their check-outs."""
    now = _clock.monotonic()
    connections = list(in_use)  # atomic copy, because another thread may call this function
    count = len(connections) if max_connections is None else max_connections
    longest_held = nsmallest(count, connections, key=attrgetter("checked_out_at"))
    return [
        {
            "connection": connection.id,
            "greenlet": greenlet_name(greenlet_ref()),
            "operation": connection.last_command,
            "purpose": connection.purpose.value,
            "seconds": now - connection.checked_out_at,
        }
        for connection in longest_held
        if (greenlet_ref := connection.checked_out_by) is not None
    ]


def greenlet_name(user: greenlet | None) -> str:
    """Return the names of a greenlet and its function, without arguments, which may be secret or long."""
    if user is None:
        return "a deleted greenlet"
    name = getattr(user, "name", None)
    if name is None:
        return "main" if user.parent is None else type(user).__name__
    if user.dead:
        return f"{name}, which has ended"
    function_name = getattr(getattr(user, "_run", None), "__qualname__", None)
    return f"{name} ({function_name})" if function_name else str(name)
