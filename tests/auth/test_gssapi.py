"""GSSAPI conversations. A substitute replaces the library `gssapi`, because the library needs a
Kerberos realm.
"""

from __future__ import annotations

import socket
import sys
from functools import partial
from types import SimpleNamespace

import pytest

import gmongo
from gmongo.auth import gssapi as gmongo_gssapi
from gmongo.auth.credential import Credential
from gmongo.auth.gssapi import GssapiConversation, canonical_host
from gmongo.auth.login import SimpleLogin
from gmongo.errors import ConfigurationError, OperationFailure, ProtocolError
from tests.support.cases import with_cases
from tests.support.server import ScriptedServer


class FakeSecurityContext:
    """Substitute for a security context of the library `gssapi`.

    The context is complete after two tokens, and prefixes a wrapped message with ``wrapped:``.
    """

    init_options = ()

    def __init__(self, **arguments):
        FakeSecurityContext.init_options = (*FakeSecurityContext.init_options, arguments)
        self.tokens = [b"token-1", b"token-2"]

    @property
    def complete(self):
        return not self.tokens

    def step(self, token=None):
        if token == b"bad":
            raise RuntimeError("the ticket has expired")
        return self.tokens.pop(0)

    def unwrap(self, message):
        return SimpleNamespace(message=message.removeprefix(b"wrapped:"))

    def wrap(self, message, encrypt):
        assert encrypt is False
        return SimpleNamespace(message=b"wrapped:" + message)


@pytest.fixture
def gssapi_substitute(monkeypatch):
    FakeSecurityContext.init_options = ()
    module = SimpleNamespace(
        Name=lambda text, kind: (text, kind),
        NameType=SimpleNamespace(user="user", hostbased_service="service", kerberos_principal="principal"),
        Credentials=lambda name, usage: ("ticket", name, usage),
        SecurityContext=FakeSecurityContext,
        raw=SimpleNamespace(
            acquire_cred_with_password=lambda name, password, usage: SimpleNamespace(
                creds=("password", name, password, usage)
            )
        ),
    )
    monkeypatch.setitem(sys.modules, "gssapi", module)
    return module


def gssapi_conversation(password=None, **properties):
    credential = Credential("GSSAPI", "$external", "ann@REALM", password, {"SERVICE_NAME": "mongodb", **properties})
    return GssapiConversation(credential, "db.example.com")


def test_gssapi_conversation_sends_tokens_and_user_name(gssapi_substitute):
    client = gssapi_conversation()
    assert client.first_command() == {"saslStart": 1, "mechanism": "GSSAPI", "payload": b"token-1"}
    assert client.step(b"challenge", False) == b"token-2"
    assert client.step(b"wrapped:\x07\x00\x10\x00", False) == b"wrapped:\x01\x00\x00\x00ann@REALM"
    assert client.next_command({"done": True, "payload": b""}) is None
    assert FakeSecurityContext.init_options[0]["name"] == ("mongodb@db.example.com", "service")
    assert FakeSecurityContext.init_options[0]["creds"] == (
        "ticket",
        ("ann@REALM", "user"),
        "initiate",
    )
    assert FakeSecurityContext.init_options[0]["usage"] == "initiate" and set(FakeSecurityContext.init_options[0]) == {
        "name",
        "creds",
        "usage",
    }


def test_gssapi_library_receives_password_and_service_properties(gssapi_substitute):
    gssapi_conversation(
        "secret", SERVICE_HOST="other", SERVICE_NAME="alternate", SERVICE_REALM="ELSEWHERE"
    ).first_payload()
    assert FakeSecurityContext.init_options[0]["name"] == ("alternate/other@ELSEWHERE", "principal")
    assert FakeSecurityContext.init_options[0]["creds"] == (
        "password",
        ("ann@REALM", "user"),
        b"secret",
        "initiate",
    )


@pytest.mark.parametrize("offered_layers", [b"wrapped:\x06\x00\x10\x00", b"wrapped:", b"wrapped:\x01"])
def test_server_that_requires_security_layer_raises_operation_failure(gssapi_substitute, offered_layers):
    client = gssapi_conversation()
    client.first_payload()
    client.step(b"challenge", False)
    with pytest.raises(OperationFailure, match="requires a security layer"):
        client.step(offered_layers, False)


