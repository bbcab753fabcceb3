"""A server behind TLS."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import gmongo._tls
from tests.support.tls import TlsServer, server_context


@pytest.fixture
def server(files: SimpleNamespace) -> Any:
    """A server with a good certificate."""
    with TlsServer(server_context(files.server)) as server:
        yield server


@pytest.fixture(autouse=True, params=["ssl", "pyOpenSSL"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What encrypts. pyOpenSSL does when the packages of the extra are there."""
    if request.param == "ssl":
        monkeypatch.setattr(gmongo._tls, "_PACKAGES", ("no_package_of_this_name",))
    else:
        for package in gmongo._tls._PACKAGES:
            pytest.importorskip(package)
    return request.param
