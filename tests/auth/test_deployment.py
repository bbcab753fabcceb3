"""Clients authenticate at simulated deployments that have users, TLS and compression."""

from __future__ import annotations

import pytest

import gmongo
from gmongo.auth_oidc import OIDCCallback, OIDCCallbackResult
from gmongo.errors import OperationFailure
from gmongo.testing import Deployment, certificates
from tests.support.pools import checked_out

pytest.importorskip("trustme")

USERS = {"ann": "pencil", "I\u00adX": "I\u00adX"}
DEPLOYMENT_KINDS = ("standalone", "replica_set", "sharded", "load_balanced")


@pytest.mark.parametrize("deployment_kind", DEPLOYMENT_KINDS)
@pytest.mark.parametrize("tls", [False, True])
def test_each_deployment_kind_accepts_only_correct_password(deployment_kind, tls):
    with getattr(Deployment, deployment_kind)(users=USERS, tls=tls, compressors=["zlib"]) as deployment:
        with gmongo.MongoClient(deployment.uri, compressors="zlib") as client:
            client.db.c.insert_many([{"_id": number} for number in range(10)])
            assert client.db.c.count_documents({}) == 10
        with (
            gmongo.MongoClient(deployment.uri, password="wrong") as client,
            pytest.raises(OperationFailure, match="Authentication failed") as caught,
        ):
            client.db.c.find_one()
        assert caught.value.code == 18


def test_unacknowledged_bulk_write_raises_authentication_failure():
    with (
        Deployment.standalone(users=USERS) as deployment,
        gmongo.MongoClient(deployment.uri, password="wrong", w=0) as client,
        pytest.raises(OperationFailure, match="Authentication failed"),
    ):
        client.db.c.insert_many([{"_id": 1}])


@pytest.mark.parametrize("deployment_kind", ["standalone", "replica_set"])
def test_x509_authenticates_only_user_of_certificate(deployment_kind):
    path = certificates().issue("ann@example.com", common_name="ann")
    subject = _subject(path)
    with getattr(Deployment, deployment_kind)(users={subject: None}, tls=True) as deployment:
        options = {"authMechanism": "MONGODB-X509", "tlsCertificateKeyFile": path}
        for name in (None, subject):
            with gmongo.MongoClient(deployment.uri, username=name, **options) as client:
                assert client.db.c.find_one() is None
        with (
            gmongo.MongoClient(deployment.uri, username="CN=other", **options) as client,
            pytest.raises(OperationFailure, match="Authentication failed"),
        ):
            client.db.c.find_one()
        with (
            gmongo.MongoClient(deployment.uri, authMechanism="MONGODB-X509") as client,
            pytest.raises(OperationFailure),
        ):
            client.db.c.find_one()


def _subject(path):
    from cryptography import x509

    with open(path, "rb") as file:
        content = file.read()
    start = content.index(b"-----BEGIN CERTIFICATE")
    return x509.load_pem_x509_certificate(content[start:]).subject.rfc4514_string()


class NumberedTokenCallback(OIDCCallback):
    def __init__(self):
        self.returned_tokens = []

    def fetch(self, context):
        self.returned_tokens.append(f"token-{len(self.returned_tokens)}")
        return OIDCCallbackResult(self.returned_tokens[-1])


@pytest.mark.parametrize("property_name", ["OIDC_CALLBACK", "OIDC_HUMAN_CALLBACK"])
def test_oidc_reauthentication_fetches_second_token(property_name):
    tokens = NumberedTokenCallback()
    with (
        Deployment.standalone(oidc_tokens={"token-0": "ann", "token-1": "ann"}) as deployment,
        gmongo.MongoClient(
            deployment.uri,
            authMechanism="MONGODB-OIDC",
            authMechanismProperties={property_name: tokens},
        ) as client,
    ):
        client.db.c.insert_one({"_id": 1})
        assert tokens.returned_tokens == ["token-0"]
        [pool] = client._topology.pools()
        with checked_out(pool) as connection:
            connection.reauthenticate()
        assert client.db.c.find_one() == {"_id": 1}
        assert tokens.returned_tokens == ["token-0", "token-1"]
