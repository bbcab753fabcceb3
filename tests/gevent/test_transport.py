"""The transport: bytes through a raw socket, in any pieces, and interruptions of every kind."""

from __future__ import annotations

import _socket
import errno
import struct

import gevent
import pytest
from gevent import GreenletExit, Timeout
from gevent.exceptions import ConcurrentObjectUseError, InvalidSwitchError

from gmongo._background import LongWork
from gmongo.errors import ProtocolError
from gmongo.wire.connect import connect
from gmongo.wire.message import OP_MSG
from gmongo.wire.transport import Transport, TransportError, without_frames


@pytest.fixture
def pair():
    """A transport, and the blocking-free raw socket at its other end."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    ours.setblocking(False)
    theirs.setblocking(False)
    transport = Transport(ours, True)
    with gevent.Timeout(10):
        yield transport, theirs
    transport.close()
    theirs.close()


def message(payload, response_to=1, request_id=9, length=None):
    return struct.pack("<iiii", length or 16 + len(payload), request_id, response_to, OP_MSG) + payload


def push(sock, data):
    """Send everything, however small the socket's buffer is."""
    view = memoryview(data)
    while view:
        try:
            view = view[sock.send(view) :]
        except BlockingIOError:
            gevent.sleep(0)


def pull(sock, size):
    data = b""
    while len(data) < size:
        try:
            data += sock.recv(size - len(data))
        except BlockingIOError:
            gevent.sleep(0)
    return data


@pytest.mark.parametrize("size", [0, 1, 16 * 1024 - 16, 16 * 1024 - 15, 100_000, 3_000_000])
def test_message_of_any_size(pair, size):
    transport, peer = pair
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    gevent.spawn(push, peer, message(payload))
    reply_id, _response_to, opcode, received = transport.receive(1)
    assert (reply_id, opcode, bytes(received)) == (9, OP_MSG, payload)


@pytest.mark.parametrize("pieces", [1, 2, 3, 15, 16, 17, 40])
def test_message_in_pieces(pair, pieces):
    transport, peer = pair
    whole = message(b"x" * 30)

    def dribble():
        for start in range(0, len(whole), pieces):
            push(peer, whole[start : start + pieces])
            gevent.sleep(0)

    gevent.spawn(dribble)
    assert bytes(transport.receive(1)[3]) == b"x" * 30


