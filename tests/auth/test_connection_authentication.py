"""Connections authenticate at a scripted server that has users."""

from __future__ import annotations

import gevent
import pytest

import gmongo
from gmongo.errors import AutoReconnect, InvalidOperation, OperationFailure
from tests.auth.accounts import REFUSAL_REPLY, AuthServer
from tests.support.cases import with_cases
from tests.support.pools import checked_out
from tests.support.server import cut_reply, send_no_reply
from tests.support.wait import eventually

PASSWORD = "pencil"


@pytest.fixture
def server():
    with AuthServer({"ann": PASSWORD, "empty": "", "IX": "IX", "\u2168": "\u2163"}) as server:
        yield server


def client_with_login(server, username="ann", password=PASSWORD, **options):
    options = {"serverSelectionTimeoutMS": 3000, **options}
    return gmongo.MongoClient(*server.address, username=username, password=password, **options)


def find_one(client):
    return client.db.c.find_one({"_id": 1})


@pytest.mark.parametrize("mechanism", [None, "DEFAULT", "SCRAM-SHA-1", "SCRAM-SHA-256"])
@pytest.mark.parametrize("speculates", [True, False])
@pytest.mark.parametrize("skips_empty_exchange", [True, False])
def test_scram_authenticates_with_and_without_speculation_and_empty_exchange(
    server, mechanism, speculates, skips_empty_exchange
):
    server.speculates, server.skips_empty_exchange = speculates, skips_empty_exchange
    options = {} if mechanism is None else {"authMechanism": mechanism}
    with client_with_login(server, **options) as client:
        assert find_one(client) == {"_id": 1}
        (pool,) = client._topology.pools()
        (connection,) = pool.machine.available
        assert not connection.hello.reply.keys() & {"speculativeAuthenticate", "saslSupportedMechs"}
    starts, continues = server.commands("saslStart"), server.commands("saslContinue")
    assert len(starts) == (0 if speculates else 1)
    assert len(continues) == (1 if skips_empty_exchange else 2)
    speculative_hellos = [hello for hello in server.commands("handshake") if "speculativeAuthenticate" in hello]
    assert len(speculative_hellos) == 1
    expected = "SCRAM-SHA-256" if mechanism in (None, "DEFAULT") else mechanism
    assert speculative_hellos[0]["speculativeAuthenticate"]["mechanism"] == expected
    assert speculative_hellos[0]["speculativeAuthenticate"]["db"] == "admin"
    assert speculative_hellos[0].get("saslSupportedMechs") == ("admin.ann" if mechanism in (None, "DEFAULT") else None)
    assert all(start["mechanism"] == expected for start in starts)


@with_cases
def test_empty_or_saslprep_equivalent_password_authenticates(server, username, password, mechanism):
    with client_with_login(server, username, password, authMechanism=mechanism) as client:
        assert find_one(client) == {"_id": 1}


@pytest.mark.parametrize(("username", "password"), [("ann", "wrong secret"), ("nobody", "wrong secret")])
def test_wrong_credentials_raise_operation_failure_without_secret(server, username, password):
    with (
        client_with_login(server, username, password) as client,
        pytest.raises(OperationFailure) as caught,
    ):
        find_one(client)
    error = caught.value
    assert error.code == 18
    assert str(error).startswith(f"Authentication failed (user {username!r}, authSource 'admin', mechanism DEFAULT)")
    assert "secret" not in str(error)
    assert error.details["codeName"] == "AuthenticationFailed"


def test_failed_authentication_clears_connection_pool(server):
    with client_with_login(server) as client:
        find_one(client)
        server.users["ann"] = "another"
        [stats] = client.pool_stats()
        gate = gevent.event.Event()
        server.replies["find"] = lambda command: (
            gate.wait() and {"ok": 1, "cursor": {"id": 0, "ns": "d.c", "firstBatch": []}}
        )
        running_find = gevent.spawn(find_one, client)
        server.wait_for("find", 2)
        with pytest.raises(OperationFailure, match="Authentication failed"):
            find_one(client)
        assert eventually(lambda: client.pool_stats()[0]["generation"] > stats["generation"])
        gate.set()
        running_find.get(timeout=5)


