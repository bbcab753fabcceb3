"""Pin the client to the first processor, and the server to the second processor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOWED_PROCESSORS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _pin(position: int) -> None:
    if len(_ALLOWED_PROCESSORS) > 1:
        os.sched_setaffinity(0, {_ALLOWED_PROCESSORS[position]})


def pin_client() -> None:
    """Pin this process to the first allowed processor, if two or more processors are allowed."""
    _pin(0)


def pin_server() -> None:
    """Pin this process to the second allowed processor, if two or more processors are allowed."""
    _pin(1)


@contextmanager
def pinned_to_server_processor() -> Iterator[None]:
    """During the block, pin this process as :func:`pin_server` does."""
    pin_server()
    try:
        yield
    finally:
        if _ALLOWED_PROCESSORS:
            os.sched_setaffinity(0, _ALLOWED_PROCESSORS)
