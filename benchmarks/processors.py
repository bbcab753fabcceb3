"""Which processor runs what: the client on the first one allowed, the server on the second."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOWED = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _pin(position: int) -> None:
    if len(_ALLOWED) > 1:
        os.sched_setaffinity(0, {_ALLOWED[position]})


def pin_client() -> None:
    """Keep this process on the first allowed processor, when there are two or more."""
    _pin(0)


def pin_server() -> None:
    """Keep this process on the second allowed processor, when there are two or more."""
    _pin(1)


@contextmanager
def beside_server() -> Iterator[None]:
    """Stay on the second allowed processor for so long."""
    pin_server()
    try:
        yield
    finally:
        if _ALLOWED:
            os.sched_setaffinity(0, _ALLOWED)
