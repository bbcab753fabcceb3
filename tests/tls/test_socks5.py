"""Clients connect to servers through a SOCKS5 proxy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import gmongo
from tests.support.proxies import Socks5Proxy
from tests.support.refused_connections import refused_port, selection_error
from tests.support.server import ScriptedServer
from tests.support.tls import TlsServer, server_context

ACCOUNT = ("proxy-user", "proxy-secret")


@pytest.fixture
def server():
    with ScriptedServer() as server:
        yield server


def connect_client(server, proxy, host="127.0.0.1", **options):
    options = {"proxyHost": "127.0.0.1", "proxyPort": proxy.port, **options}
    return gmongo.MongoClient(host, server.port, **options)


def server_selection_error(server, proxy, **options):
    return selection_error(
        lambda timeout_ms: connect_client(server, proxy, serverSelectionTimeoutMS=timeout_ms, **options)
    )


@pytest.mark.parametrize(
    ("proxy_account", "credentials", "offered_methods"),
    [(None, (), b"\x00"), (None, ("", ""), b"\x00"), (None, ACCOUNT, b"\x00\x02"), (ACCOUNT, ACCOUNT, b"\x00\x02")],
)
def test_client_offers_password_method_only_with_username(server, proxy_account, credentials, offered_methods):
    options = dict(zip(("proxyUsername", "proxyPassword"), credentials, strict=False))
    with Socks5Proxy(proxy_account) as proxy, connect_client(server, proxy, **options) as client:
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert set(proxy.requests) == {(1, "127.0.0.1", server.port)}
        assert set(proxy.methods) == {offered_methods}
        assert "proxy-secret" not in repr(client.options.merged)


def test_port_of_proxy_is_1080_by_default():
    with gmongo.MongoClient("localhost", proxyHost="proxy", connect=False) as client:
        assert client.options.topology().connection.proxy.address == ("proxy", 1080)


def test_proxy_resolves_host_names(server):
    with (
        Socks5Proxy(addresses_by_host={"no-such-host.invalid": "127.0.0.1"}) as proxy,
        connect_client(server, proxy, "no-such-host.invalid") as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert set(proxy.requests) == {(3, "no-such-host.invalid", server.port)}


def test_client_verifies_server_certificate_through_proxy(files):
    with (
        TlsServer(server_context(files.server)) as server,
        Socks5Proxy(addresses_by_host={"localhost": "127.0.0.1"}) as proxy,
        connect_client(server, proxy, "localhost", tlsCAFile=files.ca, serverSelectionTimeoutMS=3000) as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        assert {host for _, host, _ in proxy.requests} == {"localhost"}


def test_unreachable_proxy_fails_server_selection_with_proxy_address(server):
    with refused_port() as port:
        reason = server_selection_error(server, SimpleNamespace(port=port))
    assert f"127.0.0.1:{server.port}: [Errno 111] Connection refused" in reason
    assert f"(TCP connection to the SOCKS5 proxy 127.0.0.1:{port} for " in reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "requires a username and password"),
        (
            {"proxyUsername": ACCOUNT[0], "proxyPassword": "a wrong secret"},
            "the proxy rejected proxyUsername and proxyPassword",
        ),
        ({"proxyUsername": "x" * 256, "proxyPassword": "y"}, "the username is 256 bytes long, but SOCKS5 allows 255"),
    ],
)
def test_missing_or_invalid_proxy_credentials_fail_server_selection(server, options, message):
    with Socks5Proxy(ACCOUNT) as proxy:
        reason = server_selection_error(server, proxy, **options)
        assert message in reason
        assert "secret" not in reason
