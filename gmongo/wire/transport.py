"""Stream socket under gevent, without a gevent socket object.

Per round trip, a raw non-blocking socket with two reused watchers needs a third of the time of
``gevent.socket``. One greenlet at a time uses a transport. Any greenlet may call
:meth:`Transport.interrupt` or :meth:`Transport.close`.
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
from gmongo.wire.message import BODY_OFFSET, HEADER_SIZE, OP_MSG, decode_header, join_buffers, read_beginning

if TYPE_CHECKING:
    from gevent._interfaces import IWatcher

_READ_EVENT = 1
_WRITE_EVENT = 2
_MIN_REPLY_SIZE = BODY_OFFSET + 5  # Size in bytes of a reply with an empty document.
_BUFFER_SIZE = 64 * 1024  # Size of a buffer in bytes. Larger replies have separate memory.
# A transport uses a buffer from the first byte of a reply until the reply is decoded. Idle
# connections need no buffer. Busy connections share few buffers, which stay in the processor cache.
_free_buffers: list[memoryview] = []
_MAX_FREE_BUFFERS = 4
_CHUNK_SIZE = 512 * 1024


class TransportError(OSError):
    """Error: a socket failed, was closed, or could not be opened."""

    # The application may raise an OSError that is no TransportError, for example with
    # `gevent.Timeout(1, TimeoutError)`.


class Transport:
    """Stream socket, at first unconnected. The transport owns `sock`. `set_ref` describes `ref`."""

    # True if `_fill_buffer` waits for the socket before receiving. False if a TLS engine may hold received bytes.
    _waits_first = True

    def __init__(self, sock: _socket.socket, ref: bool) -> None:
        self._socket = sock
        self._hub = get_hub()
        self._read_watcher = self._hub.loop.io(sock.fileno(), _READ_EVENT, ref=ref)
        self._write_watcher = self._hub.loop.io(sock.fileno(), _WRITE_EVENT, ref=ref)
        self._waiting_greenlet: greenlet | None = None  # Greenlet that waits for the socket.
        self._interruption: BaseException | None = None
        self.max_message_size = sizes.MAX_MESSAGE_SIZE  # In bytes. The hello sets another limit.
        self._view: memoryview | None = None  # Buffer for received bytes, or None.
        self._start = 0  # Start of the unread bytes in the buffer.
        self._end = 0  # End of the unread bytes in the buffer.
        self._large_message: memoryview | None = None  # Message that is too long for the buffer.
        self._received_size: int  # Number of received bytes of the message in `_large_message`.
        # True if no late reply can follow: for example, only a part of a request was sent.
        self.out_of_step = False

    def __repr__(self) -> str:
        return f"<Transport fd={self._socket.fileno()}>"

    @property
    def closed(self) -> bool:
        return self._socket.fileno() == -1

    def set_max_message_size(self, max_message_size: int) -> None:
        self.max_message_size = max_message_size

    def set_ref(self, keep_loop_alive: bool) -> None:
        """Set whether a wait for the socket keeps the event loop alive."""
        if not self.closed:
            self._read_watcher.ref = self._write_watcher.ref = keep_loop_alive

    def connect(self, sockaddr: SocketAddress) -> None:
        if not self.start_connecting(sockaddr):
            self._wait(self._write_watcher)
            self._raise_failure(self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR))

    def start_connecting(self, sockaddr: SocketAddress) -> bool:
        """Start to connect, without a greenlet switch. Return True if the connection is complete."""
        if self._interruption is not None:
            raise self._interruption
        error_number = self._socket.connect_ex(sockaddr)
        if error_number == errno.EINPROGRESS:
            return False
        self._raise_failure(error_number)
        return True

    def is_connected(self) -> bool:
        """Return True if the connection is complete, or raise TransportError. Do not switch greenlets."""
        self._raise_failure(self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR))
        return self.has_peer()

    def has_peer(self) -> bool:
        """Return True if the connection is complete, without clearing the error of the socket."""
        try:
            self._socket.getpeername()
        except OSError:
            return False
        return True

    def watch_connecting(self, callback: Callable[[], None] | None) -> None:
        """Call `callback` after the end of the connection attempt. None stops the watcher."""
        if callback is None:
            self._write_watcher.stop()
        else:
            self._write_watcher.start(callback)

    def _raise_failure(self, error_number: int) -> None:
        if error_number:
            raise TransportError(error_number, os.strerror(error_number))

    def round_trip(self, buffers: Sequence[bytes], request_id: int) -> bytes | None:
        """Send a request and receive its reply. This hot path combines `send` and `receive`.

        Return the body, or None if the caller must call :meth:`receive`, for example because the
        reply arrives in pieces.
        """
        if len(buffers) != 1:
            self.send(buffers)
            return None
        if self._interruption is not None:
            raise without_frames(self._interruption)
        request = buffers[0]
        try:
            sent_size = self._socket.send(request)
        except BlockingIOError:
            sent_size = 0
        except OSError as error:
            raise TransportError(*error.args) from error
        if sent_size != len(request):
            self._send_rest(memoryview(request)[sent_size:])
        if self._view is not None:  # the connection has unread bytes
            return None
        # The following lines repeat `_wait` and `_receive_into`, because calls would cost time.
        if self._waiting_greenlet is not None:
            raise ConcurrentObjectUseError(f"{self._waiting_greenlet!r} already waits on {self!r}")
        self._waiting_greenlet = getcurrent()
        watcher = self._read_watcher
        watcher.start(self._waiting_greenlet.switch, watcher)
        try:
            result = self._hub.switch()
            if result is not watcher:
                raise InvalidSwitchError(f"switched into {getcurrent()!r} with {result!r}, expected {watcher!r}")
        finally:
            self._waiting_greenlet = None
            watcher.stop()
        if self._interruption is not None:
            raise without_frames(self._interruption)
        try:
            data = self._socket.recv(_BUFFER_SIZE)
        except BlockingIOError:
            return None
        except OSError as error:
            raise TransportError(*error.args) from error
        return self._extract_body(data, request_id)

    def _extract_body(self, data: bytes, request_id: int) -> bytes | None:
        """Return the body if `data` is a reply with only a body section. Otherwise, buffer `data`."""
        count = len(data)
        if (
            _MIN_REPLY_SIZE <= count <= self.max_message_size
            # The fields are length, responseTo, opcode, flags, section kind and body length.
            and read_beginning(data) == (count, request_id, OP_MSG, 0, 0, count - BODY_OFFSET)
        ):
            return data[BODY_OFFSET:]
        view = self._view = _acquire_buffer()
        view[:count] = data
        self._end = count
        return None

    def send(self, buffers: Sequence[bytes]) -> None:
        if len(buffers) == 1:
            data = buffers[0]
            sent_size = self._try_to_send(data)
            if sent_size != len(data):
                self._send_rest(memoryview(data)[sent_size:])
            return
        work = LongWork()
        try:
            for data in join_buffers(buffers):
                self._send_rest(memoryview(data))
                work.checkpoint()
        except BaseException:
            self.out_of_step = True
            raise

    def _send_rest(self, data: memoryview) -> None:
        try:
            while data:
                sent_size = self._try_to_send(data)
                data = data[sent_size:]
                if data and not sent_size:
                    self._wait(self._write_watcher)
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

    def receive(self, request_id: int, other_request_id: int | None = None) -> tuple[int, int, int, memoryview]:
        """Receive the next message, and return its request ID, responseTo, opcode, and payload without the header.

        A payload of at most 64 KiB is valid only until :meth:`release`. If an exception interrupts
        this method, the next call continues with the interrupted message. `other_request_id` is a
        second allowed responseTo.
        """
        if self._large_message is not None:
            return self._receive_large_message(self._large_message, request_id, other_request_id)
        while self._end - self._start < HEADER_SIZE:
            self._fill_buffer()
        view = self._view
        assert view is not None
        header = decode_header(view, self._start, self.max_message_size, request_id, other_request_id)
        length, reply_id, response_to, opcode = header
        if length > _BUFFER_SIZE:
            return self._receive_large_message(self._start_large_message(length), request_id, other_request_id)
        while self._end - self._start < length:
            self._fill_buffer()
        start = self._start
        self._start = start + length
        return reply_id, response_to, opcode, view[start + HEADER_SIZE : start + length]

    def release(self) -> bool:
        """Release the buffer and return True, or return False if the buffer has unread bytes."""
        view = self._view
        if view is not None:
            if self._start != self._end:
                return False
            self._view = None
            self._start = self._end = 0
            if len(_free_buffers) < _MAX_FREE_BUFFERS:
                _free_buffers.append(view)
        return True

    def _fill_buffer(self) -> None:
        """Receive bytes from the socket once. The buffer has space for the incomplete message."""
        if self._waits_first:  # the reply has usually not yet arrived
            self._wait(self._read_watcher)
        view = self._view
        if view is None:
            view = self._view = _acquire_buffer()
        if self._start:
            unread = bytes(view[self._start : self._end])
            self._start, self._end = 0, len(unread)
            view[: self._end] = unread
        self._end += self._receive_into(view[self._end :])

    def _start_large_message(self, length: int) -> memoryview:
        """Return separate memory with the received bytes of a message that exceeds the buffer."""
        assert self._view is not None
        message = memoryview(_allocate_memory(length))
        received_size = min(self._end - self._start, length)
        message[:received_size] = self._view[self._start : self._start + received_size]
        self._start += received_size
        self._large_message, self._received_size = message, received_size
        return message

    def _receive_large_message(
        self, message: memoryview, request_id: int, other_request_id: int | None
    ) -> tuple[int, int, int, memoryview]:
        """Receive the rest of a long message. Other greenlets can run between the pieces."""
        header = decode_header(message, 0, self.max_message_size, request_id, other_request_id)
        length, reply_id, response_to, opcode = header
        while self._received_size < length:
            if self._waits_first:
                self._wait(self._read_watcher)
            self._received_size += self._receive_into(message[self._received_size : self._received_size + _CHUNK_SIZE])
        self._large_message = None
        return reply_id, response_to, opcode, message[HEADER_SIZE:]

    def _receive_into(self, into: memoryview) -> int:
        """Receive at least one byte into `into`, and return the number of received bytes."""
        while True:
            try:
                count = self._socket.recv_into(into)
            except BlockingIOError:
                self._wait(self._read_watcher)
                continue
            except OSError as error:
                raise TransportError(*error.args) from error
            if count == 0:
                raise TransportError("connection closed by the server")
            return count

    def has_arrived(self) -> bool:
        """Without a greenlet switch, return True if bytes or the end of the stream have arrived."""
        if self._view is not None or self._large_message is not None:
            return True
        try:
            self._socket.recv(1, _socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def send_raw(self, data: bytes) -> None:
        """Send bytes directly to the socket, without TLS."""
        Transport._send_rest(self, memoryview(data))

    def read_raw(self, size: int) -> bytes:
        """Receive exactly `size` bytes directly from the socket, without TLS."""
        view, received_size = memoryview(bytearray(size)), 0
        while received_size < size:
            received_size += Transport._receive_into(self, view[received_size:])
        return bytes(view)

    def receive_some(self, limit: int) -> bytes:
        """Receive the next bytes of the stream, at most `limit` bytes."""
        view = memoryview(bytearray(limit))
        return bytes(view[: self._receive_into(view)])

    def _wait(self, watcher: IWatcher) -> None:
        if self._interruption is not None:
            raise without_frames(self._interruption)
        if self._waiting_greenlet is not None:
            raise ConcurrentObjectUseError(f"{self._waiting_greenlet!r} already waits on {self!r}")
        # Keep the greenlet in no local variable. A dead greenlet refers to its exception, and the
        # traceback of the exception refers to this frame.
        self._waiting_greenlet = getcurrent()
        watcher.start(self._waiting_greenlet.switch, watcher)
        try:
            result = self._hub.switch()
            if result is not watcher:
                raise InvalidSwitchError(f"switched into {getcurrent()!r} with {result!r}, expected {watcher!r}")
        finally:
            self._waiting_greenlet = None
            watcher.stop()
        if self._interruption is not None:
            raise without_frames(self._interruption)

    def interrupt(self, error: BaseException) -> None:
        """Close the socket, without a greenlet switch. Current and later waits raise `error`."""
        if self._interruption is None:
            self._interruption = error
        self._wake()
        self._close_socket()

    def mark_forked(self, error: BaseException) -> None:
        """Prevent a forked child from using the transport of the parent process."""
        self._interruption = error

    def close(self) -> None:
        """Close the socket, without a greenlet switch. A waiting greenlet raises TransportError."""
        if not self.closed:
            self.interrupt(TransportError("connection closed"))

    def _wake(self) -> None:
        greenlet = self._waiting_greenlet
        if greenlet is None:
            return
        throw_into = greenlet.throw

        def throw() -> None:  # the hub calls `throw`, so no other greenlet runs before the error
            if self._waiting_greenlet is greenlet and self._interruption is not None:
                throw_into(without_frames(self._interruption))

        self._hub.loop.run_callback(throw)

    def _close_socket(self) -> None:
        if not self.closed:
            self._read_watcher.close()
            self._write_watcher.close()
            self._socket.close()

    def __del__(self) -> None:
        self._close_socket()


def _acquire_buffer() -> memoryview:
    try:
        return _free_buffers.pop()
    except IndexError:
        # another thread may remove the last buffer at any time
        return memoryview(bytearray(_BUFFER_SIZE))


def without_frames(error: BaseException) -> BaseException:
    """Return a copy of an error without its traceback, which would keep local variables of frames alive."""
    try:
        return copy(error)
    except Exception:  # the constructor of the error does not accept `error.args`
        return TransportError(f"{type(error).__name__}: {error}")


def _allocate_memory(length: int) -> bytearray | mmap.mmap:
    if length <= _CHUNK_SIZE:
        return bytearray(length)
    # The operating system allocates each page of a memory map at the first write. Therefore a wrong
    # message length wastes no memory, and the driver spends no time on writing zeros to as much as
    # 48 MB.
    return mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
