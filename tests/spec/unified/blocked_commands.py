"""Make the delays of blocked commands longer in files that test timeouts.

In these files, the server delays its reply for slightly longer than the timeout of the client. If a
busy machine suspends the process for this time, the reply arrives before the client checks the
timeout, and the test fails.
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
"""Names of files in which each blocked command must time out."""

_NEVER_MS = 60_000


def leave_unanswered(part: Any) -> None:
    """Set each ``blockTimeMS`` in a part of a file to 60 seconds."""
    if isinstance(part, list):
        for each in part:
            leave_unanswered(each)
    elif isinstance(part, dict):
        if "blockTimeMS" in part:
            part["blockTimeMS"] = _NEVER_MS
        for each in part.values():
            leave_unanswered(each)
