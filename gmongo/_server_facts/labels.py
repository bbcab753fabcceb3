"""Error labels, which servers and drivers add to errors."""

from __future__ import annotations

# Transactions specification.
TRANSIENT = "TransientTransactionError"
UNKNOWN_RESULT = "UnknownTransactionCommitResult"

# Retryable Writes specification.
RETRYABLE_WRITE = "RetryableWriteError"
NO_WRITES_PERFORMED = "NoWritesPerformed"

# Change Streams specification, "Resumable Error".
RESUMABLE_CHANGE_STREAM = "ResumableChangeStreamError"

# Client Backpressure specification.
OVERLOADED = "SystemOverloadedError"
RETRYABLE = "RetryableError"
