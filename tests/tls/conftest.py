"""A server behind TLS."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.tls import TlsServer, server_context


@pytest.fixture
def server(files: SimpleNamespace) -> Any:
    """A server with a good certificate."""
    with TlsServer(server_context(files.server)) as server:
        yield server
