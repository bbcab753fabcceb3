"""A port at which nothing listens, and why a client cannot connect, however busy the machine is."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gmongo.errors import ServerSelectionTimeoutError


def why_refused(client_of: Callable[[int], Any]) -> str:
    """What the error of a client's first operation says once a check has ended; before, it has nothing to say.

    :param client_of: makes a client that waits so many milliseconds for a server.
    """
    for patience in (300, 3_000, 30_000):
        with client_of(patience) as client, pytest.raises(ServerSelectionTimeoutError) as caught:
            client.db.c.find_one({"_id": 1})
        if "error=" in str(caught.value):
            break
    return str(caught.value)


@contextmanager
def refusing() -> Iterator[int]:
    """A port of the loopback interface that refuses connections: it is bound, so that no other can listen there."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
