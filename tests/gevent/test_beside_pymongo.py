"""Scenes that are played with gmongo and, for comparison, with PyMongo under monkey-patching."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gmongo.testing import DeploymentProcess


@pytest.fixture(scope="module")
def played():
    """driver -> scene -> what came of it."""
    with DeploymentProcess("--replica-set", "1") as deployment:
        uri = deployment.uri.partition("?")[0]
        return {driver: play(driver, uri) for driver in ("gmongo", "pymongo")}


def play(driver: str, uri: str):
    command = [sys.executable, "-m", "tests.switching.beside", driver, uri]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout)


def test_interrupted_commands(played):
    assert played["gmongo"]["interrupted"] == {"same object": True, "no end event": 0, "blamed": 0}


def test_held_loop(played):
    assert played["gmongo"]["held"] == {"blamed": 0}
