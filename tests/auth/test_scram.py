"""SCRAM conversations without a server: test vectors of the specifications, and malformed messages."""

from __future__ import annotations

import base64
import threading

import gevent
import pytest

from gmongo.auth import scram_keys
from gmongo.auth.scram import ScramConversation
from gmongo.auth.scram_keys import ScramKeys
from gmongo.errors import ConfigurationError, OperationFailure, ProtocolError
from tests.support.wait import WAIT_LIMIT

# Test vectors of the driver specification: the nonce of the client, and the four messages of the
# conversation. The second vector is also the example of RFC 7677.
VECTORS = {
    "SCRAM-SHA-1": (
        "fyko+d2lbbFgONRv9qkxdawL",
        b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        b"r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,p=MC2T8BvbmWRckDw8oWl5IVghwCY=",
        b"v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
    ),
    "SCRAM-SHA-256": (
        "rOprNGfwEbeRWgbNEkqO",
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
}
NONCE, FIRST, SERVER_FIRST, FINAL, SERVER_FINAL = VECTORS["SCRAM-SHA-256"]


def scram_conversation(mechanism="SCRAM-SHA-256", password="pencil", username="user", nonce=NONCE):
    return ScramConversation("admin", mechanism, username, password, ScramKeys(), lambda: nonce)


@pytest.mark.parametrize("mechanism", VECTORS)
def test_scram_conversation_equals_specification_vector(mechanism):
    nonce, first, server_first, final, server_final = VECTORS[mechanism]
    client = scram_conversation(mechanism, nonce=nonce)
    command = client.first()
    assert command == {
        "saslStart": 1,
        "mechanism": mechanism,
        "payload": first,
        "options": {"skipEmptyExchange": True},
    }
    command = client.next({"conversationId": 7, "done": False, "payload": server_first})
    assert command == {"saslContinue": 1, "conversationId": 7, "payload": final}
    assert client.next({"conversationId": 7, "done": True, "payload": server_final}) is None


def test_server_that_continues_after_its_signature_receives_empty_message():
    client = scram_conversation()
    client.begin()
    client.step(SERVER_FIRST, False)
    assert client.next({"conversationId": 7, "done": False, "payload": SERVER_FINAL})["payload"] == b""
    assert client.next({"conversationId": 7, "done": True, "payload": b""}) is None


def test_reserved_characters_of_username_are_escaped():
    assert scram_conversation(username="a=b,c").begin() == b"n,,n=a=3Db=2Cc,r=" + NONCE.encode()


def test_fifty_conversations_have_different_nonces():
    nonces = {ScramConversation("admin", "SCRAM-SHA-1", "u", "p", ScramKeys()).begin() for _ in range(50)}
    assert len(nonces) == 50


@pytest.mark.parametrize(
    ("message", "error_class", "description"),
    [
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), OperationFailure, "4095 iterations, fewer than the 4096"),
        (SERVER_FIRST.replace(b"i=4096", b"i=99999999"), OperationFailure, "99999999 iterations, more than"),
        (SERVER_FIRST.replace(b"r=rO", b"r=XX"), OperationFailure, "nonce does not continue"),
        (b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", OperationFailure, "nonce does not continue"),
        (SERVER_FIRST.replace(b"i=4096", b"i=many"), ProtocolError, "first message is not well formed"),
        (SERVER_FIRST.replace(b"s=W22", b"s=~~~"), ProtocolError, "first message is not well formed"),
        (SERVER_FIRST.replace(b"s=W22", b"s=~~~~W22"), ProtocolError, "first message is not well formed"),
        (b"", ProtocolError, "first message is not well formed"),
        (b"\xff\xfe", ProtocolError, "not UTF-8"),
    ],
)
def test_invalid_first_message_of_server_raises_error(message, error_class, description):
    client = scram_conversation()
    client.begin()
    with pytest.raises(error_class, match=description):
        client.step(message, False)


@pytest.mark.parametrize(
    ("message", "error_class", "description"),
    [
        (b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", OperationFailure, "did not prove"),
        (b"v=", OperationFailure, "did not prove"),
        (b"v=~", ProtocolError, "last message is not well formed"),
        (b"v=~~~~AAAA", ProtocolError, "last message is not well formed"),
        (b"x", ProtocolError, "last message is not well formed"),
        (b"e=other-error", OperationFailure, "the server reports 'other-error'"),
    ],
)
def test_invalid_last_message_of_server_raises_error(message, error_class, description):
    client = scram_conversation()
    client.begin()
    client.step(SERVER_FIRST, False)
    with pytest.raises(error_class, match=description):
        client.step(message, True)


def test_missing_last_scram_message_raises_protocol_error():
    client = scram_conversation()
    client.begin()
    with pytest.raises(ProtocolError, match="too early"):
        client.step(SERVER_FIRST, True)


def test_conversation_that_continues_after_end_raises_protocol_error():
    client = scram_conversation()
    client.begin()
    client.step(SERVER_FIRST, False)
    client.step(SERVER_FINAL, False)
    with pytest.raises(ProtocolError, match="continues after the end"):
        client.step(b"", False)


@pytest.mark.parametrize("payload", [17, {"a": 1}, "no base64!"])
def test_invalid_scram_payload_raises_protocol_error(payload):
    with pytest.raises(ProtocolError, match="no payload of bytes"):
        scram_conversation().next({"conversationId": 1, "done": False, "payload": payload})


def test_base64_payload_of_server_is_decoded():
    client = scram_conversation()
    client.begin()
    answer = client.next({"conversationId": 1, "done": False, "payload": base64.b64encode(SERVER_FIRST).decode()})
    assert answer["payload"] == FINAL


def test_prohibited_password_raises_configuration_error_without_password():
    with pytest.raises(ConfigurationError, match="cannot be used with SCRAM-SHA-256: it has a control character") as e:
        scram_conversation(password="se\u0007cret")
    assert "cret" not in str(e.value)


# Tests of SCRAM keys


@pytest.mark.real_time
def test_key_derivation_does_not_block_event_loop(monkeypatch):
    derive, loop_ran = scram_keys.derive_keys, threading.Event()
    # The derivation waits for `loop_ran`, which the test can set only if the event loop is not
    # blocked.
    monkeypatch.setattr(scram_keys, "derive_keys", lambda *arguments: loop_ran.wait(WAIT_LIMIT) and derive(*arguments))
    keys = ScramKeys()
    derivation = gevent.spawn(keys.derive, "sha256", b"p", b"s", 4096)
    for _ in range(5):
        gevent.sleep(0.001)
    assert not derivation.ready()
    loop_ran.set()
    assert derivation.get() == derive("sha256", b"p", b"s", 4096)


def test_representation_of_keys_contains_no_password():
    keys = ScramKeys()
    keys.derive("sha1", b"password", b"salt", 1)
    assert "password" not in repr(keys)
