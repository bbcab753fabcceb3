"""The loop is never held for long, compared with PyMongo under monkey-patching in the same run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gmongo.testing import DeploymentProcess

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def stalls():
    """driver -> activity -> longest stall in milliseconds, and turns of a ticker."""
    with DeploymentProcess("--standalone") as plain, DeploymentProcess("--standalone", "--tls") as encrypted:
        return {driver: measure(driver, plain.uri, encrypted.uri) for driver in ("gmongo", "pymongo")}


def measure(driver: str, uri: str, tls_uri: str) -> dict[str, dict[str, float]]:
    command = [sys.executable, "-m", "tests.gevent.switching.stalls", driver, uri, tls_uri]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=100).stdout)


def test_while_a_batch_of_15_megabytes_is_read_and_iterated(stalls):
    assert stalls["gmongo"]["read"]["stall"] < stalls["pymongo"]["read"]["stall"] * 0.75
    assert stalls["gmongo"]["read"]["turns"] > 10


def test_while_an_application_does_nothing_but_iterate(stalls):
    assert stalls["gmongo"]["iterate"]["stall"] < stalls["pymongo"]["iterate"]["stall"] * 0.75
    assert stalls["gmongo"]["iterate"]["turns"] > 10


def test_while_10000_documents_are_inserted(stalls):
    assert stalls["gmongo"]["insert"]["stall"] < stalls["pymongo"]["insert"]["stall"]
    assert stalls["gmongo"]["insert"]["turns"] > 10


def test_while_tls_connects(stalls):
    # OpenSSL's part of a handshake is the same for both; PyMongo also loads the certificates again.
    assert stalls["gmongo"]["tls"]["stall"] <= stalls["pymongo"]["tls"]["stall"] * 1.5
