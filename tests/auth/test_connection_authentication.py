"""Connections authenticate at a scripted server that has users."""

from __future__ import annotations

import logging

import gevent
import pytest

import gmongo
from gmongo.auth import scram_keys
from gmongo.cmap.authentication import Authentication
from gmongo.cmap.connecting import ConnectTimeout
from gmongo.errors import AutoReconnect, InvalidOperation, OperationFailure, ProtocolError
from tests.auth.accounts import REFUSED, AuthServer
from tests.support.pools import checked_out
from tests.support.recorder import Recorder
from tests.support.server import cut_reply, send_no_reply
from tests.support.streams import open_stream
from tests.support.wait import eventually

PASSWORD = "pencil"


@pytest.fixture
def server():
    with AuthServer({"ann": PASSWORD, "sha1": "one", "empty": "", "IX": "IX", "\u2168": "\u2163"}) as server:
        server.mechanisms["sha1"] = ["SCRAM-SHA-1"]
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
    server.speculates, server.short = speculates, skips_empty_exchange
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


def test_default_mechanism_is_scram_sha_1_for_user_without_sha_256(server):
    with client_with_login(server, "sha1", "one") as client:
        find_one(client)
    assert [start["mechanism"] for start in server.commands("saslStart")] == ["SCRAM-SHA-1"]


def test_unsupported_mechanism_of_user_raises_operation_failure(server):
    with (
        client_with_login(server, "sha1", "one", authMechanism="SCRAM-SHA-256") as client,
        pytest.raises(OperationFailure, match="Authentication failed") as caught,
    ):
        find_one(client)
    assert caught.value.code == 18


@pytest.mark.parametrize("source", ["users", "admin"])
def test_auth_source_selects_database_of_sasl_start(server, source):
    server.speculates = False
    with client_with_login(server, authSource=source) as client:
        find_one(client)
    assert server.sources == [source]


@pytest.mark.parametrize(
    ("username", "password", "mechanism"),
    [
        ("empty", "", "DEFAULT"),
        ("IX", "IX", "SCRAM-SHA-256"),
        ("IX", "I\u00adX", "SCRAM-SHA-256"),
        ("\u2168", "IV", "SCRAM-SHA-256"),
        ("\u2168", "I\u00adV", "SCRAM-SHA-256"),
    ],
)
def test_empty_or_saslprep_equivalent_password_authenticates(server, username, password, mechanism):
    with client_with_login(server, username, password, authMechanism=mechanism) as client:
        assert find_one(client) == {"_id": 1}


@pytest.mark.parametrize(("username", "password"), [("ann", "wrong secret"), ("nobody", "wrong secret")])
def test_wrong_credentials_raise_operation_failure_without_secret(server, username, password):
    with client_with_login(server, username, password) as client, pytest.raises(OperationFailure) as caught:
        find_one(client)
    error = caught.value
    assert error.code == 18
    assert str(error).startswith(f"Authentication failed (user {username!r}, authSource 'admin', mechanism DEFAULT)")
    assert "secret" not in str(error)
    assert error.details["codeName"] == "AuthenticationFailed"


def test_client_authenticates_after_password_is_restored(server):
    server.users["ann"] = "another"
    with client_with_login(server) as client:
        with pytest.raises(OperationFailure):
            find_one(client)
        server.users["ann"] = PASSWORD
        assert find_one(client) == {"_id": 1}


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


def test_connection_to_arbiter_skips_authentication(server):
    server.hello_extra = {"arbiterOnly": True}
    server.speculates = False
    connection, authentication = _authentication(server)
    open_stream(connection)
    hello = gmongo.cmap.hello.Hello({"ok": 1, "arbiterOnly": True}, 0.0)
    authentication.begin(hello, ConnectTimeout(connection, None, True))
    assert not server.commands("saslStart")
    connection.close()


def _authentication(server):
    from gmongo.auth.authenticator import Authenticator
    from gmongo.auth.credential import Credential
    from gmongo.cmap.connection import Connection
    from gmongo.cmap.pool_settings import ConnectionSettings

    connection = Connection(server.address)
    authenticator = Authenticator(Credential("SCRAM-SHA-256", "admin", "ann", PASSWORD))
    options = ConnectionSettings(authenticator=authenticator)
    return connection, Authentication(connection, options, authenticator)


