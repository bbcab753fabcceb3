"""The servers on which the drivers are compared; tests choose among them by the parameter ``scene``."""

from __future__ import annotations

import os

import pytest

SERVERS = ["simulation", "nx-27017", *(["MONGODB_URI"] if "MONGODB_URI" in os.environ else [])]

# For what is the driver's business alone, or hidden by what a server refuses.
on_the_simulation = pytest.mark.parametrize("scene", ["simulation"], indirect=True)
