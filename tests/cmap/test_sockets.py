"""The driver sets TCP_NODELAY, SO_KEEPALIVE and the options of TCP keepalive."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from gmongo.wire import connect
from gmongo.wire.transport import Transport
from tests.support.server import ScriptedServer

KEEPALIVE_OPTIONS = {"TCP_KEEPIDLE": 120, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 9}


def socket_option(transport: Transport, name: str) -> int:
    return transport._socket.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))


def connected_transport(server: ScriptedServer) -> Transport:
    transports: list[Transport] = []
    connect.connect(server.address, transports.append)
    return transports[-1]


def test_socket_has_tcp_nodelay_and_keepalive() -> None:
    with ScriptedServer() as server:
        transport = connected_transport(server)
        assert socket_option(transport, "TCP_NODELAY") == 1
        assert transport._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert {name: socket_option(transport, name) for name in KEEPALIVE_OPTIONS} == KEEPALIVE_OPTIONS
        transport.close()


@pytest.mark.parametrize("missing_option", KEEPALIVE_OPTIONS)
def test_keepalive_option_stays_unchanged_if_lower_or_missing(
    missing_option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ShortKeepalive(connect._socket.socket):
        def getsockopt(self, level: int, name: int, *arguments: Any) -> Any:
            return 5 if level == socket.IPPROTO_TCP else super().getsockopt(level, name, *arguments)

    with ScriptedServer() as server:
        monkeypatch.delattr(connect._socket, missing_option)
        monkeypatch.setattr(connect._socket, "socket", ShortKeepalive)
        transport = connected_transport(server)
        monkeypatch.undo()
        for name in KEEPALIVE_OPTIONS:
            get_system_option = super(ShortKeepalive, transport._socket).getsockopt
            assert (get_system_option(socket.IPPROTO_TCP, getattr(socket, name)) == 5) == (name != missing_option)
        transport.close()
