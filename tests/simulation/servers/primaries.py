"""What tests with PyMongo wait for when a primary goes."""

from __future__ import annotations

import time
from typing import Any


def await_another_primary(client: Any, address: str) -> None:
    """Wait until PyMongo knows of another primary than the one at `address`.

    A write that PyMongo sends meanwhile may fail: when a monitor finds, between the choice of a server and the sending,
    that it is gone or no longer primary, PyMongo takes it for one whose writes cannot be tried again.
    """
    host, port = address.split(":")
    while client.primary in (None, (host, int(port))):
        time.sleep(0.01)
