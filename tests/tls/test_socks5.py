"""Clients that connect through a SOCKS5 proxy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from gevent.server import StreamServer

import gmongo
from gmongo.errors import ConfigurationError
from tests.support.middlemen import Socks5
from tests.support.refusal import refusing, why_refused
from tests.support.server import ScriptedServer
from tests.support.tls import TlsServer, server_context

ACCOUNT = ("proxy-user", "proxy-secret")


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


def client_of(server, proxy, host="127.0.0.1", **options):
    options = {"proxyHost": "127.0.0.1", "proxyPort": proxy.port, **options}
    return gmongo.MongoClient(host, server.port, **options)


def refusal(server, proxy, **options):
    return why_refused(lambda patience: client_of(server, proxy, serverSelectionTimeoutMS=patience, **options))


def test_without_an_account(server):
    with Socks5() as proxy, client_of(server, proxy) as client:
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert set(proxy.asked) == {(1, "127.0.0.1", server.port)}
        assert set(proxy.methods) == {b"\x00"}


def test_names_are_left_to_the_proxy(server):
    with (
        Socks5(names={"no-such-host.invalid": "127.0.0.1"}) as proxy,
        client_of(server, proxy, "no-such-host.invalid") as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert set(proxy.asked) == {(3, "no-such-host.invalid", server.port)}


@pytest.mark.parametrize("account", [None, ACCOUNT])
def test_with_an_account(server, account):
    with (
        Socks5(account) as proxy,
        client_of(server, proxy, proxyUsername=ACCOUNT[0], proxyPassword=ACCOUNT[1]) as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert set(proxy.methods) == {b"\x00\x02"}
        assert "proxy-secret" not in repr(client.options.merged)


def test_empty_names_are_none(server):
    with Socks5() as proxy, client_of(server, proxy, proxyUsername="", proxyPassword="") as client:
        client.db.c.find_one()
        assert set(proxy.methods) == {b"\x00"}


@pytest.mark.parametrize("kind", [b"\x03\x03abc\x00\x00", b"\x04" + bytes(18)])
def test_where_the_proxy_connects_from_does_not_matter(server, kind):
    with Socks5() as proxy, client_of(server, proxy) as client:
        proxy.bound = kind
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


def test_tls_through_a_proxy(files):
    with (
        TlsServer(server_context(files.server)) as server,
        Socks5(names={"localhost": "127.0.0.1"}) as proxy,
        client_of(server, proxy, "localhost", tlsCAFile=files.ca, serverSelectionTimeoutMS=3000) as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert {host for _, host, _ in proxy.asked} == {"localhost"}


def test_a_proxy_that_is_not_there(server):
    with refusing() as port:
        reason = refusal(server, SimpleNamespace(port=port))
    assert f"127.0.0.1:{server.port}: [Errno 111] Connection refused" in reason
    assert f"(TCP connection to the SOCKS5 proxy 127.0.0.1:{port} for " in reason


def test_a_proxy_that_wants_an_account(server):
    with Socks5(ACCOUNT) as proxy:
        assert "requires a username and password" in refusal(server, proxy)


def test_a_wrong_password(server):
    with Socks5(ACCOUNT) as proxy:
        reason = refusal(server, proxy, proxyUsername=ACCOUNT[0], proxyPassword="a wrong secret")
        assert "it refused proxyUsername and proxyPassword" in reason
        assert "secret" not in reason


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1, "general failure of the proxy"),
        (2, "not allowed by the proxy's rules"),
        (3, "network unreachable"),
        (4, "host unreachable"),
        (5, "connection refused"),
        (6, "time to live expired"),
        (7, "command not supported"),
        (8, "kind of address not supported"),
        (9, "refused with code 9"),
        (99, "refused with code 99"),
    ],
)
def test_a_proxy_that_refuses(server, code, words):
    with Socks5() as proxy:
        proxy.refuse_with = code
        assert words in refusal(server, proxy)


def test_an_unknown_kind_of_address(server):
    with Socks5() as proxy:
        proxy.bound = b"\x09" + bytes(6)
        assert "unknown kind 9" in refusal(server, proxy)


def test_something_that_is_no_proxy(server):
    nonsense = StreamServer(("127.0.0.1", 0), lambda sock, _address: (sock.sendall(b"HTTP/1.1 400\r\n"), sock.close()))
    nonsense.start()
    nonsense.port = nonsense.server_port
    try:
        assert "does not speak SOCKS5 (version 72)" in refusal(server, nonsense)
    finally:
        nonsense.stop()


def test_a_username_that_is_too_long(server):
    with Socks5(("x" * 256, "y")) as proxy:
        reason = refusal(server, proxy, proxyUsername="x" * 256, proxyPassword="y")
        assert "the username is 256 bytes long, but SOCKS5 takes 255" in reason


@pytest.mark.parametrize(
    "options",
    [
        {"proxyPort": 1080},
        {"proxyHost": "proxy", "proxyUsername": "ann"},
        {"proxyHost": "proxy", "proxyPassword": "secret"},
    ],
)
def test_contradictions(options):
    with pytest.raises(ConfigurationError, match="proxy"):
        gmongo.MongoClient("localhost", connect=False, **options)