def test_ten_connections_of_client_derive_scram_keys_once(server, monkeypatch):
    derived = []
    derive = scram_keys.derive_keys
    monkeypatch.setattr(scram_keys, "derive_keys", lambda *arguments: derived.append(1) or derive(*arguments))
    server.replies["find"] = lambda command: (
        gevent.sleep(0.05) or {"ok": 1, "cursor": {"id": 0, "ns": "db.c", "firstBatch": []}}
    )
    with client_with_login(server, maxConnecting=10) as client:
        gevent.joinall([gevent.spawn(find_one, client) for _ in range(10)], raise_error=True)
        assert client.pool_stats()[0]["total"] == 10
    assert len(derived) == 1


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
        pytest.raises(AutoReconnect, match="timed out"),
    ):
        find_one(client)


@pytest.mark.parametrize(
    ("server_final", "error_class", "message"),
    [
        (b"v=AAAA", OperationFailure, "did not prove that it knows"),
        (b"\xff\x00", ProtocolError, "not UTF-8"),
    ],
)
def test_invalid_final_scram_message_of_server_raises_error(server, server_final, error_class, message):
    server.forge_final = lambda _: server_final
    with client_with_login(server) as client, pytest.raises(error_class, match=message):
        find_one(client)


def test_server_that_asks_for_too_few_scram_iterations_raises_operation_failure(server):
    server.iterations = 1000
    with client_with_login(server) as client, pytest.raises(OperationFailure, match="1000 iterations"):
        find_one(client)


# Tests that secrets are hidden


@pytest.mark.parametrize("password_is_correct", [True, False])
def test_logs_events_and_representations_contain_no_secret(server, caplog, password_is_correct):
    caplog.set_level(logging.DEBUG)
    secret = "tr0ub4dor-secret"
    server.users["ann"] = secret if password_is_correct else "x"
    recorder = Recorder()
    uri = f"mongodb://ann:{secret}@127.0.0.1:{server.port}/?authSource=admin"
    with gmongo.MongoClient(uri, event_listeners=[recorder]) as client:
        try:
            find_one(client)
        except OperationFailure as error:
            caplog.records.append(logging.makeLogRecord({"msg": f"{error!r} {error.details}"}))
        texts = [
            repr(client),
            repr(client.options.merged),
            repr(client.options.credential),
            repr(client.topology_description),
        ]
        texts.append(repr(client.options._connection_settings()))
        texts.append(repr(gmongo.uri_parser.parse_uri(uri)["options"]))
    event_texts = [
        f"{event!r} {[getattr(event, name, '') for name in dir(event) if name[0] != '_']!r}"
        for event in recorder.events
    ]
    texts += event_texts + [record.getMessage() for record in caplog.records]
    assert event_texts
    assert not [text for text in texts if secret in text or "speculativeAuthenticate" in text]


# Tests of mechanisms other than SCRAM


def test_plain_sends_password_to_external_database_after_hello(server):
    server.replies["saslStart"] = lambda command: (
        {"ok": 1, "conversationId": 1, "done": True, "payload": b""}
        if command["payload"] == b"\0ann\0pencil"
        else dict(REFUSED)
    )
    with client_with_login(server, authMechanism="PLAIN") as client:
        find_one(client)
    [start] = server.commands("saslStart")
    assert (start["mechanism"], start["$db"]) == ("PLAIN", "$external")
    assert not any("speculativeAuthenticate" in hello for hello in server.commands("handshake"))
    with client_with_login(server, password="wrong", authMechanism="PLAIN") as client, pytest.raises(OperationFailure):
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
    assert (command["mechanism"], command["$db"]) == ("MONGODB-X509", "$external")
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


def test_sasl_commands_contain_stable_api_version(server):
    server.speculates = False
    with client_with_login(server, server_api=gmongo.server_api.ServerApi("1")) as client:
        find_one(client)
    assert server.commands("saslStart")[0]["apiVersion"] == "1"
    assert server.commands("saslContinue")[0]["apiVersion"] == "1"


def test_reauthentication_succeeds_or_closes_connection(server):
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
        with checked_out(pool) as connection, pytest.raises(InvalidOperation, match="cannot reauthenticate"):
            connection.reauthenticate()
