"""Tests of the transport: the socket sends and receives messages in pieces, and greenlets are
interrupted.
"""

from __future__ import annotations

import _socket
import errno
import struct
from contextlib import closing
from unittest.mock import Mock

import gevent
import pytest
from gevent import GreenletExit, Timeout
from gevent.exceptions import ConcurrentObjectUseError, InvalidSwitchError

from gmongo.wire import connect as connecting
from gmongo.wire.connect import connect
from gmongo.wire.message import OP_MSG
from gmongo.wire.race import Race
from gmongo.wire.transport import Transport, TransportError
from tests.support.cases import with_cases
from tests.support.refused_connections import refused_port


@pytest.fixture
def transport_and_peer():
    """Yield a transport, and the non-blocking socket at the other end of its connection."""
    own_socket, peer_socket = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    own_socket.setblocking(False)
    peer_socket.setblocking(False)
    transport = Transport(own_socket, True)
    with gevent.Timeout(10):
        yield transport, peer_socket
    transport.close()
    peer_socket.close()


def message(payload, response_to=1, request_id=9, length=None):
    return struct.pack("<iiii", length or 16 + len(payload), request_id, response_to, OP_MSG) + payload


def send_all(sock, data):
    """Send all bytes, even if the bytes do not fit into the socket buffer."""
    view = memoryview(data)
    while view:
        try:
            view = view[sock.send(view) :]
        except BlockingIOError:
            gevent.sleep(0)


def receive_exactly(sock, size):
    data = b""
    while len(data) < size:
        try:
            data += sock.recv(size - len(data))
        except BlockingIOError:
            gevent.sleep(0)
    return data


@pytest.mark.parametrize("size", [0, 1, 16 * 1024 - 16, 16 * 1024 - 15, 100_000, 3_000_000])
def test_message_of_any_size_is_received(transport_and_peer, size):
    transport, peer = transport_and_peer
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    gevent.spawn(send_all, peer, message(payload))
    reply_id, _response_to, opcode, received = transport.receive(1)
    assert (reply_id, opcode, bytes(received)) == (9, OP_MSG, payload)


def test_messages_in_one_packet_are_received_separately(transport_and_peer):
    transport, peer = transport_and_peer
    sizes = [5, 16_000, 3, 20_000, 7, 15_000, 15_000, 0]
    packet = b"".join(message(bytes([number]) * size, number) for number, size in enumerate(sizes))
    gevent.spawn(send_all, peer, packet)
    for number, size in enumerate(sizes):
        assert bytes(transport.receive(number)[3]) == bytes([number]) * size


class Interruption(Exception):
    pass


def test_first_of_two_interruptions_is_raised(transport_and_peer):
    transport, _peer = transport_and_peer
    first = Interruption("first")
    reader = gevent.spawn(transport.receive, 1)
    gevent.sleep(0)
    transport.interrupt(first)
    transport.interrupt(Interruption("second"))
    transport.close()
    gevent.joinall([reader])
    assert (type(reader.exception), str(reader.exception)) == (Interruption, "first")


def test_connect_to_unix_socket_succeeds(tmp_path):
    path = str(tmp_path / "server.sock")
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    sock.bind(path)
    sock.listen(1)
    transports = []
    connect((path, None), transports.append)
    assert not transports[0].closed and transports[0]._read_watcher.ref
    transports[0].close()
    sock.close()


class ScriptedSocket:
    """Socket whose methods first raise the scripted errors, and then call the real socket."""

    def __init__(self, sock, **script):
        self._sock = sock
        self._script = {name: list(errors) for name, errors in script.items()}

    def __getattr__(self, name):
        remaining_errors = self._script.get(name)
        if not remaining_errors:
            return getattr(self._sock, name)
        error = remaining_errors.pop(0)

        def call(*_arguments):
            raise error

        return call


def exchange(transport, method):
    """Send a request, and return the payload of the reply."""
    if method == "round trip":
        payload = transport.round_trip([message(b"request", 0)], 1)
        return payload if payload is not None else bytes(transport.receive(1)[3])
    transport.send([message(b"request", 0)])
    return bytes(transport.receive(1)[3])


METHODS = ["round trip", "send and receive"]
RESET = ConnectionResetError(errno.ECONNRESET, "reset")


@pytest.mark.parametrize("method", METHODS)
@with_cases
def test_socket_operation_is_retried_after_blocking_io_error(transport_and_peer, method, script):
    transport, peer = transport_and_peer
    transport._socket = ScriptedSocket(transport._socket, **script)
    send_all(peer, message(b"reply"))
    assert exchange(transport, method)[-5:] == b"reply"
    assert receive_exactly(peer, 23) == message(b"request", 0)
    assert not transport.out_of_step


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "script", [{"send": [RESET]}, {"send": [BlockingIOError(), RESET]}, {"recv": [RESET], "recv_into": [RESET]}]
)
def test_os_error_becomes_transport_error_with_equal_arguments(transport_and_peer, method, script):
    transport, peer = transport_and_peer
    transport._socket = ScriptedSocket(transport._socket, **script)
    send_all(peer, message(b"reply"))
    with pytest.raises(TransportError) as caught:
        exchange(transport, method)
    assert caught.value.args == RESET.args and caught.value.__cause__ is RESET


