"""Servers for the comparison of the drivers, selected by the parameter ``runner``."""

from __future__ import annotations

import os
from typing import Any

import pytest

NAMED = ["MONGODB_URI"] if "MONGODB_URI" in os.environ else []
SERVERS = ["simulation", "nx-27017", *NAMED]


def on(*servers: str) -> Any:
    """Run a test only on these servers."""
    return pytest.mark.parametrize("runner", servers, indirect=True)


# For tests of the driver that do not depend on the server.
on_the_simulation = on("simulation")
