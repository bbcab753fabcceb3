"""The servers on which the drivers are compared; tests choose among them by the parameter ``scene``."""

from __future__ import annotations

import os
from typing import Any

import pytest

NAMED = ["MONGODB_URI"] if "MONGODB_URI" in os.environ else []
SERVERS = ["simulation", "nx-27017", *NAMED]


def on(*servers: str) -> Any:
    """Run a test on these servers alone."""
    return pytest.mark.parametrize("scene", servers, indirect=True)


# For what is the driver's business alone, or hidden by what a server refuses.
on_the_simulation = on("simulation")
