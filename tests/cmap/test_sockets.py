"""The options of sockets: small messages go at once, and dead peers are noticed."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from gmongo.wire import connect
from gmongo.wire.transport import Transport
from tests.support.server import ScriptedServer

PROBES = {"TCP_KEEPIDLE": 120, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 9}


def option(transport: Transport, name: str) -> int:
    return transport._socket.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))


def connected(server: ScriptedServer) -> Transport:
    found: list[Transport] = []
    connect.connect(server.address, found.append)
    return found[-1]


def test_a_socket_sends_at_once_and_probes_dead_peers() -> None:
    with ScriptedServer() as server:
        transport = connected(server)
        assert option(transport, "TCP_NODELAY") == 1
        assert transport._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert {name: option(transport, name) for name in PROBES} == PROBES
        transport.close()


@pytest.mark.parametrize("missing", PROBES)
def test_what_a_system_sets_lower_stays_and_what_it_does_not_know_is_left_out(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(connect._socket.socket):
        def getsockopt(self, level: int, name: int, *more: Any) -> Any:
            return 5 if level == socket.IPPROTO_TCP else super().getsockopt(level, name, *more)

    with ScriptedServer() as server:
        monkeypatch.delattr(connect._socket, missing)
        monkeypatch.setattr(connect._socket, "socket", Impatient)
        transport = connected(server)
        monkeypatch.undo()
        for name in PROBES:
            plainly = super(Impatient, transport._socket).getsockopt
            assert (plainly(socket.IPPROTO_TCP, getattr(socket, name)) == 5) == (name != missing)
        transport.close()
