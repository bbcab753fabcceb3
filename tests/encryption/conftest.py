"""Fixtures that start a deployment, and create clients and `ClientEncryption` objects of gmongo and
PyMongo.
"""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pymongo
import pytest
from bson.codec_options import CodecOptions

from gmongo import MongoClient
from gmongo.testing import DeploymentProcess
from tests.support.mongocryptd import Mongocryptd

pytest.importorskip("pymongocrypt", reason="pymongocrypt is not installed")

# The local master key of the official Client-Side Encryption tests.
LOCAL_KEY = base64.b64decode(
    "Mng0NCt4ZHVUYUJCa1kxNkVyNUR1QURhZ2h2UzR2d2RrZzh0cFBwM3R6NmdWMDFBMUN3YkQ5aXRRMkhGRGdQV09wOGVNYUMxT2k3NjZKelhaQmRC"
    "ZGJkTXVyZG9uSjFk"
)
KMS_PROVIDERS = {"local": {"key": LOCAL_KEY}}
VAULT = "keyvault.datakeys"
CODEC_OPTIONS: CodecOptions[Any] = CodecOptions()


@pytest.fixture(scope="module")
def deployment():
    with DeploymentProcess("--replica-set", "1") as running:
        yield running


@pytest.fixture
def client(deployment):
    with MongoClient(deployment.uri) as client:
        client.keyvault.datakeys.drop()
        yield client


@pytest.fixture
def mongocryptd():
    with Mongocryptd() as running:
        yield running


@pytest.fixture
def encryption(client):
    from gmongo.encryption import ClientEncryption

    with ClientEncryption(KMS_PROVIDERS, VAULT, client, CODEC_OPTIONS) as encryption:
        yield encryption


@pytest.fixture
def peer(deployment):
    """Yield a client and a `ClientEncryption` of PyMongo, which use the same deployment and the same
    master key as the fixtures of gmongo.
    """
    from pymongo.encryption import ClientEncryption

    client: Any = pymongo.MongoClient(deployment.uri)
    with client, ClientEncryption(KMS_PROVIDERS, VAULT, client, CODEC_OPTIONS) as encryption:
        yield SimpleNamespace(client=client, encryption=encryption)
