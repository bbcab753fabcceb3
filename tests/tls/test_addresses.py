"""Every kind of address, through a client: IPv6, and Unix domain sockets."""

from __future__ import annotations

import _socket
from urllib.parse import quote_plus

import gevent
import pytest
from gevent import socket as gevent_socket
from gevent.server import StreamServer

import gmongo
from gmongo.wire import connect
from tests.support.middlemen import pump
from tests.support.server import ScriptedServer


def passing_on(listener, server):
    """A server that passes everything on to another."""

    def serve(sock, _address):
        with gevent_socket.create_connection(server.address) as onward:
            jobs = [gevent.spawn(pump, sock, onward), gevent.spawn(pump, onward, sock)]
            gevent.joinall(jobs, count=1)
            gevent.killall(jobs)

    return StreamServer(listener, serve)


def test_ipv6():
    try:
        listener = gevent_socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM)
        listener.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    listener.listen(5)
    port = listener.getsockname()[1]
    with ScriptedServer() as server:
        onward = passing_on(listener, server)
        onward.start()
        for host in ("[::1]", f"mongodb://[::1]:{port}"):
            with gmongo.MongoClient(host, port) as client:
                assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
                assert client.address == ("::1", port)
        onward.stop(timeout=0)


def test_a_unix_domain_socket(tmp_path):
    path = str(tmp_path / "mongodb.sock")
    listener = gevent_socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(5)
    with ScriptedServer() as server:
        onward = passing_on(listener, server)
        onward.start()
        # A proxy is for what is not on this machine.
        for options in ({}, {"proxyHost": "127.0.0.1", "proxyPort": 1}):
            for host in (path, f"mongodb://{quote_plus(path)}"):
                with gmongo.MongoClient(host, **options) as client:
                    assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
        onward.stop(timeout=0)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_address_of_a_host_needs_no_resolver(host, monkeypatch):
    monkeypatch.setattr(connect, "_look_up", None)
    ((family, sockaddr),) = connect.resolve((host, 5), True)
    assert (family, sockaddr) == (_socket.AF_INET6 if ":" in host else _socket.AF_INET, (host, 5))
