"""Servers that do not answer before the client has given up, in files that are about that.

There a server waits for so many milliseconds, and the client gives up a little earlier. On a busy machine both moments
may pass before the process runs again, and then the reply comes in time. What the files mean is that it does not come.
"""

from __future__ import annotations

from typing import Any

LEFT_UNANSWERED = frozenset(
    {
        "retryability-legacy-timeouts",
        "auth-network-timeout-error",
        "backpressure-network-timeout-fail-replicaset",
        "backpressure-network-timeout-fail-single",
        "find-network-timeout-error",
    }
)
"""Names of files. In each, whatever a fail point blocks is to time out."""

_NEVER_MS = 60_000


def leave_unanswered(part: Any) -> None:
    """Let blocked commands of a test file wait until their connection is closed, which the client does."""
    if isinstance(part, list):
        for each in part:
            leave_unanswered(each)
    elif isinstance(part, dict):
        if "blockTimeMS" in part:
            part["blockTimeMS"] = _NEVER_MS
        for each in part.values():
            leave_unanswered(each)
