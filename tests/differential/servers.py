"""The servers for the comparison of gmongo and PyMongo. The parameter of the fixture ``runner`` selects the server."""

from __future__ import annotations

import os
from typing import Any

import pytest

NAMED = ["MONGODB_URI"] if "MONGODB_URI" in os.environ else []
SERVERS = ["simulation", "nx-27017", *NAMED]


def on(*servers: str) -> Any:
    """Return a mark that runs a test only on these servers."""
    return pytest.mark.parametrize("runner", servers, indirect=True)


# The mark for tests whose outcomes do not depend on the server.
on_the_simulation = on("simulation")
