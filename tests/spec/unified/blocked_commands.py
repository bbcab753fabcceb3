"""Make the delays of blocked commands longer in files that test timeouts.

The files delay replies for slightly longer than the client timeout. If a busy machine suspends the
process during the delay, the reply arrives before the client checks its timeout, and the test fails.
"""

from __future__ import annotations

from typing import Any

FILES_WITH_TIMEOUTS = frozenset(
    {
        "retryability-legacy-timeouts",
        "auth-network-timeout-error",
        "backpressure-network-timeout-fail-replicaset",
        "backpressure-network-timeout-fail-single",
        "find-network-timeout-error",
    }
)
"""Names of files in which each blocked command must time out."""

_LONG_BLOCK_MS = 60_000


def lengthen_blocks(value: Any) -> None:
    """Set each ``blockTimeMS`` in a value of a file to 60 seconds."""
    if isinstance(value, list):
        for each in value:
            lengthen_blocks(each)
    elif isinstance(value, dict):
        if "blockTimeMS" in value:
            value["blockTimeMS"] = _LONG_BLOCK_MS
        for each in value.values():
            lengthen_blocks(each)
