"""Which processor runs what: the client on the first one allowed, the server on the second."""

from __future__ import annotations

import os


def _pin(position: int) -> None:
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) > 1:
        os.sched_setaffinity(0, {allowed[position]})


def pin_client() -> None:
    """Keep this process on the first allowed processor, when there are two or more."""
    _pin(0)


def pin_server() -> None:
    """Keep this process on the second allowed processor, when there are two or more."""
    _pin(1)
