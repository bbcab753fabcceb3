"""Programs that each use one extra. Each program is a function with the name of its extra.

The program `none` uses gmongo without extras. Each function imports only the packages of its extra,
because no other extra is installed.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import bson

import gmongo
from gmongo.errors import OperationFailure, ServerSelectionTimeoutError
from tests.support.proxies import CompressingProxy
from tests.support.server import ScriptedServer, cursor_reply

# Modules that cannot be imported without an extra.
MODULES_OF_EXTRAS = {
    "gmongo.status.screen", "gmongo.status.terminal", "gmongo.testing", "gmongo.wire.ocsp",
    "gmongo.wire.openssl", "gmongo._telemetry.tracing", "gmongo._telemetry.metrics",
    "gmongo._encryption",
}  # fmt: skip


def none() -> None:
    """Import the modules that need no extra, and run an operation."""
    for module in pkgutil.walk_packages(gmongo.__path__, "gmongo.", onerror=lambda _name: None):
        parts = module.name.split(".")
        parents = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        if not parents & MODULES_OF_EXTRAS and parts[-1] != "__main__":
            importlib.import_module(module.name)
    with (
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port, compressors="zlib", tls=False) as client,
    ):
        assert client.db.c.find_one({"_id": 5}) == {"_id": 5}


def snappy() -> None:
    _exchange_compressed_messages("snappy", 1)


def zstd() -> None:
    _exchange_compressed_messages("zstd", 3)


def _exchange_compressed_messages(name: str, compressor_id: int) -> None:
    """Send compressed requests, and receive compressed replies.

    :param name: the name of the compressor.
    :param compressor_id: the ID of the compressor in messages.
    """
    with ScriptedServer() as server:
        server.hello_extra = {"compression": [name]}
        with (
            CompressingProxy(server, [name], name) as proxy,
            gmongo.MongoClient("127.0.0.1", proxy.port, compressors=name) as client,
        ):
            text = "x" * 1000
            assert client.db.c.find_one({"_id": text}) == {"_id": text}
            assert compressor_id in proxy.compressor_ids


def aws() -> None:
    """Sign the nonce of the server with credentials from environment variables. The extra `aws`
    installs no package.
    """
    os.environ.update(AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="SECRET")

    def begin(command: dict[str, Any]) -> dict[str, Any]:
        nonce = bson.decode(command["payload"])["r"]
        payload = bson.encode({"s": nonce + bytes(32), "h": "sts.amazonaws.com"})
        return {"ok": 1, "conversationId": 1, "payload": payload, "done": False}

    replies = {
        "saslStart": begin,
        "saslContinue": {"ok": 1, "conversationId": 1, "payload": b"", "done": True},
    }
    with (
        ScriptedServer(replies) as server,
        gmongo.MongoClient("127.0.0.1", server.port, authMechanism="MONGODB-AWS") as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        signed = bson.decode(server.commands("saslContinue")[0]["payload"])
        assert signed["a"].startswith("AWS4-HMAC-SHA256 Credential=KEY/")


def gssapi() -> None:
    """Attempt to authenticate with Kerberos without a ticket.

    Check that the authentication fails.
    """
    os.environ["KRB5CCNAME"] = "FILE:/dev/null/no_ticket"
    with (
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port, username="ann@EXAMPLE.COM", authMechanism="GSSAPI") as client,
    ):
        try:
            client.db.c.find_one()
        except OperationFailure as error:
            assert "GSSAPI" in str(error), error
        else:
            raise AssertionError("a Kerberos ticket exists")


def ocsp() -> None:
    """Check the revocation of certificates by stapled responses, and by the responses of an OCSP
    responder.
    """
    from tests.support.ocsp import GOOD, REVOKED, Authority, Responder, StaplingServer

    authority = Authority()
    with tempfile.TemporaryDirectory() as folder, Responder() as responder:
        certified = authority.issue_server(responder.url)
        file = certified.write(Path(folder) / "server.pem")
        ca = authority.own.write(Path(folder) / "ca.pem")
        for staples in (True, False):
            for status in (GOOD, REVOKED):
                responder.body = authority.respond(certified, status)
                with StaplingServer(file, responder.body if staples else b"") as server:
                    assert _accepts_certificate(server.port, ca) == (status is GOOD), (
                        staples,
                        status,
                    )
        assert responder.requests


def _accepts_certificate(port: int, ca: str) -> bool:
    with gmongo.MongoClient("localhost", port, tlsCAFile=ca, serverSelectionTimeoutMS=1000) as client:
        try:
            return client.db.c.find_one({"_id": 1}) == {"_id": 1}
        except ServerSelectionTimeoutError as error:
            assert "revoked" in str(error), error
            return False


def encryption() -> None:
    """Encrypt and decrypt a value on the client with a local master key."""
    from gmongo.encryption import Algorithm, ClientEncryption

    keys: list[Any] = []

    def insert(command: dict[str, Any]) -> dict[str, Any]:
        keys.extend(command["documents"])
        return {"ok": 1, "n": len(command["documents"])}

    replies = {"insert": insert, "find": lambda _command: cursor_reply(keys)}
    providers = {"local": {"key": bytes(96)}}
    with (
        ScriptedServer(replies) as server,
        gmongo.MongoClient("127.0.0.1", server.port) as client,
        ClientEncryption(providers, "keys.vault", client, client.codec_options) as client_encryption,
    ):
        key = client_encryption.create_data_key("local")
        secret = client_encryption.encrypt("a secret", Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random, key)
        assert secret.subtype == 6
        assert b"a secret" not in secret
        assert client_encryption.decrypt(secret) == "a secret"


def status() -> None:
    """Show the states of the processes of an application in a terminal."""
    from gevent import subprocess

    from gmongo.status import publish

    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port) as client,
    ):
        client.db.command("ping")
        publish(folder)
        screen_text = subprocess.check_output([sys.executable, "-m", "gmongo.status", folder, "--once"], text=True)
        assert str(server.port) in screen_text, screen_text


def opentelemetry() -> None:
    """Create spans with only the API of OpenTelemetry. A real application would also install an SDK,
    which collects the spans.
    """
    from opentelemetry import trace

    names: list[str] = []

    class Tracer(trace.NoOpTracer):
        def start_span(self, name: str, *arguments: Any, **options: Any) -> trace.Span:
            names.append(name)
            return trace.NonRecordingSpan(trace.SpanContext(1, 1, is_remote=False))

    class Provider(trace.TracerProvider):
        def get_tracer(self, *_about: Any, **_options: Any) -> trace.Tracer:
            return Tracer()

    trace.set_tracer_provider(Provider())
    with (
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port, tracing={"enabled": True}, metrics=True) as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
    assert "find db.c" in names, names


def testing() -> None:
    """Use a simulated deployment with TLS and time zones, and use the embedded database."""
    import datetime

    from gmongo.testing import Deployment, EmbeddedDatabase

    hour = {"$dateToString": {"date": "$at", "timezone": "Europe/Berlin", "format": "%H"}}
    with Deployment.replica_set(tls=True) as deployment, gmongo.MongoClient(deployment.uri) as client:
        client.db.c.insert_one({"_id": 1, "at": datetime.datetime(2026, 7, 1, 12), "text": "gevent"})
        assert client.db.c.find_one({"text": {"$regex": "^ge"}}) is not None
        [found] = client.db.c.aggregate([{"$project": {"hour": hour}}])
        assert found == {"_id": 1, "hour": "14"}
    with EmbeddedDatabase() as database:
        _insert_and_find(database.uri)


def mongod() -> None:
    """Start a standalone of MongoDB's server. The extra installs the server from a wheel."""
    from gmongo.testing import EmbeddedDatabase

    with EmbeddedDatabase(engine="mongod") as database:
        _insert_and_find(database.uri)


def _insert_and_find(uri: str) -> None:
    with gmongo.MongoClient(uri) as client:
        client.db.c.insert_one({"_id": 1})
        assert client.db.c.find_one() == {"_id": 1}
