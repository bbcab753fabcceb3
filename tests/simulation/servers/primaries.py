"""Wait until a PyMongo client has discovered a new primary."""

from __future__ import annotations

import time
from typing import Any


def await_another_primary(client: Any, address: str) -> None:
    """Wait until the PyMongo client selects a primary whose address is not `address`.

    A write before the selection of the new primary may fail. PyMongo does not retry a write if a
    monitor marks the selected server as unknown before the write.
    """
    host, port = address.split(":")
    while client.primary in (None, (host, int(port))):
        time.sleep(0.01)
