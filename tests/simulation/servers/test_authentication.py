"""Tests of simulated deployments with users, authentication mechanisms, TLS and compression."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl

import bson
import pytest
from gevent import socket

from gmongo.testing import Deployment, certificates
from tests.simulation.servers.wire_client import WireClient, standalone_client

USERS = {"ada": "pencil"}


@pytest.fixture
def deployment():
    with Deployment.standalone(users=USERS) as deployment:
        yield deployment


@pytest.fixture
def client(deployment):
    with WireClient(deployment.members[0].address) as client:
        yield client


def last_scram_messages(client, server_first, client_first, nonce, name, password, mechanism):
    """Return the last SCRAM message of the client, and the reply that the server must send."""
    fields = dict(part.split("=", 1) for part in server_first.split(","))
    assert fields["r"].startswith(nonce)
    digest = "sha256" if mechanism == "SCRAM-SHA-256" else "sha1"
    if digest == "sha1":
        password = hashlib.md5(f"{name}:mongo:{password}".encode()).hexdigest()
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", digest)
    without_proof = f"c=biws,r={fields['r']}"
    auth_message = f"{client_first},{server_first},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), auth_message, digest)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    server_signature = hmac.digest(hmac.digest(salted, b"Server Key", digest), auth_message, digest)
    return f"{without_proof},p={proof}".encode(), b"v=" + base64.b64encode(server_signature)


def first_step(mechanism, name="ada", **options):
    client_first = f"n={name},r=abcdefgh"
    return client_first, {"saslStart": 1, "mechanism": mechanism, "payload": b"n,," + client_first.encode(), **options}


def log_in(client, mechanism, name="ada", password="pencil", skip_empty_exchange=False):
    client_first, start = first_step(mechanism, name, options={"skipEmptyExchange": skip_empty_exchange})
    reply = client.run(start)
    if not reply["ok"]:
        return reply
    server_first = reply["payload"].decode()
    final, verifier = last_scram_messages(client, server_first, client_first, "abcdefgh", name, password, mechanism)
    conversation_id = reply["conversationId"]
    reply = client.run({"saslContinue": 1, "conversationId": conversation_id, "payload": final})
    if reply["ok"]:
        assert reply["payload"] == verifier
        assert reply["done"] is skip_empty_exchange
    if reply["ok"] and not skip_empty_exchange:
        reply = client.run({"saslContinue": 1, "conversationId": conversation_id, "payload": b""})
    return reply


def test_command_without_authentication_is_refused(deployment, client):
    assert deployment.uri.startswith("mongodb://ada:pencil@127.0.0.1:")
    reply = client.run({"find": "c"}, "db")
    assert (reply["code"], reply["codeName"]) == (13, "Unauthorized")
    assert client.run({"hello": 1})["ok"] == client.run({"ping": 1})["ok"] == 1


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
@pytest.mark.parametrize("skip_empty_exchange", [False, True])
def test_scram_authenticates_user(client, mechanism, skip_empty_exchange):
    reply = log_in(client, mechanism, skip_empty_exchange=skip_empty_exchange)
    assert reply["done"] is True
    assert client.run({"find": "c"}, "db")["ok"] == 1
    assert client.run({"logout": 1})["ok"] == 1
    assert client.run({"find": "c"}, "db")["code"] == 13


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
@pytest.mark.parametrize(("name", "password"), [("ada", "wrong"), ("nobody", "pencil")])
def test_authentication_with_wrong_credentials_returns_error(client, mechanism, name, password):
    reply = log_in(client, mechanism, name, password)
    assert (reply["code"], reply["codeName"]) == (18, "AuthenticationFailed")
    assert client.run({"find": "c"}, "db")["code"] == 13


@pytest.mark.parametrize("payload", [b"", b"\xff\xfe", b"n,,", b"n,,nonsense", b"y,,n=ada"])
def test_malformed_sasl_message_returns_error(client, payload):
    reply = client.run({"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload})
    assert reply["code"] == 18


def test_unknown_mechanism_returns_error(client):
    assert client.run({"saslStart": 1, "mechanism": "GSSAPI", "payload": b""})["code"] == 334


def test_sasl_continue_without_start_returns_error(client):
    assert client.run({"saslContinue": 1, "conversationId": 1, "payload": b""})["code"] == 17


def test_hello_lists_mechanisms_of_user(client):
    reply = client.run({"hello": 1, "saslSupportedMechs": "admin.ada"})
    assert reply["saslSupportedMechs"] == ["SCRAM-SHA-1", "SCRAM-SHA-256"]
    assert "saslSupportedMechs" not in client.run({"hello": 1, "saslSupportedMechs": "admin.nobody"})


def test_hello_with_speculative_authentication_returns_first_scram_reply(client):
    client_first, start = first_step("SCRAM-SHA-256", options={"skipEmptyExchange": True}, db="admin")
    reply = client.run({"hello": 1, "speculativeAuthenticate": start})["speculativeAuthenticate"]
    server_first = reply["payload"].decode()
    final, _ = last_scram_messages(client, server_first, client_first, "abcdefgh", "ada", "pencil", "SCRAM-SHA-256")
    step = {"saslContinue": 1, "conversationId": reply["conversationId"], "payload": final}
    assert client.run(step)["done"] is True
    assert client.run({"find": "c"}, "db")["ok"] == 1


def test_hello_omits_reply_to_failed_speculative_authentication(client):
    _, start = first_step("SCRAM-SHA-256", "nobody", db="admin")
    reply = client.run({"hello": 1, "speculativeAuthenticate": start})
    assert reply["ok"] == 1 and "speculativeAuthenticate" not in reply


def test_user_commands_create_and_drop_users(deployment, client):
    log_in(client, "SCRAM-SHA-256")
    assert client.run({"createUser": "bob", "pwd": "one", "roles": ["read"], "mechanisms": ["SCRAM-SHA-1"]})["ok"] == 1
    assert client.run({"createUser": "bob", "pwd": "one", "roles": []})["code"] == 51003
    assert client.run({"updateUser": "bob", "pwd": "two"})["code"] == 115
    with WireClient(deployment.members[0].address) as other:
        assert log_in(other, "SCRAM-SHA-256", "bob", "one")["code"] == 18
        assert log_in(other, "SCRAM-SHA-1", "bob", "one")["done"] is True
    assert client.run({"dropUser": "bob"})["ok"] == 1
    assert client.run({"dropUser": "bob"})["code"] == 11


def test_plain_mechanism_authenticates_user():
    parameters = {"authenticationMechanisms": ["PLAIN"]}
    with standalone_client(users=USERS, parameters=parameters) as client:
        start = {"saslStart": 1, "mechanism": "PLAIN", "payload": b"\x00ada\x00wrong"}
        assert client.run(start, "$external")["code"] == 18
        assert client.run({**start, "payload": b"\x00ada\x00pencil"}, "$external")["done"] is True


def test_oidc_token_authenticates_user():
    with standalone_client(oidc_tokens={"token": "ada"}) as client:
        assert client.run({"find": "c"}, "db")["code"] == 13
        start = {"saslStart": 1, "mechanism": "MONGODB-OIDC"}
        reply = client.run({**start, "payload": bson.encode({"n": "ada"})}, "$external")
        assert reply["done"] is False and "issuer" in bson.decode(reply["payload"])
        step = {"saslContinue": 1, "conversationId": reply["conversationId"]}
        assert client.run({**step, "payload": bson.encode({"jwt": "other"})}, "$external")["code"] == 18
        assert client.run({**start, "payload": bson.encode({"jwt": "token"})}, "$external")["done"] is True
        assert client.run({"find": "c"}, "db")["ok"] == 1


class TlsClient(WireClient):
    def __init__(self, address, certificate=None, ca_file=None):
        from gevent import ssl as gevent_ssl

        context = gevent_ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(ca_file or certificates().ca_file)
        if certificate:
            context.load_cert_chain(certificate)
        super().__init__(address)
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")


def test_tls_handshake_with_generated_certificate_succeeds():
    with Deployment.replica_set(tls=True) as deployment:
        assert "tls=true" in deployment.uri and "tlsCAFile=" in deployment.uri
        with TlsClient(deployment.members[0].address) as client:
            big = {"insert": "c", "documents": [{"_id": 1, "x": "y" * 300_000}]}
            assert client.run(big, "db")["n"] == 1
            assert client.run({"find": "c"}, "db")["cursor"]["firstBatch"] == big["documents"]


def test_tls_handshake_with_context_of_application_succeeds():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates().issue("127.0.0.1"))
    with Deployment.standalone(tls=context) as deployment, TlsClient(deployment.members[0].address) as client:
        assert client.run({"ping": 1})["ok"] == 1


def test_tls_port_does_not_reply_without_tls():
    with Deployment.standalone(tls=True) as deployment:
        with WireClient(deployment.members[0].address) as client:
            client.send({"ping": 1})
            with pytest.raises((EOFError, ConnectionError, AssertionError)):
                client.receive()
        with TlsClient(deployment.members[0].address) as client:
            assert client.run({"ping": 1})["ok"] == 1


def test_x509_authenticates_subject_of_certificate():
    certificate = certificates().issue("ada@example.com", common_name="ada")
    command = {"authenticate": 1, "mechanism": "MONGODB-X509"}
    with Deployment.standalone(tls=True, users={"CN=bob": None}) as deployment:
        address = deployment.members[0].address
        with TlsClient(address) as client:
            assert "no verified subject" in client.run(command, "$external")["errmsg"]
        with TlsClient(address, certificate) as client:
            reply = client.run(command, "$external")
            subject = "CN=ada,OU=tests,O=gmongo"
            # MongoDB 6.0.5 sends this error.
            assert (reply["code"], reply["errmsg"]) == (11, f'Could not find user "{subject}" for db "$external"')
    with (
        Deployment.standalone(tls=True, users={subject: None}) as deployment,
        TlsClient(deployment.members[0].address, certificate) as client,
    ):
        hello = client.run({"hello": 1, "speculativeAuthenticate": {**command, "db": "$external"}})
        assert hello["speculativeAuthenticate"] == {"dbname": "$external", "user": subject}
        assert client.run({"find": "c"}, "db")["ok"] == 1


@pytest.mark.parametrize("name", ["zlib", "snappy", "zstd"])
def test_reply_uses_compressor_of_request(name):
    from gmongo.testing.simulation import compression
    from gmongo.testing.simulation.framing import write_reply

    compressor = compression.COMPRESSORS_BY_NAME[name]
    with Deployment.standalone(compressors=[name]) as deployment, WireClient(deployment.members[0].address) as client:
        reply = client.run({"hello": 1, "compression": ["lzma", name]})
        assert reply["compression"] == [name]
        command = {"ping": 1, "comment": "x" * 2000, "$db": "admin"}
        client.socket.sendall(compression.compress(write_reply(2013, 77, 0, 0, command), compressor))
        header = client.read(16)
        assert int.from_bytes(header[12:], "little") == 2012
        payload = client.read(int.from_bytes(header[:4], "little") - 16)
        opcode, data, used = compression.decompress(payload)
        assert (opcode, used.name, bson.decode(data[5:])["ok"]) == (2013, name, 1)


def test_hello_reply_omits_compressors_that_server_does_not_support():
    with standalone_client(compressors=["zlib"]) as client:
        assert "compression" not in client.run({"hello": 1, "compression": ["zstd"]})


def test_unknown_compressor_raises_value_error():
    with pytest.raises(ValueError, match="'rar'"):
        Deployment.standalone(compressors=["rar"])


def test_connection_succeeds_after_other_connection_closed_during_tls_handshake():
    with Deployment.standalone(tls=True) as deployment:
        host, port = deployment.members[0].address.split(":")
        socket.create_connection((host, int(port))).close()
        with TlsClient(deployment.members[0].address) as client:
            assert client.run({"ping": 1})["ok"] == 1
