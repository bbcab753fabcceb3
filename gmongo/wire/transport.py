"""A stream socket under gevent, without gevent's socket object around it.

The raw non-blocking socket and two reused loop watchers cost a third of what ``gevent.socket`` costs per round trip.
One greenlet at a time uses a transport; any greenlet may :meth:`~Transport.interrupt` or :meth:`~Transport.close` it.
"""

from __future__ import annotations

import _socket
import errno
import mmap
import os
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING

from gevent import get_hub, getcurrent
from gevent.exceptions import ConcurrentObjectUseError, InvalidSwitchError
from greenlet import greenlet

from gmongo._background import LongWork
from gmongo._server_facts import sizes
from gmongo.wire.address import SocketAddress
from gmongo.wire.message import BEFORE_BODY, HEADER_SIZE, OP_MSG, decode_header, joined, read_beginning

if TYPE_CHECKING:
    from gevent._interfaces import IWatcher

_READ = 1
_WRITE = 2
# Most replies fit into a buffer of this size; a larger one gets memory of its own.
_SHORTEST = BEFORE_BODY + 5  # bytes of a reply with an empty document
_BUFFER_SIZE = 64 * 1024
# Buffers that are free. A transport has one only from the first byte of a reply until the reply has been decoded, so
# that idle connections hold none, and busy ones share the few that lie in the processor's cache.
_free_buffers: list[memoryview] = []
_KEPT_FREE = 4
_CHUNK_SIZE = 512 * 1024


class TransportError(OSError):
    """The socket failed, was closed, or could not be opened. Whatever else comes out of a transport was thrown into the
    greenlet from outside, even if it is an ``OSError`` (``gevent.Timeout(1, TimeoutError)``).
    """


