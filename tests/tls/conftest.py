"""Fixtures that start TLS servers and select the TLS library."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import gmongo._tls
from tests.support.tls import TlsServer, server_context


@pytest.fixture
def server(files: SimpleNamespace) -> Any:
    with TlsServer(server_context(files.server)) as server:
        yield server


@pytest.fixture(autouse=True, params=["ssl", "pyOpenSSL"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run each test with the module `ssl`, and with pyOpenSSL if the packages for OCSP are
    installed.
    """
    if request.param == "ssl":
        monkeypatch.setattr(gmongo._tls, "_OCSP_PACKAGES", ("no_package_of_this_name",))
    else:
        for package in gmongo._tls._OCSP_PACKAGES:
            pytest.importorskip(package)
    return request.param
