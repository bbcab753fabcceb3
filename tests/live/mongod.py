"""Start `mongod` servers for a run of ``tests.live``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from cryptography import x509

from gmongo import MongoClient
from gmongo.testing import EmbeddedDatabase, EmbeddedReplicaSet, certificates

MECHANISMS = ("SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509")
_USER, _PASSWORD = "runner", "p@ss:word"


class StartedDeployment(NamedTuple):
    """A running deployment of `mongod` servers.

    :param uri: the connection string, with the user and the options of the run.
    :param name: the name of the replica set, or the address of the standalone.
    :param replica_set: the object that can kill, suspend and restart the members; None for a
        standalone.
    """

    uri: str
    name: str
    replica_set: EmbeddedReplicaSet | None


@contextmanager
def run_mongod(
    member_count: int,
    *,
    program: str | None = None,
    tls: bool = False,
    mechanism: str | None = None,
    compressor: str | None = None,
    accepts_version_2: bool = True,
    api_version: str | None = None,
) -> Iterator[StartedDeployment]:
    """Start a deployment, and close the deployment at the end of the block.

    :param member_count: the number of members of a replica set; 0 for a standalone.
    :param program: the path of `mongod`; the installed program by default.
    :param tls: True if clients must use TLS.
    :param mechanism: the authentication mechanism, one of :data:`MECHANISMS`; None if clients need
        not authenticate.
    :param compressor: the compressor that the URI contains; None for no compression.
    :param accepts_version_2: True if the servers accept version 2 of the Stable API, which official
        tests use.
    :param api_version: the Stable API version that each command must have; None if commands need no
        version.
    """
    settings: dict[str, Any] = {
        "tls": tls or mechanism == "MONGODB-X509",
        "users": {_USER: _PASSWORD} if mechanism else {},
        "require_api_version": api_version is not None,
        # The server refreshes sessions at this interval, and then closes the cursors of ended
        # sessions. The default interval is five minutes.
        "parameters": {"acceptApiVersion2": accepts_version_2, "logicalSessionRefreshMillis": 3000},
    }
    options = {"compressors": compressor} if compressor else {}
    if member_count:
        with EmbeddedReplicaSet(member_count, program=program, **settings) as deployment:
            yield StartedDeployment(_prepare_uri(deployment.uri, mechanism, options), deployment.name, deployment)
    else:
        with EmbeddedDatabase(engine="mongod", program=program, **settings) as database:
            yield StartedDeployment(_prepare_uri(database.uri, mechanism, options), f"127.0.0.1:{database.port}", None)


def _prepare_uri(uri: str, mechanism: str | None, options: dict[str, str]) -> str:
    if mechanism == "MONGODB-X509":
        certificate = certificates().issue("runner@example.com", common_name="runner")
        _create_certificate_user(uri, certificate)
        uri = uri.replace(f"{_USER}:{quote(_PASSWORD, safe='')}@", "")
        options = {**options, "tlsCertificateKeyFile": certificate}
    if mechanism:
        options = {**options, "authMechanism": mechanism}
    query = urlencode(options)
    return f"{uri}{'&' if '?' in uri else '?'}{query}" if query else uri


def _create_certificate_user(uri: str, certificate: str) -> None:
    subject = x509.load_pem_x509_certificates(Path(certificate).read_bytes())[0].subject.rfc4514_string()
    with MongoClient[Any](uri) as client:
        roles = [{"role": "root", "db": "admin"}]
        client["$external"].command("createUser", subject, roles=roles, writeConcern={"w": "majority"})
