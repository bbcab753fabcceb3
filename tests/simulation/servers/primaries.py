"""Wait until a PyMongo client knows the new primary."""

from __future__ import annotations

import time
from typing import Any


def await_another_primary(client: Any, address: str) -> None:
    """Wait until the PyMongo client has selected another primary than the server at `address`.

    A write before the end of this wait may fail. If a monitor marks a server as unknown after its selection for a
    write, PyMongo does not retry the write.
    """
    host, port = address.split(":")
    while client.primary in (None, (host, int(port))):
        time.sleep(0.01)
