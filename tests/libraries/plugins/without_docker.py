"""A plugin of pytest for suites that start their servers with Docker: the servers are there already."""

from __future__ import annotations

import pytest


class _Services:
    def start(self, *_: object) -> None:
        """Nothing to start."""

    def wait_for_service(self, *_: object, **__: object) -> None:
        """Nothing to wait for."""


@pytest.fixture(scope="session")
def docker_services() -> _Services:
    """What pytest-docker would give."""
    return _Services()
