"""Test of a client with TLS behind a proxy that damages bytes."""

from __future__ import annotations

import random
import ssl
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent import socket
from gevent.server import StreamServer
from gevent.ssl import SSLContext

from gmongo import MongoClient
from gmongo.errors import PyMongoError
from tests.hostile.invariants import CommandEventChecker, attempt, check_nothing_in_use, silent_stderr
from tests.support.tls import TlsServer
from tests.support.wait import eventually

FAULTS = ("flip", "cut", "delay", "repeat", "lose", "swap", "insert", "truncate", "reset", "half", "stall")


class DamagingProxy:
    """Proxy that forwards bytes between client and server, and damages or delays random pieces.

    :ivar rate: the share of received pieces that the proxy damages or delays.
    :ivar damaged_count: the number of pieces that the proxy has damaged or delayed.
    """

    def __init__(self, port: int, rng: random.Random) -> None:
        self._port = port
        self._rng = rng
        self.rate = 0.0
        self.damaged_count = 0
        self._server = StreamServer(("127.0.0.1", 0), self._serve)
        self._server.start()
        self.port: int = self._server.server_port

    def close(self) -> None:
        self._server.stop(timeout=0)

    def _serve(self, client: Any, _address: Any) -> None:
        server = socket.create_connection(("127.0.0.1", self._port))
        forwarders = [gevent.spawn(self._forward, client, server), gevent.spawn(self._forward, server, client)]
        gevent.joinall(forwarders, count=1)
        gevent.killall(forwarders)
        client.close()
        server.close()

    def _forward(self, source: Any, target: Any) -> None:
        delayed = b""
        try:
            while data := source.recv(16384):
                if self._rng.random() < self.rate:
                    self.damaged_count += 1
                    data, delayed = self._damage(data, delayed)
                    if data is None:
                        return
                target.sendall(data)
        except OSError:
            pass

    def _damage(self, data: bytes, delayed: bytes) -> tuple[Any, bytes]:
        rng, fault = self._rng, self._rng.choice(FAULTS)
        at = rng.randrange(len(data))
        if fault == "flip":
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :], delayed
        if fault in ("cut", "reset"):
            return None, delayed
        if fault in ("delay", "stall"):
            gevent.sleep(0.002 if fault == "delay" else 0.3)
            return data, delayed
        if fault == "swap":
            return delayed or data, data
        changes = {
            "repeat": data + data,
            "lose": b"",
            "insert": data[:at] + rng.randbytes(7) + data[at:],
            "truncate": data[:at],
            "half": data[: len(data) // 2],
        }
        return changes[fault], delayed


@pytest.mark.real_time
def test_damaged_tls_bytes_raise_documented_errors_and_no_wrong_reply(files: SimpleNamespace) -> None:
    rng, commands = random.Random(19), CommandEventChecker()
    context = SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server)
    correct_reply_count = 0
    with silent_stderr(), TlsServer(context) as server:
        proxy = DamagingProxy(server.port, rng)
        options: dict[str, Any] = {
            "tls": True, "tlsCAFile": files.ca, "socketTimeoutMS": 100, "connectTimeoutMS": 300, "maxPoolSize": 4,
            "serverSelectionTimeoutMS": 3000, "event_listeners": [commands], "serverMonitoringMode": "poll",
        }  # fmt: skip
        with MongoClient("localhost", proxy.port, **options) as client:
            client.d.command("ping")
            proxy.rate = 0.05
            for number in range(400):
                found: list[Any] = []
                error = attempt(lambda number=number, found=found: found.append(client.d.c.find_one({"_id": number})))
                assert found in ([], [{"_id": number}])
                correct_reply_count += bool(found)
                assert error is None or isinstance(error, PyMongoError)
            proxy.rate = 0.0
            eventually(lambda: attempt(lambda: client.d.command("ping")) is None)
            check_nothing_in_use(client, commands)
        proxy.close()
    assert proxy.damaged_count > 20
    assert correct_reply_count > 200
