"""Sets of error codes for which servers add error labels or other fields to replies."""

from __future__ import annotations

from gmongo.testing.command import error, name_of

__all__ = ["NOT_PRIMARY", "RESUMABLE_CHANGE_STREAM", "RETRYABLE", "TRANSIENT", "error", "name_of"]

# The error codes after which a client may retry a write or a commit.
RETRYABLE = frozenset({6, 7, 89, 91, 134, 189, 262, 317, 365, 9001, 10107, 11600, 11602, 13435, 13436})
# The error codes for which a replica set member adds a topologyVersion to the reply.
NOT_PRIMARY = frozenset({189, 10107, 11602, 13435, 13436})
# The error codes after which a client may retry the whole transaction.
TRANSIENT = frozenset({24, 112, 246, 267, 13388})
# The error codes after which a client may resume a change stream.
RESUMABLE_CHANGE_STREAM = frozenset(
    {6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436}
)
