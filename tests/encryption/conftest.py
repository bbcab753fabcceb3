"""A deployment for both drivers, and a master key that both know."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pymongo
import pytest
from bson.codec_options import CodecOptions

from gmongo import MongoClient
from gmongo.testing import DeploymentProcess

pytest.importorskip("pymongocrypt", reason="pymongocrypt is not installed")

# The one of the official tests.
LOCAL_KEY = base64.b64decode(
    "Mng0NCt4ZHVUYUJCa1kxNkVyNUR1QURhZ2h2UzR2d2RrZzh0cFBwM3R6NmdWMDFBMUN3YkQ5aXRRMkhGRGdQV09wOGVNYUMxT2k3NjZKelhaQmRC"
    "ZGJkTXVyZG9uSjFk"
)
LOCAL = {"local": {"key": LOCAL_KEY}}
VAULT = "keyvault.datakeys"
OPTIONS: CodecOptions[Any] = CodecOptions()


@pytest.fixture(scope="module")
def deployment():
    with DeploymentProcess("--replica-set", "1") as running:
        yield running


@pytest.fixture
def client(deployment):
    with MongoClient(deployment.uri) as made:
        made.keyvault.datakeys.drop()
        yield made


@pytest.fixture
def encryption(client):
    from gmongo.encryption import ClientEncryption

    with ClientEncryption(LOCAL, VAULT, client, OPTIONS) as made:
        yield made


@pytest.fixture
def theirs(deployment):
    """PyMongo on the same deployment, with the same key."""
    from pymongo.encryption import ClientEncryption

    def connect():
        client: Any = pymongo.MongoClient(deployment.uri)
        return client, ClientEncryption(LOCAL, VAULT, client, OPTIONS)

    found, encryption = connect()
    yield SimpleNamespace(client=found, encryption=encryption)
    encryption.close()
    found.close()
