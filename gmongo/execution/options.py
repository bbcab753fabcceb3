"""The options of the executor."""

from __future__ import annotations

from dataclasses import dataclass

from gmongo.execution.overload import BASE_BACKOFF, MAX_RETRIES


@dataclass(frozen=True)
class ExecutionOptions:
    """What is retried, and for how long.

    :param retry_reads: whether reads are tried again.
    :param retry_writes: whether writes are tried again.
    :param timeout: limit for one operation in all, in seconds; 0 is without limit, None leaves it to the other limits.
    :param max_adaptive_retries: tries of an operation after errors of an overloaded server.
    :param base_backoff: the longest wait before the first of them, in seconds.
    :param overload_retargeting: whether an overloaded server is passed over then, other than a mongos.
    """

    retry_reads: bool = True
    retry_writes: bool = True
    timeout: float | None = None
    max_adaptive_retries: int = MAX_RETRIES
    base_backoff: float = BASE_BACKOFF
    overload_retargeting: bool = False