class Transport:
    """One connected stream socket.

    :param sock: a non-blocking ``_socket.socket``, now owned by the transport.
    :param ref: whether waiting on it keeps the hub running; False for background greenlets.
    """

    __slots__ = (
        "__weakref__",
        "_end",
        "_have",
        "_hub",
        "_interruption",
        "_large",
        "_readable",
        "_socket",
        "_start",
        "_view",
        "_waiting",
        "_writable",
        "max_message_size",
        "out_of_step",
    )

    # Whether to wait for the socket before receiving from it; not if bytes may lie elsewhere.
    _waits_first = True

    def __init__(self, sock: _socket.socket, ref: bool) -> None:
        self._socket = sock
        self._hub = get_hub()
        self._readable = self._hub.loop.io(sock.fileno(), _READ, ref=ref)
        self._writable = self._hub.loop.io(sock.fileno(), _WRITE, ref=ref)
        self._waiting: greenlet | None = None  # the greenlet that waits for the socket
        self._interruption: BaseException | None = None
        self.max_message_size = sizes.MAX_MESSAGE_SIZE  # no reply may be longer; the hello may say otherwise
        self._view: memoryview | None = None  # the buffer
        self._start = 0  # where unread bytes begin in it
        self._end = 0  # and where they end
        self._large: memoryview | None = None  # a message that is too long for the buffer
        self._have: int  # and how much of it is there
        # Whether a request went out in part only, or a reply was lost halfway: what follows cannot be told apart.
        self.out_of_step = False

    def __repr__(self) -> str:
        return f"<Transport fd={self._socket.fileno()}>"

    @property
    def closed(self) -> bool:
        """Whether the socket is gone."""
        return self._socket.fileno() == -1

    def limit_messages(self, max_message_size: int) -> None:
        """Take no reply longer than `max_message_size` bytes from now on."""
        self.max_message_size = max_message_size

    def hold_hub(self, hold: bool) -> None:
        """Whether waiting on the socket keeps the hub running from now on."""
        if not self.closed:
            self._readable.ref = self._writable.ref = hold

    def connect(self, sockaddr: SocketAddress) -> None:
        """Connect the socket.

        :raises TransportError: the peer cannot be reached.
        """
        if not self.start_connecting(sockaddr):
            self._wait(self._writable)
            self._raise_failure(self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR))

    def start_connecting(self, sockaddr: SocketAddress) -> bool:
        """Begin to connect the socket; True if the connection is complete. Does not switch.

        :raises TransportError: the peer cannot be reached.
        """
        if self._interruption is not None:
            raise self._interruption
        error = self._socket.connect_ex(sockaddr)
        if error == errno.EINPROGRESS:
            return False
        self._raise_failure(error)
        return True

    def is_connected(self) -> bool:
        """True if the connection that :meth:`start_connecting` began is complete. Does not switch.

        :raises TransportError: the peer cannot be reached.
        """
        self._raise_failure(self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR))
        try:
            self._socket.getpeername()
        except OSError:
            return False
        return True

    def watch_connecting(self, callback: Callable[[], None] | None) -> None:
        """Call `callback` when the connection is complete or has failed; None ends the watch."""
        if callback is None:
            self._writable.stop()
        else:
            self._writable.start(callback)

    def _raise_failure(self, error: int) -> None:
        if error:
            raise TransportError(error, os.strerror(error))

    # Both at once

    def round_trip(self, buffers: Sequence[bytes], request_id: int) -> bytes | None:
        """Send a request and receive its reply, as :meth:`send` and :meth:`receive` do, but in one function: almost all
        commands go this way.

        :returns: the body of a reply that has come in one piece and has nothing else; None for any other, on which
            :meth:`receive` goes on.
        :raises TransportError: the connection is lost.
        """
        if len(buffers) != 1:
            self.send(buffers)
            return None
        if self._interruption is not None:
            raise without_frames(self._interruption)
        request = buffers[0]
        try:
            sent = self._socket.send(request)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise TransportError(*error.args) from error
        if sent != len(request):
            self._send_rest(memoryview(request)[sent:])
        if self._view is not None:  # there are bytes already
            return None
        # As in _wait and _receive_into.
        if self._waiting is not None:
            raise ConcurrentObjectUseError(f"{self._waiting!r} already waits on {self!r}")
        self._waiting = getcurrent()
        watcher = self._readable
        watcher.start(self._waiting.switch, watcher)
        try:
            result = self._hub.switch()
            if result is not watcher:
                raise InvalidSwitchError(f"switched into {getcurrent()!r} with {result!r}, expected {watcher!r}")
        finally:
            self._waiting = None
            watcher.stop()
        if self._interruption is not None:
            raise without_frames(self._interruption)
        try:
            data = self._socket.recv(_BUFFER_SIZE)
        except BlockingIOError:
            return None
        except OSError as error:
            raise TransportError(*error.args) from error
        return self._whole(data, request_id)

    def _whole(self, data: bytes, request_id: int) -> bytes | None:
        """The body, if `data` is a reply to `request_id` and nothing else; if not, it is kept for :meth:`receive`."""
        count = len(data)
        if (
            _SHORTEST <= count <= self.max_message_size
            # Length, what it replies to, opcode, flags, kind of the section, length of the body.
            and read_beginning(data) == (count, request_id, OP_MSG, 0, 0, count - BEFORE_BODY)
        ):
            return data[BEFORE_BODY:]
        view = self._view = _free_buffer()
        view[:count] = data
        self._end = count
        return None

    # Sending

    def send(self, buffers: Sequence[bytes]) -> None:
        """Send all of `buffers`.

        :raises TransportError: the connection is lost.
        """
        if len(buffers) == 1:
            data = buffers[0]
            sent = self._try_to_send(data)
            if sent != len(data):
                self._send_rest(memoryview(data)[sent:])
            return
        work = LongWork()
        try:
            for data in joined(buffers):
                self._send_rest(memoryview(data))
                work.checkpoint()
        except BaseException:
            self.out_of_step = True
            raise

    def _send_rest(self, data: memoryview) -> None:
        try:
            while data:
                sent = self._try_to_send(data)
                data = data[sent:]
                if data and not sent:
                    self._wait(self._writable)
        except BaseException:
            self.out_of_step = True
            raise

    def _try_to_send(self, data: bytes | memoryview) -> int:
        if self._interruption is not None:
            raise without_frames(self._interruption)
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise TransportError(*error.args) from error

    # Receiving

    def receive(self, request_id: int, or_to: int | None = None) -> tuple[int, int, int, memoryview]:
        """The next message: its request ID, that of what it replies to, opcode, and what follows its header, which is
        valid until :meth:`release`.

        A message above 64 KiB has memory of its own, which stays valid. If this is interrupted, it may be called again
        and goes on where it stood.

        :param or_to: what else the message may reply to.
        :raises TransportError: the connection is lost.
        :raises ProtocolError: a length is false, or the message replies to something else.
        """
        if self._large is not None:
            return self._receive_large(self._large, request_id, or_to)
        while self._end - self._start < HEADER_SIZE:
            self._fill()
        view = self._view
        assert view is not None
        header = decode_header(view, self._start, self.max_message_size, request_id, or_to)
        length, reply_id, response_to, opcode = header
        if length > _BUFFER_SIZE:
            return self._receive_large(self._begin_large(length), request_id, or_to)
        while self._end - self._start < length:
            self._fill()
        start = self._start
        self._start = start + length
        return reply_id, response_to, opcode, view[start + HEADER_SIZE : start + length]

    def release(self) -> bool:
        """Done with the last message. What has come of the next one stays; False if there is any."""
        view = self._view
        if view is not None:
            if self._start != self._end:
                return False
            self._view = None
            self._start = self._end = 0
            if len(_free_buffers) < _KEPT_FREE:
                _free_buffers.append(view)
        return True

    def _fill(self) -> None:
        """Read once more into the buffer, which never has to hold more than one message."""
        if self._waits_first:
            self._wait(self._readable)  # the reply is hardly ever there at once
        view = self._view
        if view is None:
            view = self._view = _free_buffer()
        start, end = self._start, self._end
        if start == end:
            self._start = self._end = end = 0
        elif start:
            unread = bytes(view[start:end])
            self._start, self._end = 0, len(unread)
            end = len(unread)
            view[:end] = unread
        self._end = end + self._receive_into(view[end:] if end else view)

    def _begin_large(self, length: int) -> memoryview:
        """Memory for a message that does not fit the shared buffer, with what has come of it."""
        assert self._view is not None
        message = memoryview(_memory(length))
        have = min(self._end - self._start, length)
        message[:have] = self._view[self._start : self._start + have]
        self._start += have
        self._large, self._have = message, have
        return message

    def _receive_large(
        self, message: memoryview, request_id: int, or_to: int | None
    ) -> tuple[int, int, int, memoryview]:
        """Read the rest of a message that has its own memory, in pieces, between which others have their turns."""
        header = decode_header(message, 0, self.max_message_size, request_id, or_to)
        length, reply_id, response_to, opcode = header
        while self._have < length:
            if self._waits_first:
                self._wait(self._readable)
            self._have += self._receive_into(message[self._have : self._have + _CHUNK_SIZE])
        self._large = None
        return reply_id, response_to, opcode, message[HEADER_SIZE:]

    def _receive_into(self, into: memoryview) -> int:
        """Receive what there is, or wait for something."""
        while True:
            try:
                count = self._socket.recv_into(into)
            except BlockingIOError:
                self._wait(self._readable)
                continue
            except OSError as error:
                raise TransportError(*error.args) from error
            if count == 0:
                raise TransportError("connection closed by the server")
            return count

    def has_arrived(self) -> bool:
        """Return whether a part of a message, or the end of the stream, has arrived. Does not switch."""
        if self._view is not None or self._large is not None:
            return True
        try:
            self._socket.recv(1, _socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    # The stream itself, for what comes before the first message

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are. Raises as :meth:`send` does."""
        Transport._send_rest(self, memoryview(data))

    def read_raw(self, size: int) -> bytes:
        """Read exactly `size` bytes as they come. Raises as :meth:`receive` does."""
        data = bytearray(size)
        have = 0
        with memoryview(data) as view:
            while have < size:
                have += Transport._receive_into(self, view[have:])
        return bytes(data)

    def receive_some(self, limit: int) -> bytes:
        """What has come of the stream, or what comes next, at most `limit` bytes. Raises as :meth:`receive` does."""
        data = bytearray(limit)
        with memoryview(data) as view:
            count = self._receive_into(view)
        return bytes(data[:count])

    # Waiting, and being interrupted

    def _wait(self, watcher: IWatcher) -> None:
        if self._interruption is not None:
            raise without_frames(self._interruption)
        if self._waiting is not None:
            raise ConcurrentObjectUseError(f"{self._waiting!r} already waits on {self!r}")
        # Not in a local as well: what is thrown here refers to this frame, and a greenlet keeps what ended it.
        self._waiting = getcurrent()
        watcher.start(self._waiting.switch, watcher)
        try:
            result = self._hub.switch()
            if result is not watcher:
                raise InvalidSwitchError(f"switched into {getcurrent()!r} with {result!r}, expected {watcher!r}")
        finally:
            self._waiting = None
            watcher.stop()
        if self._interruption is not None:
            raise without_frames(self._interruption)

    def interrupt(self, error: BaseException) -> None:
        """End whatever waits on the socket now or later with `error`, and close the socket. Does not switch."""
        if self._interruption is None:
            self._interruption = error
        self._wake()
        self._close_socket()

    def mark_forked(self, error: BaseException) -> None:
        """Mark the transport as inherited by a forked child: it never touches the parent's stream again."""
        self._interruption = error

    def close(self) -> None:
        """Close the socket; what waits on it raises :class:`TransportError`. Does not switch, and may be repeated."""
        if not self.closed:
            self.interrupt(TransportError("connection closed"))

    def _wake(self) -> None:
        greenlet = self._waiting
        if greenlet is None:
            return

        throw_into = greenlet.throw

        def throw() -> None:  # runs in the hub, so nothing can come between the check and the throw
            if self._waiting is greenlet and self._interruption is not None:
                throw_into(without_frames(self._interruption))

        self._hub.loop.run_callback(throw)

    def _close_socket(self) -> None:
        if not self.closed:
            self._readable.close()
            self._writable.close()
            self._socket.close()

    def __del__(self) -> None:
        self._close_socket()


def _free_buffer() -> memoryview:
    try:
        return _free_buffers.pop()
    except IndexError:  # not asked for before: another thread may take the last one
        return memoryview(bytearray(_BUFFER_SIZE))


def without_frames(error: BaseException) -> BaseException:
    """A copy without traceback. An error that is kept for later is kept as this, or all that its frames refer to
    would live on with it.
    """
    try:
        return copy(error)
    except Exception:  # its class has a constructor of another shape
        return TransportError(f"{type(error).__name__}: {error}")


def _memory(length: int) -> bytearray | mmap.mmap:
    """Memory for a message. Of a large one no page is there before it is written to: a false length costs nothing, and
    no time goes into clearing 48 MB.
    """
    if length <= _CHUNK_SIZE:
        return bytearray(length)
    return mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