@pytest.mark.parametrize("method", METHODS)
def test_concurrent_request_raises_concurrent_object_use_error(transport_and_peer, method):
    transport, _peer = transport_and_peer
    first = gevent.spawn(exchange, transport, method)
    gevent.sleep(0)
    for other in METHODS:
        with pytest.raises(ConcurrentObjectUseError, match=r"already waits on <Transport fd=\d+>"):
            exchange(transport, other)
    first.kill()


@pytest.mark.parametrize("method", METHODS)
def test_switch_by_other_greenlet_raises_error_with_switched_value(transport_and_peer, method):
    waiter = gevent.spawn(exchange, transport_and_peer[0], method)
    gevent.sleep(0)
    gevent.spawn(waiter.switch, "wrong")
    with pytest.raises(InvalidSwitchError, match=r"switched into <Greenlet .* with 'wrong', expected <io at"):
        waiter.get(timeout=5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("interrupt_time", ["before", "while it waits", "with the reply", "by a fork"])
def test_interrupted_request_raises_copy_of_interruption(transport_and_peer, method, interrupt_time):
    transport, peer = transport_and_peer
    error = TransportError("interrupted")
    if interrupt_time == "before":
        transport.interrupt(error)
    requester = gevent.spawn(exchange, transport, method)
    gevent.sleep(0)
    if interrupt_time in ("with the reply", "by a fork"):
        send_all(peer, message(b"reply"))
    if interrupt_time == "by a fork":
        transport.mark_forked(error)
    elif interrupt_time != "before":
        transport.interrupt(error)
    with pytest.raises(TransportError, match=r"^interrupted$") as caught:
        requester.get()
    assert caught.value is not error and error.__traceback__ is None
    assert transport.closed is (interrupt_time != "by a fork")


def test_released_buffer_does_not_change_received_message(transport_and_peer):
    transport, peer = transport_and_peer
    own_socket, peer_socket = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    own_socket.setblocking(False)
    other = Transport(own_socket, True)
    send_all(peer, message(b"a" * 30))
    transport.receive(1)
    assert transport.release()
    send_all(peer_socket, message(b"b" * 30))
    received = other.receive(1)[3]
    send_all(peer, message(b"c" * 30))
    assert bytes(transport.receive(1)[3]) == b"c" * 30
    assert bytes(received) == b"b" * 30
    other.close()
    peer_socket.close()


@pytest.mark.parametrize("buffer_count", [1, 3])
@pytest.mark.parametrize("error_class", [GreenletExit, Timeout, ValueError])
def test_interruption_during_send_marks_transport_out_of_step(transport_and_peer, buffer_count, error_class):
    transport, _ = transport_and_peer
    sender = gevent.spawn(transport.send, [b"x" * 3_000_000] * buffer_count)
    gevent.sleep(0.01)
    assert not transport.out_of_step and not sender.ready()
    sender.kill(error_class)
    assert transport.out_of_step


def test_refused_connection_closes_transport():
    transports = []
    with refused_port() as port, pytest.raises(TransportError, match="refused"):
        connect(("127.0.0.1", port), transports.append)
    assert transports[0].closed


@pytest.mark.parametrize(("script", "has_arrived"), [([BlockingIOError()], False), ([RESET], True), ([], True)])
def test_received_byte_or_socket_error_counts_as_arrival(transport_and_peer, script, has_arrived):
    transport, peer = transport_and_peer
    send_all(peer, b"x")
    transport._socket = ScriptedSocket(transport._socket, recv=script)
    assert transport.has_arrived() is has_arrived


def test_interruption_that_cannot_be_copied_is_raised_as_transport_error(transport_and_peer):
    transport, _peer = transport_and_peer
    uncopyable_class = type("Uncopyable", (Exception,), {"__copy__": Mock(side_effect=TypeError)})
    transport.interrupt(uncopyable_class("text"))
    with pytest.raises(TransportError, match=r"^Uncopyable: text$"):
        transport.receive(1)


def test_connect_to_two_addresses_attaches_race_and_connected_transport(monkeypatch):
    with refused_port() as port, closing(_socket.socket()) as listener:
        listener.bind(("127.0.0.2", port))
        listener.listen(1)
        endpoints = [(_socket.AF_INET, ("127.0.0.1", port)), (_socket.AF_INET, ("127.0.0.2", port))]
        make_transport, attached, tls = connecting.make_transport, [], object()
        maker = Mock(side_effect=lambda family, ref, tls, host: make_transport(family, True, None, host))
        monkeypatch.setattr(connecting, "resolve", lambda address, ref: endpoints)
        monkeypatch.setattr(connecting, "make_transport", maker)
        transport = connect(("db.example", port), attached.append, ref=False, tls=tls)
        assert transport._socket.getpeername() == ("127.0.0.2", port)
        transport.close()
    assert [call.args for call in maker.call_args_list] == [(_socket.AF_INET, False, tls, "db.example")] * 2
    assert type(attached[0]) is Race and attached[1:] == [transport]


def test_failure_to_open_socket_raises_transport_error(monkeypatch):
    error = OSError(errno.EMFILE, "too many open files")
    monkeypatch.setattr(connecting._socket, "socket", Mock(side_effect=error))
    with pytest.raises(TransportError) as caught:
        connect(("127.0.0.1", 1), pytest.fail)
    assert caught.value.args == error.args and caught.value.__cause__ is error
