"""A port that refuses connections, and the error of a client that cannot connect."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gmongo.errors import ServerSelectionTimeoutError


def selection_error(create_client: Callable[[int], Any]) -> str:
    """Return the text of the server selection error of an operation.

    If a server check failed before the timeout, the text contains the error of the check.
    """
    # On a busy machine, the first timeout can expire before a server check has failed.
    for timeout_ms in (300, 3_000, 30_000):
        with (
            create_client(timeout_ms) as client,
            pytest.raises(ServerSelectionTimeoutError) as caught,
        ):
            client.db.c.find_one({"_id": 1})
        if "error=" in str(caught.value):
            break
    return str(caught.value)


@contextmanager
def refused_port() -> Iterator[int]:
    """Yield the number of a port that refuses connections. A socket without ``listen`` reserves the
    port.
    """
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]
