"""Port without a listener, and error messages of clients that cannot connect."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gmongo.errors import ServerSelectionTimeoutError


def selection_error(client_of: Callable[[int], Any]) -> str:
    """Return the server selection error of the first operation, after one server check has ended.

    :param client_of: Creates a client for a server selection timeout in milliseconds.
    """
    for patience in (300, 3_000, 30_000):  # a busy machine may need more time for the first check
        with client_of(patience) as client, pytest.raises(ServerSelectionTimeoutError) as caught:
            client.db.c.find_one({"_id": 1})
        if "error=" in str(caught.value):
            break
    return str(caught.value)


@contextmanager
def refused_port() -> Iterator[int]:
    """Yield a bound port of the loopback interface that refuses connections."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
