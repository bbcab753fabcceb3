"""Waits of tests with PyMongo for a new primary."""

from __future__ import annotations

import time
from typing import Any


def await_another_primary(client: Any, address: str) -> None:
    """Wait until PyMongo knows of another primary than the one at `address`.

    A write during this wait may fail. If a monitor marks the server as unknown after its selection, PyMongo sends the
    write as not retryable.
    """
    host, port = address.split(":")
    while client.primary in (None, (host, int(port))):
        time.sleep(0.01)