def test_messages_that_arrive_together(pair):
    transport, peer = pair
    sizes = [5, 16_000, 3, 20_000, 7, 15_000, 15_000, 0]
    push_all = b"".join(message(bytes([number]) * size, number) for number, size in enumerate(sizes))
    gevent.spawn(push, peer, push_all)
    for number, size in enumerate(sizes):
        assert bytes(transport.receive(number)[3]) == bytes([number]) * size


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_sending_more_than_the_socket_holds(pair, count):
    transport, peer = pair
    buffers = [bytes([number % 256]) * (4_000_000 // count) for number in range(count)]
    sender = gevent.spawn(transport.send, buffers)
    expected = b"".join(buffers)
    received = bytearray()
    while len(received) < len(expected):
        try:
            received += peer.recv(1 << 20)
        except BlockingIOError:
            gevent.sleep(0)
    sender.get()
    assert received == expected


def fill(transport):
    """Send until the socket takes no more; returns how many bytes it holds."""
    held = 0
    while True:
        try:
            held += transport._socket.send(b"x" * 1000)
        except BlockingIOError:
            return held


@pytest.mark.parametrize("sizes", [[1], [100], [400_000], [1, 1, 1], [100_000, 1, 100_000]], ids=str)
@pytest.mark.parametrize("is_full", [False, True], ids=["empty", "full"])
@pytest.mark.parametrize("expects_reply", [False, True], ids=["send", "round trip"])
def test_what_the_socket_does_not_take_at_once_follows(pair, sizes, is_full, expects_reply):
    transport, peer = pair
    buffers = [bytes([65 + place]) * size for place, size in enumerate(sizes)]
    held = fill(transport) if is_full else 0
    sending = gevent.spawn(transport.round_trip, buffers, 1) if expects_reply else gevent.spawn(transport.send, buffers)
    gevent.sleep(0)
    assert pull(peer, held + sum(sizes))[held:] == b"".join(buffers)
    if expects_reply:
        push(peer, message(b"\0" * 5 + b"\5\0\0\0\0"))
        if sending.get() is None:  # a reply after several buffers is received apart
            assert bytes(transport.receive(1)[3]) == b"\0" * 5 + b"\5\0\0\0\0"
        else:
            assert sending.get() == b"\5\0\0\0\0"
    sending.get()
    with pytest.raises(BlockingIOError):
        peer.recv(1)
    assert not transport.out_of_step


def test_end_of_the_stream(pair):
    transport, peer = pair
    push(peer, message(b"abc")[:10])
    peer.close()
    with pytest.raises(TransportError, match="closed by the server"):
        transport.receive(1)


def test_false_length_costs_no_memory(pair):
    """A length of 40 MB is believed only as far as bytes arrive."""
    import tracemalloc

    transport, peer = pair
    push(peer, message(b"abc", length=40_000_000))
    tracemalloc.start()
    try:
        with gevent.Timeout(0.02, False):
            transport.receive(1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


def test_limit_of_messages(pair):
    transport, peer = pair
    transport.limit_messages(1000)
    push(peer, message(b"x" * 985))
    with pytest.raises(ProtocolError, match="length 1001 is not between 16 and 1000"):
        transport.receive(1)


# Interruptions


class Interruption(Exception):
    pass


def test_interrupt_while_it_waits(pair):
    transport, _peer = pair
    error = Interruption()
    reader = gevent.spawn(transport.receive, 1)
    gevent.sleep(0)
    transport.interrupt(error)
    gevent.joinall([reader])
    assert type(reader.exception) is Interruption  # a copy, which keeps no frame of this greenlet
    assert transport.closed


def test_interrupt_before_it_waits(pair):
    transport, _peer = pair
    error = Interruption()
    transport.interrupt(error)
    with pytest.raises((Interruption, OSError)):
        transport.receive(1)
    with pytest.raises((Interruption, OSError)):
        transport.send([b"abc"])


def test_interrupt_that_comes_with_the_reply(pair):
    """The reply is there and the interruption too: the reader gets one of them, and no other is interrupted."""
    transport, peer = pair
    error = Interruption()
    reader = gevent.spawn(transport.receive, 1)
    gevent.sleep(0)
    push(peer, message(b"abc"))
    transport.interrupt(error)
    gevent.joinall([reader])
    assert type(reader.exception) is Interruption
    gevent.sleep(0.01)


def test_an_interrupt_that_comes_after_its_greenlet_has_left(pair):
    """The greenlet was killed in the meantime and does something else, which must not be hit."""
    transport, _peer = pair

    def read_and_go_on():
        try:
            transport.receive(1)
        except Timeout:
            gevent.sleep(0.02)
            return "went on"

    reader = gevent.spawn(read_and_go_on)
    gevent.sleep(0)
    reader.kill(Timeout(), block=False)
    transport.interrupt(Interruption())
    assert reader.get() == "went on"


def test_first_interruption_counts(pair):
    transport, _peer = pair
    first = Interruption("first")
    reader = gevent.spawn(transport.receive, 1)
    gevent.sleep(0)
    transport.interrupt(first)
    transport.interrupt(Interruption("second"))
    transport.close()
    gevent.joinall([reader])
    assert (type(reader.exception), str(reader.exception)) == (Interruption, "first")


def test_close_while_it_waits(pair):
    transport, _peer = pair
    reader = gevent.spawn(transport.receive, 1)
    gevent.sleep(0)
    transport.close()
    transport.close()
    gevent.joinall([reader])
    assert isinstance(reader.exception, OSError)


def test_two_greenlets_at_a_time_are_refused(pair):
    transport, _peer = pair
    reader = gevent.spawn(transport.receive, 1)
    gevent.sleep(0)
    with pytest.raises(ConcurrentObjectUseError):
        transport.receive(1)
    transport.close()
    gevent.joinall([reader])


@pytest.mark.parametrize("thrown", [Timeout, gevent.GreenletExit, Interruption])
def test_what_is_thrown_comes_out_as_it_went_in(pair, thrown):
    transport, _peer = pair
    error = thrown()
    reader = gevent.spawn(transport.receive, 1)
    gevent.sleep(0)
    reader.kill(error)
    assert reader.exception is error or reader.value is error


def test_abandoned_transport_touches_its_stream_no_more(pair):
    transport, peer = pair
    error = Interruption()
    push(peer, message(b"abc"))
    transport.mark_forked(error)
    with pytest.raises(Interruption):
        transport.receive(1)
    with pytest.raises(Interruption):
        transport.send([b"abc"])
    with pytest.raises(BlockingIOError):
        peer.recv(1)


# Connecting


def listener():
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    sock.bind(("127.0.0.1", 0))
    sock.listen(5)
    return sock, sock.getsockname()[1]


def test_connect():
    sock, port = listener()
    attached = []
    with gevent.Timeout(30):
        connect(("127.0.0.1", port), attached.append)
        connect(("localhost", port), attached.append)
    assert not attached[0].closed
    assert not attached[-1].closed  # an earlier one may have been the other kind of localhost
    for transport in attached:
        transport.close()
    sock.close()


def test_refused():
    sock, port = listener()
    sock.close()
    attached = []
    with pytest.raises(TransportError, match="Connection refused"):
        connect(("127.0.0.1", port), attached.append)
    assert [transport.closed for transport in attached] == [True]


def test_unknown_host():
    with pytest.raises(OSError):
        connect(("no-such-host.invalid", 1), lambda transport: None)


def test_unix_socket(tmp_path):
    path = str(tmp_path / "server.sock")
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    sock.bind(path)
    sock.listen(1)
    attached = []
    connect((path, None), attached.append)
    assert not attached[0].closed
    attached[0].close()
    sock.close()


def test_interrupted_before_it_is_connected():
    sock, port = listener()
    attached = []

    def attach(transport):
        attached.append(transport)
        transport.interrupt(Interruption())

    with pytest.raises((Interruption, OSError)):
        connect(("127.0.0.1", port), attach)
    assert attached[0].closed
    sock.close()


# Whatever the system says at whichever call


class Scripted:
    """A socket whose next calls of one name raise what the test says, and then go through."""

    def __init__(self, sock, **script):
        self._sock = sock
        self._script = {name: list(errors) for name, errors in script.items()}

    def __getattr__(self, name):
        waiting = self._script.get(name)
        if not waiting:
            return getattr(self._sock, name)
        error = waiting.pop(0)

        def call(*_arguments):
            raise error

        return call


def ask(transport, way):
    """One request with its reply, as commands do it."""
    if way == "round trip":
        whole = transport.round_trip([message(b"request", 0)], 1)
        return whole if whole is not None else bytes(transport.receive(1)[3])
    transport.send([message(b"request", 0)])
    return bytes(transport.receive(1)[3])


WAYS = ["round trip", "one after the other"]
RESET = ConnectionResetError(errno.ECONNRESET, "reset")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "script",
    [
        {"send": [BlockingIOError()]},
        {"send": [BlockingIOError(), BlockingIOError()]},
        {"recv": [BlockingIOError()], "recv_into": [BlockingIOError()]},
        {"send": [BlockingIOError()], "recv": [BlockingIOError()], "recv_into": [BlockingIOError()]},
    ],
)
def test_a_socket_that_is_not_ready_after_all_is_waited_for(pair, way, script):
    transport, peer = pair
    transport._socket = Scripted(transport._socket, **script)
    push(peer, message(b"reply"))
    assert ask(transport, way)[-5:] == b"reply"
    assert pull(peer, 23) == message(b"request", 0)
    assert not transport.out_of_step


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "script",
    [
        {"send": [RESET]},
        {"send": [BlockingIOError(), RESET]},
        {"recv": [RESET], "recv_into": [RESET]},
    ],
)
def test_what_the_system_says_is_in_the_error(pair, way, script):
    transport, peer = pair
    transport._socket = Scripted(transport._socket, **script)
    push(peer, message(b"reply"))
    with pytest.raises(TransportError) as caught:
        ask(transport, way)
    assert caught.value.args == RESET.args and caught.value.__cause__ is RESET


@pytest.mark.parametrize("way", WAYS)
def test_a_request_waits_alone(pair, way):
    transport, _peer = pair
    first = gevent.spawn(ask, transport, way)
    gevent.sleep(0)
    for other in WAYS:
        with pytest.raises(ConcurrentObjectUseError, match=r"already waits on <Transport fd=\d+>"):
            ask(transport, other)
    first.kill()


@pytest.mark.parametrize("way", WAYS)
def test_a_greenlet_that_is_switched_into_by_another_says_so(pair, way):
    transport, peer = pair
    asking = gevent.spawn(ask, transport, way)
    gevent.sleep(0)
    gevent.get_hub().loop.run_callback(asking.switch, "something else")
    with pytest.raises(InvalidSwitchError, match=r"^switched into .* with 'something else', expected <"):
        asking.get()
    push(peer, message(b"reply"))
    assert bytes(transport.receive(1)[3]) == b"reply"  # the watcher is free again


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("when", ["before", "while it waits", "with the reply"])
def test_an_interrupted_request_raises_a_copy_of_what_has_interrupted_it(pair, way, when):
    transport, peer = pair
    error = TransportError("interrupted")
    if when == "before":
        transport.interrupt(error)
    asking = gevent.spawn(ask, transport, way)
    gevent.sleep(0)
    if when == "with the reply":
        push(peer, message(b"reply"))
    if when != "before":
        transport.interrupt(error)
    with pytest.raises(TransportError, match=r"^interrupted$") as caught:
        asking.get()
    assert caught.value is not error and error.__traceback__ is None
    assert transport.closed


def test_an_error_that_cannot_be_copied_is_told_in_words():
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(f"{one} and {two}")

    copied = without_frames(Odd(1, 2))
    assert type(copied) is TransportError and str(copied) == "Odd: 1 and 2"
    plain = ValueError(5)
    assert type(without_frames(plain)) is ValueError and without_frames(plain).args == (5,)
    assert without_frames(plain) is not plain


def test_too_many_files(monkeypatch):
    error = OSError(errno.EMFILE, "Too many open files")

    def refuse(*_arguments):
        raise error

    monkeypatch.setattr("gmongo.wire.connect._socket.socket", refuse)
    with pytest.raises(TransportError) as caught:
        connect(("127.0.0.1", 1), lambda transport: None)
    assert caught.value.args == error.args and caught.value.__cause__ is error


@pytest.mark.parametrize("call", ["round trip", "receive", "send", "connect"])
def test_a_transport_that_is_marked_while_it_waits_ends_with_what_it_was_marked_with(pair, call):
    """As in a forked child, where the copy of a greenlet goes on when the parent's socket has something to read."""
    transport, peer = pair
    calls = {
        "round trip": lambda: transport.round_trip([b"request"], 1),
        "receive": lambda: transport.receive(1),
        "send": lambda: transport.send([bytes(5_000_000)]),
    }
    if call == "connect":
        transport.mark_forked(Interruption())
        with pytest.raises(Interruption):
            transport.connect(("127.0.0.1", 1))
        return
    waiting = gevent.spawn(calls[call])
    gevent.sleep(0)
    assert not waiting.ready()
    transport.mark_forked(Interruption())
    if call == "send":
        pull(peer, 1000)
        while not waiting.ready():
            try:
                peer.recv(1_000_000)
            except BlockingIOError:
                pass
            gevent.sleep(0)
    else:
        push(peer, message(b"abc"))
    waiting.join()
    assert type(waiting.exception) is Interruption
    with pytest.raises(Interruption):
        transport.send([b"more"])


def test_a_buffer_is_used_by_one_transport_at_a_time(pair):
    transport, peer = pair
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    ours.setblocking(False)
    other = Transport(ours, True)
    push(peer, message(b"a" * 30))
    transport.receive(1)
    assert transport.release()
    push(theirs, message(b"b" * 30))
    received = other.receive(1)[3]
    push(peer, message(b"c" * 30))
    assert bytes(transport.receive(1)[3]) == b"c" * 30
    assert bytes(received) == b"b" * 30
    other.close()
    theirs.close()


def test_a_socket_that_is_not_there(tmp_path):
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    sock.setblocking(False)
    transport = Transport(sock, True)
    with gevent.Timeout(5), pytest.raises(TransportError) as caught:
        transport.connect(str(tmp_path / "missing"))
    assert caught.value.args[0] == errno.ENOENT
    transport.close()


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("thrown", [GreenletExit, Timeout, ValueError])
def test_what_is_thrown_amid_a_request_leaves_it_out_of_step(pair, count, thrown):
    transport, _ = pair
    sending = gevent.spawn(transport.send, [b"x" * 3_000_000] * count)
    gevent.sleep(0.01)
    assert not transport.out_of_step and not sending.ready()
    sending.kill(thrown)
    assert transport.out_of_step


def test_what_is_thrown_between_pieces_of_a_request_leaves_it_out_of_step(pair, monkeypatch):
    def interrupted(_work):
        raise GreenletExit

    monkeypatch.setattr(LongWork, "checkpoint", interrupted)
    transport, _ = pair
    with pytest.raises(GreenletExit):
        transport.send([b"x", b"y"])
    assert transport.out_of_step