def test_monitors_do_not_authenticate(server):
    with client_with_login(server) as client:
        find_one(client)
    hellos = server.commands("handshake")
    assert len(hellos) >= 2
    assert sum("speculativeAuthenticate" in hello for hello in hellos) == 1
    assert sum("saslSupportedMechs" in hello for hello in hellos) == 1


@pytest.mark.parametrize("command", ["saslStart", "saslContinue"])
def test_closed_connection_during_authentication_raises_auto_reconnect(server, command):
    server.speculates = False
    server.fail(command, *[cut_reply(0)] * 4)
    with client_with_login(server, retryReads=False) as client, pytest.raises(AutoReconnect):
        find_one(client)


def test_server_that_stops_replying_during_authentication_raises_timeout_error(server):
    server.fail("saslContinue", *[send_no_reply] * 4)
    with (
        client_with_login(server, retryReads=False, connectTimeoutMS=200) as client,
        pytest.raises(AutoReconnect, match=r"timed out \(authentication for "),
    ):
        find_one(client)


# Tests of mechanisms other than SCRAM, and of reauthentication


def test_plain_sends_password_to_external_database_after_hello(server):
    server.replies["saslStart"] = lambda command: (
        {"ok": 1, "conversationId": 1, "done": True, "payload": b""}
        if command["payload"] == b"\0ann\0pencil"
        else dict(REFUSAL_REPLY)
    )
    with client_with_login(server, authMechanism="PLAIN") as client:
        find_one(client)
    [start] = server.commands("saslStart")
    assert (start["mechanism"], start["$db"]) == ("PLAIN", "$external")
    assert not any("speculativeAuthenticate" in hello for hello in server.commands("handshake"))
    with (
        client_with_login(server, password="wrong", authMechanism="PLAIN") as client,
        pytest.raises(OperationFailure),
    ):
        find_one(client)


@pytest.fixture
def without_tls(monkeypatch):
    """Permit X.509 without TLS, because the scripted server does not support TLS."""
    monkeypatch.setattr("gmongo.client_options._check_mechanism_without_tls", lambda credential, seeds: None)


@pytest.mark.parametrize("username", [None, "CN=ann"])
def test_x509_sends_authenticate_command_to_external_database(server, username, without_tls):
    with client_with_login(server, username, None, authMechanism="MONGODB-X509") as client:
        find_one(client)
    [command] = server.commands("authenticate")
    assert (command["authenticate"], command["mechanism"], command["$db"]) == (1, "MONGODB-X509", "$external")
    assert command.get("user") == username


def test_speculative_x509_needs_no_authenticate_command(server, without_tls):
    reply = server.reply_to
    server.reply_to = lambda name, command: (
        reply(name, command)
        | (
            {"speculativeAuthenticate": {"dbname": "$external", "user": "CN=ann"}}
            if "speculativeAuthenticate" in command
            else {}
        )
    )
    with client_with_login(server, None, None, authMechanism="MONGODB-X509") as client:
        find_one(client)
    assert not server.commands("authenticate")


def test_failed_reauthentication_closes_connection(server):
    with client_with_login(server) as client:
        find_one(client)
        [pool] = client._topology.pools()
        with checked_out(pool) as connection:
            connection.reauthenticate()
        assert find_one(client) == {"_id": 1}
        assert len(server.commands("saslStart")) == 1
        server.users["ann"] = "another"
        with pytest.raises(OperationFailure), checked_out(pool) as connection:
            connection.reauthenticate()
        assert client.pool_stats()[0]["available"] == 0, "the pool must not keep a connection without authentication"


def test_reauthentication_without_credential_raises_invalid_operation(server):
    with gmongo.MongoClient(*server.address) as client:
        find_one(client)
        [pool] = client._topology.pools()
        with (
            checked_out(pool) as connection,
            pytest.raises(InvalidOperation, match="cannot reauthenticate"),
        ):
            connection.reauthenticate()
