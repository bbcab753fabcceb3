"""Pytest plugin for tests that start servers with Docker.

With this plugin, the tests use servers that are already running.
"""

from __future__ import annotations

import pytest


class _Services:
    def start(self, *_: object) -> None:
        """Do nothing, because the server already runs."""

    def wait_for_service(self, *_: object, **__: object) -> None:
        """Do nothing, because the server is ready."""


@pytest.fixture(scope="session")
def docker_services() -> _Services:
    """Replace the fixture ``docker_services`` of pytest-docker, and start no container."""
    return _Services()
