"""The servers for the comparison of gmongo and PyMongo. The parameter of the fixture ``runner``
selects the server.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

EXTERNAL_SERVERS = ["MONGODB_URI"] if "MONGODB_URI" in os.environ else []
SERVERS = ["simulation", "nx-27017", *EXTERNAL_SERVERS]


def only_on(*servers: str) -> Any:
    """Return a pytest mark that runs a test only on the named servers."""
    return pytest.mark.parametrize("runner", servers, indirect=True)


# Mark for tests that run only on the simulation, because the server does not affect the outcome.
on_the_simulation = only_on("simulation")
