"""Clients connect to IPv6 addresses and Unix domain sockets."""

from __future__ import annotations

import _socket
from contextlib import contextmanager
from urllib.parse import quote_plus

import pytest
from gevent import socket as gevent_socket
from gevent.server import StreamServer

import gmongo
from gmongo.wire import connect
from tests.support.proxies import relay
from tests.support.server import ScriptedServer


@contextmanager
def relay_to_scripted_server(listener):
    """Start a scripted server, and forward to the server each connection that the listener
    accepts.
    """

    def relay_connection(sock, _address):
        with gevent_socket.create_connection(server.address) as server_socket:
            relay(sock, server_socket)

    listener.listen(5)
    with ScriptedServer() as server:
        relay_server = StreamServer(listener, relay_connection)
        relay_server.start()
        yield
        relay_server.stop(timeout=0)


def test_client_connects_to_ipv6_address():
    try:
        listener = gevent_socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM)
        listener.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    port = listener.getsockname()[1]
    with relay_to_scripted_server(listener):
        for host in ("[::1]", f"mongodb://[::1]:{port}"):
            with gmongo.MongoClient(host, port) as client:
                assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
                assert client.address == ("::1", port)


def test_client_connects_to_unix_domain_socket_without_proxy(tmp_path):
    path = str(tmp_path / "mongodb.sock")
    listener = gevent_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    listener.bind(path)
    with relay_to_scripted_server(listener):
        # No proxy listens on port 1. The client must not use a proxy for a Unix domain socket.
        for options in ({}, {"proxyHost": "127.0.0.1", "proxyPort": 1}):
            for host in (path, f"mongodb://{quote_plus(path)}"):
                with gmongo.MongoClient(host, **options) as client:
                    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_ip_address_as_host_needs_no_dns_lookup(host, monkeypatch):
    monkeypatch.setattr(connect, "_look_up", None)
    ((family, sockaddr),) = connect.resolve((host, 5), True)
    assert (family, sockaddr) == (_socket.AF_INET6 if ":" in host else _socket.AF_INET, (host, 5))
