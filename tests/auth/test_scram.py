"""SCRAM conversations (RFC 5802): test vectors of the specifications, malformed messages, key
derivation and SASLprep.
"""

from __future__ import annotations

import _thread
import base64
import hashlib
import hmac
import threading
from typing import Any

import gevent
import pytest
from gevent import get_hub

from gmongo import MongoClient
from gmongo.auth import scram
from gmongo.auth.authenticator import Authenticator
from gmongo.auth.credential import DEFAULT, Credential
from gmongo.auth.scram import ScramConversation, ScramKeys, prepared_password, saslprep
from gmongo.errors import ConfigurationError, OperationFailure, ProtocolError, PyMongoError
from gmongo.testing import Deployment
from tests.support.cases import with_cases
from tests.support.wait import eventually

# Test vectors of the driver specification: the nonce of the client, and the four messages of the
# conversation. The second vector is also the example of RFC 7677.
VECTORS = {
    "SCRAM-SHA-1": (
        "fyko+d2lbbFgONRv9qkxdawL",
        "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,p=MC2T8BvbmWRckDw8oWl5IVghwCY=",
        "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
    ),
    "SCRAM-SHA-256": (
        "rOprNGfwEbeRWgbNEkqO",
        "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
}
NONCE, _, SERVER_FIRST, _, SERVER_FINAL = VECTORS["SCRAM-SHA-256"]
# Replacements for names in braces in the messages of the data file.
MESSAGE_PARTS = {
    "nonce": NONCE,
    "first": SERVER_FIRST,
    "salt": "W22ZaJ0SNY7soEsUEjb6gQ==",
    "proof": SERVER_FINAL[2:],
    "digits": "9" * 5000,
}
ERROR_CLASSES: dict[str, type[Exception]] = {
    "ProtocolError": ProtocolError,
    "OperationFailure": OperationFailure,
}


def scram_conversation(
    mechanism: str = "SCRAM-SHA-256",
    password: str = "pencil",
    username: str = "user",
    nonce: str = NONCE,
) -> ScramConversation:
    return ScramConversation("admin", mechanism, username, password, ScramKeys(), lambda: nonce)


@pytest.mark.parametrize("mechanism", VECTORS)
def test_scram_conversation_equals_specification_vector(mechanism: str) -> None:
    nonce, *messages = VECTORS[mechanism]
    first, server_first, final, server_final = (message.encode() for message in messages)
    client = scram_conversation(mechanism, nonce=nonce)
    command = client.first_command()
    assert command == {
        "saslStart": 1,
        "mechanism": mechanism,
        "payload": first,
        "options": {"skipEmptyExchange": True},
    }
    command = client.next_command({"conversationId": 7, "done": False, "payload": server_first})
    assert command == {"saslContinue": 1, "conversationId": 7, "payload": final}
    payload_text = base64.b64encode(server_final).decode()  # a payload may be a base64 text
    assert client.next_command({"conversationId": 7, "done": True, "payload": payload_text}) is None


def test_reserved_characters_of_username_are_escaped() -> None:
    assert scram_conversation(username="a=b,c").first_payload() == b"n,,n=a=3Db=2Cc,r=" + NONCE.encode()


def test_fifty_conversations_have_different_nonces() -> None:
    nonces = {ScramConversation("admin", "SCRAM-SHA-1", "u", "p", ScramKeys()).first_payload() for _ in range(50)}
    assert len(nonces) == 50


@with_cases
def test_invalid_first_message_of_server_raises_error_before_key_derivation(
    message: str, error: str, description: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *_: pytest.fail("derives keys"))
    client = scram_conversation()
    client.first_payload()
    with pytest.raises(ERROR_CLASSES[error], match=rf"{description}(?!\w)"):
        client.step(message.format(**MESSAGE_PARTS).encode(), False)


@pytest.mark.parametrize("message", [b"\xff\xfe", b"v=\xff"])
def test_message_that_is_not_utf_8_raises_protocol_error(message: bytes) -> None:
    client = scram_conversation()
    client.first_payload()
    with pytest.raises(ProtocolError, match="not UTF-8"):
        client.step(message, False)


@with_cases
def test_invalid_last_message_of_server_raises_error(message: str, error: str, description: str) -> None:
    client = scram_conversation()
    client.first_payload()
    client.step(SERVER_FIRST.encode(), False)
    with pytest.raises(ERROR_CLASSES[error], match=rf"{description}(?!\w)"):
        client.step(message.format(**MESSAGE_PARTS).encode(), True)


def server_final(server_first: str, client_final: bytes) -> bytes:
    """Without driver code, compute the last message of a server from the password of the user."""
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", base64.b64decode(MESSAGE_PARTS["salt"]), 4096)
    key = hmac.digest(salted, b"Server Key", "sha256")
    without_proof = client_final[: client_final.index(b",p=")]
    signed = b",".join((f"n=user,r={NONCE}".encode(), server_first.encode(), without_proof))
    return b"v=" + base64.b64encode(hmac.digest(key, signed, "sha256"))


@pytest.mark.parametrize("extension", ["", ",x=new", ",x=1,y=2"])
@pytest.mark.parametrize("last_extension", [b"", b",x=new", b",v=AAAA"])
def test_optional_extensions_of_server_messages_are_ignored(extension: str, last_extension: bytes) -> None:
    client = scram_conversation()
    client.first_payload()
    first = SERVER_FIRST + extension
    final = server_final(first, client.step(first.encode(), False))
    assert client.step(final + last_extension, True) == b""


def test_prohibited_password_raises_configuration_error_without_password() -> None:
    with pytest.raises(ConfigurationError, match="with SCRAM-SHA-256: a control character is prohibited") as e:
        prepared_password("SCRAM-SHA-256", "user", "se\u0007cret")
    assert "cret" not in str(e.value)


def test_default_mechanism_accepts_password_that_only_sha_1_permits() -> None:
    password = "\U0001f512"  # not assigned in Unicode 3.2
    with pytest.raises(ConfigurationError, match="with SCRAM-SHA-256"):
        Authenticator(Credential("SCRAM-SHA-256", "admin", "ada", password, {}))
    login = Authenticator(Credential(DEFAULT, "admin", "ada", password, {})).login("h")
    assert login.hello_fields()["speculativeAuthenticate"]["mechanism"] == "SCRAM-SHA-256"
    commands: list[Any] = []

    def run(_database: str, command: Any) -> Any:
        commands.append(command)
        nonce = commands[0]["payload"].partition(b"r=")[2]
        return {"payload": b"r=%sx,s=c2FsdA==,i=4096" % nonce, "conversationId": 1, "done": False}

    # The server repeats its first message.
    with pytest.raises(ProtocolError, match=r"the server's last message is not well formed$"):
        login.authenticate(run, {"saslSupportedMechs": ["SCRAM-SHA-1"]}, None)
    assert commands[0]["mechanism"] == "SCRAM-SHA-1" and b",p=" in commands[1]["payload"]


# Tests of key derivation and SASLprep


class DelayedDerivation:
    """Replacement for the key derivation. Each derivation waits until the test sets `gate`."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.gate = threading.Event()
        self._derive = scram.derive_keys

    def derive(self, *arguments: Any) -> scram.Keys:
        self.started.append(1)
        self.gate.wait(60)
        return self._derive(*arguments)


@pytest.fixture
def derivation(monkeypatch: pytest.MonkeyPatch) -> Any:
    derivation = DelayedDerivation()
    monkeypatch.setattr(scram, "derive_keys", derivation.derive)
    yield derivation
    derivation.gate.set()


@pytest.mark.real_time
def test_key_derivation_blocks_neither_event_loop_nor_threadpool_of_hub(
    derivation: DelayedDerivation,
) -> None:
    """Start more concurrent derivations than the thread pool of the hub has threads."""
    keys, pool, thread_count = ScramKeys(), get_hub().threadpool, _thread._count()
    jobs = [gevent.spawn(keys.derive, "sha256", b"p", b"%d" % number, 1) for number in range(pool.maxsize + 2)]
    eventually(lambda: len(derivation.started) >= pool.maxsize)
    with gevent.Timeout(5):
        assert pool.apply(int) == 0
    derivation.gate.set()
    gevent.joinall(jobs, timeout=30, raise_error=True)
    assert all(each.ready() for each in jobs)
    eventually(lambda: _thread._count() - thread_count < len(jobs))  # the threads of the derivations have ended


@pytest.mark.real_time
def test_key_derivation_is_limited_by_connect_timeout(derivation: DelayedDerivation) -> None:
    with (
        Deployment.standalone(users={"ann": "secret"}) as deployment,
        MongoClient[Any](deployment.uri, connectTimeoutMS=200) as client,
    ):
        with pytest.raises(PyMongoError):
            client.d.c.find_one()
        derivation.gate.set()


@with_cases
def test_saslprep_normalizes_text(text, prepared):
    assert saslprep(text) == prepared


@with_cases
def test_prohibited_character_raises_value_error(text, message):
    with pytest.raises(ValueError, match=rf"{message}(?!\w)"):
        saslprep(text)
