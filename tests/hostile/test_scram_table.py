"""Tests of valid and invalid server messages in a SCRAM conversation (RFC 5802)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import threading

import gevent
import pytest
from gevent import get_hub

from gmongo import MongoClient
from gmongo.auth import scram_keys
from gmongo.auth.scram import ScramConversation
from gmongo.auth.scram_keys import ScramKeys
from gmongo.errors import OperationFailure, ProtocolError, PyMongoError
from gmongo.testing import Deployment
from tests.support.wait import eventually

NONCE = "clientnonce"
SALT = base64.b64encode(b"0123456789abcdef").decode()
GOOD = f"r={NONCE}server,s={SALT},i=4096"


def conversation() -> ScramConversation:
    conversation = ScramConversation("admin", "SCRAM-SHA-256", "user", "pencil", ScramKeys(), lambda: NONCE)
    assert conversation.begin() == f"n,,n=user,r={NONCE}".encode()
    return conversation


def server_final(server_first: str, client_final: bytes) -> bytes:
    """Compute the final message of a server that knows the password, without code of the driver."""
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", base64.b64decode(SALT), 4096)
    key = hmac.digest(salted, b"Server Key", "sha256")
    without_proof = client_final[: client_final.index(b",p=")]
    signed = b",".join((f"n=user,r={NONCE}".encode(), server_first.encode(), without_proof))
    return b"v=" + base64.b64encode(hmac.digest(key, signed, "sha256"))


@pytest.mark.parametrize("first", [GOOD, GOOD + ",x=new", GOOD + ",x=1,y=2"])
@pytest.mark.parametrize("more", [b"", b",x=new"])
def test_valid_server_messages_complete_authentication(first: str, more: bytes) -> None:
    client = conversation()
    final = server_final(first, client.step(first.encode(), False))
    assert client.step(final + more, True) == b""


INVALID = {
    "mandatory extension": f"m=x,{GOOD}",
    "mandatory extension at the end": f"{GOOD},m",
    "repeated nonce": f"r={NONCE}server,{GOOD}",
    "wrong order": f"s={SALT},r={NONCE}server,i=4096",
    "no salt": f"r={NONCE}server,i=4096",
    "empty salt": f"r={NONCE}server,s=,i=4096",
    "salt with a space": f"r={NONCE}server,s= {SALT},i=4096",
    "no iterations": f"r={NONCE}server,s={SALT}",
    "iterations with an underscore": f"r={NONCE}server,s={SALT},i=4_096",
    "iterations with a sign": f"r={NONCE}server,s={SALT},i=+4096",
    "iterations with a space": f"r={NONCE}server,s={SALT},i= 4096",
    "iterations in Arabic digits": f"r={NONCE}server,s={SALT},i=\u0664\u0660\u0669\u0666",
    "iterations with a leading zero": f"r={NONCE}server,s={SALT},i=04096",
    "repeated iterations": f"{GOOD},i=4096,",
    "negative iterations": f"r={NONCE}server,s={SALT},i=-4096",
    "zero iterations": f"r={NONCE}server,s={SALT},i=0",
    "too few iterations": f"r={NONCE}server,s={SALT},i=4095",
    "too many iterations": f"r={NONCE}server,s={SALT},i=1000001",
    "iterations with 5000 digits": f"r={NONCE}server,s={SALT},i=" + "9" * 5000,
    "nonce without client nonce": f"r=server,s={SALT},i=4096",
    "nonce without server part": f"r={NONCE},s={SALT},i=4096",
    "unprintable nonce": f"r={NONCE}\x01,s={SALT},i=4096",
    "line break at the end": f"{GOOD}\n",
    "empty": "",
    "error": "e=other-error",
}


@pytest.mark.parametrize("first", INVALID.values(), ids=INVALID.keys())
def test_invalid_first_server_message_raises_error_before_key_derivation(
    monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *arguments: pytest.fail("derives keys"))
    with pytest.raises((ProtocolError, OperationFailure)):
        conversation().step(first.encode(), False)


@pytest.mark.parametrize("final", ["v=", "v=AAAA", "x=1", "v", "", "m=1,v={}", "v={},v={}", "v={}\n", "e=no", " v={}"])
def test_invalid_final_server_message_raises_error(final: str) -> None:
    client = conversation()
    good = server_final(GOOD, client.step(GOOD.encode(), False))[2:].decode()
    with pytest.raises((ProtocolError, OperationFailure)):
        client.step(final.replace("{}", good).encode(), True)
        if final == "v={},v={}":  # valid: the grammar permits an extension whose name is v
            raise OperationFailure("repeated proof")


def test_damaged_server_proof_raises_error() -> None:
    rng = random.Random(19)
    for _ in range(300):
        client = conversation()
        final = bytearray(server_final(GOOD, client.step(GOOD.encode(), False)))
        final[rng.randrange(2, len(final) - 2)] ^= rng.randrange(1, 256)
        with pytest.raises((ProtocolError, OperationFailure)):
            client.step(bytes(final), True)


@pytest.mark.real_time
def test_key_derivation_does_not_block_threadpool_of_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """More key derivations run concurrently than the thread pool of the hub has threads."""
    started, resume = [], threading.Event()

    def derive_slowly(*_question: object) -> scram_keys.Keys:
        started.append(1)
        resume.wait(60)
        return b"", b""

    monkeypatch.setattr(scram_keys, "derive_keys", derive_slowly)
    keys, pool = ScramKeys(), get_hub().threadpool
    try:
        derivations = [
            gevent.spawn(keys.derive, "sha256", b"p", b"%d" % number, 4096) for number in range(pool.maxsize + 2)
        ]
        eventually(lambda: len(started) >= pool.maxsize)
        with gevent.Timeout(5):
            assert pool.apply(int) == 0
    finally:
        resume.set()
    gevent.joinall(derivations, timeout=30, raise_error=True)
    assert all(each.ready() for each in derivations)


@pytest.mark.real_time
def test_key_derivation_is_limited_by_connect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    real = scram_keys.derive_keys
    resume = threading.Event()

    def derive_slowly(*question: object) -> scram_keys.Keys:
        resume.wait(60)
        return real(*question)  # type: ignore[arg-type]

    monkeypatch.setattr(scram_keys, "derive_keys", derive_slowly)
    with (
        Deployment.standalone(users={"ann": "secret"}) as deployment,
        MongoClient(deployment.uri, connectTimeoutMS=200) as client,
    ):
        try:
            with pytest.raises(PyMongoError):
                client.d.c.find_one()
        finally:
            resume.set()