@pytest.mark.parametrize(
    ("token", "done", "error_class", "message"),
    [
        (b"bad", False, OperationFailure, "GSSAPI: the ticket has expired"),
        (b"", True, ProtocolError, "too early"),
    ],
)
def test_gssapi_library_error_or_early_end_raises_driver_error(gssapi_substitute, token, done, error_class, message):
    client = gssapi_conversation()
    client.first_payload()
    with pytest.raises(error_class, match=rf"{message}(?!\w)"):
        client.step(token, done)


def test_conversation_that_continues_after_end_raises_protocol_error(gssapi_substitute):
    client = gssapi_conversation()
    client.first_payload()
    client.step(b"challenge", False)
    client.step(b"wrapped:\x07\x00\x10\x00", False)
    assert client.step(b"", True) == b""
    with pytest.raises(ProtocolError, match="GSSAPI: the server continues after the end of the conversation"):
        client.step(b"", False)


def test_hello_contains_no_gssapi_token(gssapi_substitute):
    assert SimpleLogin(gssapi_conversation).hello_fields() == {}
    assert not FakeSecurityContext.init_options


def test_missing_gssapi_token_is_sent_as_empty_payload(gssapi_substitute, monkeypatch):
    monkeypatch.setattr(FakeSecurityContext, "step", lambda self, token=None: self.tokens.pop(0) and None)
    client = gssapi_conversation()
    assert client.first_payload() == b""
    assert client.step(b"challenge", False) == b""


def replace_dns(monkeypatch, getaddrinfo, getnameinfo):
    dns = SimpleNamespace(
        getaddrinfo=getaddrinfo, getnameinfo=getnameinfo, IPPROTO_TCP=6, AI_CANONNAME=2, NI_NAMEREQD=8
    )
    monkeypatch.setattr(gmongo_gssapi, "gevent_socket", dns)


@pytest.mark.parametrize("failing_query", ["getaddrinfo", "getnameinfo"])
@pytest.mark.parametrize("canonicalization_mode", ["forward", "true", "True", "forwardAndReverse"])
def test_host_stays_unchanged_when_dns_query_fails(monkeypatch, canonicalization_mode, failing_query):
    queries = []

    def answer_query(name, *arguments):
        queries.append((name, *arguments))
        if name == failing_query:
            raise socket.gaierror
        return [(2, 1, 6, "", ("10.0.0.1", 0))] if name == "getaddrinfo" else ("Reverse", "0")

    replace_dns(monkeypatch, partial(answer_query, "getaddrinfo"), partial(answer_query, "getnameinfo"))
    assert canonical_host("Db", canonicalization_mode) == ("Db" if failing_query == "getaddrinfo" else "db")
    is_reverse = failing_query == "getnameinfo" and canonicalization_mode != "forward"
    assert queries == [("getaddrinfo", "Db", None, 0, 0, 6, 2), ("getnameinfo", ("10.0.0.1", 0), 8)][: 1 + is_reverse]


def test_missing_gssapi_library_raises_configuration_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with (
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port, username="ann", authMechanism="GSSAPI", connect=False) as client,
    ):
        with pytest.raises(ConfigurationError, match=r"needs the library gssapi: pip install gmongo\[gssapi\]"):
            client.db.c.find_one()
        assert not server.commands("saslStart")


@with_cases
def test_canonicalization_mode_selects_host_name(monkeypatch, canonicalization_mode, expected):
    addresses = [(socket.AF_INET, 1, 6, "Canonical.example.com", ("10.0.0.1", 0))]
    replace_dns(monkeypatch, lambda *_: addresses, lambda *_: ("Reverse.example.com", "0"))
    assert canonical_host("Db", canonicalization_mode) == expected


@pytest.mark.parametrize(
    ("properties", "canonicalization_mode"),
    [({}, "none"), ({"CANONICALIZE_HOST_NAME": True}, "True")],
)
def test_mechanism_property_selects_canonicalization_mode(
    gssapi_substitute, monkeypatch, properties, canonicalization_mode
):
    monkeypatch.setattr(
        gmongo_gssapi,
        "canonical_host",
        lambda host, canonicalization_mode: f"{host}-{canonicalization_mode}",
    )
    gssapi_conversation(**properties).first_payload()
    assert FakeSecurityContext.init_options[0]["name"] == (
        f"mongodb@db.example.com-{canonicalization_mode}",
        "service",
    )
