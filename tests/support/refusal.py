"""Why a client cannot connect, however busy the machine is."""

from __future__ import annotations

from collections.abc import Callable
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
