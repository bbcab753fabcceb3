"""A connection to one server: one request and its reply at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from bson.errors import InvalidBSON
from bson.objectid import ObjectId
from gevent.exceptions import ConcurrentObjectUseError

from gmongo._server_facts import sizes
from gmongo._short_text import milliseconds
from gmongo.cmap.hello import Hello
from gmongo.errors import AutoReconnect, InvalidOperation, NetworkTimeout, ProtocolError
from gmongo.wire.address import Address, address_text
from gmongo.wire.compression import Compressor, compressed, decompressed
from gmongo.wire.limit import Limit, interrupt_after, limit_text
from gmongo.wire.message import OP_COMPRESSED, Buffer, allows_stream, decode_reply
from gmongo.wire.race import AttemptsTimedOut, Race
from gmongo.wire.reply import is_sound
from gmongo.wire.transport import Transport, TransportError, without_frames

if TYPE_CHECKING:
    from gmongo.cmap.progress import Progress


Decoded = TypeVar("Decoded")
Lost = TypeVar("Lost", bound=AutoReconnect)


class Reauthentication(Protocol):
    """The authentication of a connection, which can be repeated."""

    def again(self, seconds: float | None) -> None:
        """Authenticate once more, within `seconds`."""


class ServerConnection:
    """A connection, from its creation, which does no I/O, to its close.

    :param address: of the server.
    :param socket_timeout: limit in seconds for one exchange; None is without limit.
    :param ref: whether waiting on it keeps the hub running.
    :param monitors: whether it is a monitor's, and so never authenticates.

    `mid_message` is true from the first byte of a request to the last of its reply: a connection that is given back in
    this state is out of step with its server and must be closed.
    """

    __slots__ = (
        "__weakref__",
        "_compressor",
        "_interruption",
        "_last_reply_id",
        "_limit",
        "_ref",
        "_stream",
        "_transport",
        "address",
        "authentication",
        "error",
        "hello",
        "id",
        "inherited",
        "mid_message",
        "monitors",
        "progress",
        "race",
        "service_id",
        "socket_timeout",
        "unanswered",
    )

    def __init__(
        self, address: Address, socket_timeout: float | None = None, ref: bool = True, monitors: bool = False
    ) -> None:
        self.address = address
        self.monitors = monitors
        self.socket_timeout = socket_timeout
        self.id = 0
        self.service_id: ObjectId | None = None
        self.hello: Hello
        self.inherited = False  # whether this is a forked child's copy of a connection of its parent's
        self.mid_message = False
        self.error: BaseException | None = None  # what made it unusable, if it is
        # The ID of the request whose reply is outstanding after an interruption.
        self.unanswered: int | None = None
        self.authentication: Reauthentication | None = None  # how it has authenticated, if it has
        self.progress: Progress | None = None  # while it is established
        self.race: Race | None = None  # while several TCP connections are in progress
        self._ref = ref
        self._limit: Limit | None = None  # from the first exchange on that has one
        self._transport: Transport | None = None
        self._interruption: BaseException | None = None
        self._last_reply_id = 0
        self._stream = 0  # the ID of the request that began a stream
        self._compressor: Compressor | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.id} to {address_text(self.address)}>"

    @property
    def usable(self) -> bool:
        """Whether another request may be sent on it."""
        return not self.mid_message and self.error is None

    @property
    def has_socket(self) -> bool:
        """Whether a socket was made for it: not before its server's name was resolved."""
        return self._transport is not None or self.race is not None

    @property
    def ref(self) -> bool:
        """Whether waiting on it keeps the hub running."""
        return self._ref

    @property
    def handshake_done(self) -> bool:
        """Whether the handshake is done, so that `hello` is there."""
        return hasattr(self, "hello")

    def attach(self, transport: Transport) -> None:
        """Take over the transport that has the socket."""
        self.race = None
        self._transport = transport
        # A clear or a close may have come while the name was resolved, when there was no socket to close.
        if self._interruption is not None:
            transport.interrupt(self._interruption)

    def attach_race(self, race: Race) -> None:
        """Take over the TCP connections of which one will be that of the connection."""
        self.race = race
        if self._interruption is not None:
            race.interrupt(self._interruption)

    def established(self, hello: Hello, compressor: Compressor | None) -> None:
        """Take over what the hello found out; the connection may have to authenticate yet.

        :param compressor: of the requests that follow, if both sides want one.
        """
        self.hello = hello
        self._compressor = compressor
        self._open_transport().limit_messages(hello.max_message_size + sizes.COMMAND_OVERHEAD)

    def reauthenticate(self, seconds: float | None = None) -> None:
        """Authenticate again, after a reply with the code 391 (ReauthenticationRequired). Then the command may be sent
        again, on this connection.

        :param seconds: that it may take, beside ``connectTimeoutMS``; None is without limit.
        :raises InvalidOperation: the connection has never authenticated.
        :raises OperationFailure: the server did not accept the credential; the connection is then unusable.
        """
        if self.authentication is None:
            raise InvalidOperation(f"{self!r} has not authenticated, so it cannot do so again")
        try:
            self.authentication.again(seconds)
        except BaseException as error:
            self.unanswered = None  # the user that the connection is authenticated as is not known
            self.error = self.error or without_frames(error)
            raise

    def hold_hub(self, hold: bool) -> None:
        """Whether waiting on it keeps the hub running: not while it is established in the background."""
        self._ref = hold
        if self._transport is not None:
            self._transport.hold_hub(hold)

    # Talking

    def exchange(
        self, request_id: int, buffers: Sequence[bytes], timeout: float | None, decode: Callable[[Buffer], Decoded]
    ) -> Decoded:
        """Send a request and return its reply. One that allows a stream returns the next reply of the stream that is
        under way, if one is, and is not sent.

        :param timeout: seconds until the reply must be complete; None is without limit.
        :param decode: decodes its body, which is not valid any more afterwards if it is below 64 KiB.
        :raises AutoReconnect: the connection was lost; :class:`NetworkTimeout` when the time was up. If it was up
            before anything was sent, the connection is as it was.
        :raises ProtocolError: the reply breaks the protocol.
        """
        if self.mid_message:
            return self._next_of_stream(buffers, timeout, decode)
        # Set before the first byte, taken back after the last: whatever is thrown in between, by a kill, a time-out or
        # the socket, leaves the mark, by which the pool closes the connection.
        self.mid_message = True
        limit = None
        try:
            transport = self._transport or self._open_transport()
            if timeout is not None:
                self.mid_message = timeout > 0  # else `begin` raises, and nothing was sent
                limit = self._limit = self._limit or Limit(partial(_timeout_error, self.address, self._usual_limits))
                limit.begin(timeout, transport)
            try:
                if self._compressor is not None:
                    buffers = self._compressed(transport, buffers, self._compressor)
                whole = transport.round_trip(buffers, request_id)
                if whole is None:
                    self._stream = request_id
                    body = self._receive(transport, request_id)
                else:
                    body = whole
                    self.mid_message = False
            finally:
                if limit is not None:
                    limit.end()
        except BaseException as error:
            if self.mid_message:
                self._note_unanswered(error, request_id)
                if isinstance(error, Exception):
                    raise self._failed(error)
            raise  # a kill, or a time-out of the application's, as it is: its catcher compares by identity
        try:
            return decode(body)
        except InvalidBSON as error:
            if not is_sound(body):  # else its content is only what the application's options do not allow
                self.mark_unusable(error)
            raise
        finally:
            if whole is None and not transport.release() and not self.mid_message:
                self.mark_unusable(ProtocolError("the server sent more than the reply"))

    def _compressed(self, transport: Transport, buffers: Sequence[bytes], compressor: Compressor) -> Sequence[bytes]:
        try:
            return compressed(buffers, compressor)
        except BaseException:
            transport.out_of_step = True  # nothing has been sent, so that no reply will come
            raise

    def _next_of_stream(
        self, buffers: Sequence[bytes], timeout: float | None, decode: Callable[[Buffer], Decoded]
    ) -> Decoded:
        """The reply to a request that is made while another one has not had all of its replies."""
        if not allows_stream(buffers):
            raise InvalidOperation(f"{self!r} is in the middle of another request")
        if self.error is not None:
            raise without_frames(self.error)
        return self.next_reply(timeout, decode)

    def next_reply(self, timeout: float | None, decode: Callable[[Buffer], Decoded]) -> Decoded:
        """The next reply of a stream: while `mid_message` is true, more is to come. Raises as :meth:`exchange` does."""
        transport = self._open_transport()
        try:
            with interrupt_after(timeout, self.timeout_error(timeout), self._ref):
                # MongoDB answers to the reply before, other servers to the request that began the stream. Nothing else
                # can be under way on the connection.
                body = self._receive(transport, self._last_reply_id, self._stream)
        except Exception as error:
            raise self._failed(error)
        try:  # as in exchange, which does it in place: every operation would pay for the call
            return decode(body)
        except InvalidBSON as error:
            if not is_sound(body):
                self.mark_unusable(error)
            raise
        finally:
            if not transport.release() and not self.mid_message:
                self.mark_unusable(ProtocolError("the server sent more than the stream"))

    def _receive(self, transport: Transport, request_id: int, or_to: int | None = None) -> Buffer:
        reply_id, response_to, opcode, payload = transport.receive(request_id, or_to)
        try:
            if opcode == OP_COMPRESSED:
                opcode, payload = decompressed(payload, transport.max_message_size)
            body, self.mid_message = decode_reply(opcode, payload, reply_id, response_to)
        except BaseException:
            transport.out_of_step = True  # the reply has come
            raise
        self._last_reply_id = reply_id
        return body

    def send(self, buffers: Sequence[bytes], timeout: float | None) -> None:
        """Send a request that has no reply. Raises as :meth:`exchange` does."""
        self.mid_message = True
        try:
            with interrupt_after(timeout, self.timeout_error(timeout), self._ref):
                if self._compressor is not None:
                    buffers = compressed(buffers, self._compressor)
                self._open_transport().send(buffers)
        except Exception as error:
            raise self._failed(error)
        self.mid_message = False

    # Late replies

    def _note_unanswered(self, error: BaseException, request_id: int) -> None:
        """After an exchange that ended early: remember the request, if nothing but its reply is outstanding."""
        transport = self._transport
        if transport is None or transport.out_of_step or transport.closed:
            return
        if not isinstance(error, (TransportError, ProtocolError, ConcurrentObjectUseError)):
            self.unanswered = request_id

    def _open_transport(self) -> Transport:
        if self._transport is None:
            if self._interruption is not None:
                raise without_frames(self._interruption)
            raise AutoReconnect(f"{address_text(self.address)}: connection is not open")
        return self._transport

    # Failing

    def _failed(self, error: Exception) -> Exception:
        if isinstance(error, TransportError):
            error, cause = self.network_error(error), error
            error.__cause__ = cause
        self.error = without_frames(error)
        return error

    def network_error(self, error: TransportError) -> AutoReconnect:
        """Return the error for a stream that failed. While the connection is established, it names the stage."""
        kind = NetworkTimeout if isinstance(error, AttemptsTimedOut) else AutoReconnect
        text = f"{address_text(self.address)}: {error}"
        progress = self.progress
        if progress is None:
            return kind(text)
        return _with_gist(kind(f"{text} ({progress}{progress.hint(error, self._transport)})"), text, progress)

    def timeout_error(self, seconds: float | None, option: str | None = None) -> NetworkTimeout:
        """The error for a limit of time that is reached.

        :param seconds: the limit; none were left if it is 0 or less. None is without limit, so that it is never raised.
        :param option: that sets it; None is the usual one.
        """
        progress = self.progress
        if progress is None or seconds is None or seconds <= 0:
            return _timeout_error(self.address, self._usual_limits, seconds, option)
        limit = f"limit {milliseconds(seconds)}: {option or limit_text(seconds)}"
        where = address_text(self.address)
        return _with_gist(NetworkTimeout(f"{where}: timed out ({progress}; {limit})"), f"timed out ({limit})", progress)

    @property
    def _usual_limits(self) -> tuple[str, float | None]:
        """The option that usually limits an exchange, and its seconds; None as seconds fits any limit."""
        return ("connectTimeoutMS", None) if self.monitors else ("socketTimeoutMS", self.socket_timeout or -1.0)

    def mark_unusable(self, error: BaseException) -> None:
        """Let no other request be sent on it, because of `error`."""
        if self.error is None:
            self.error = without_frames(error)

    def record_failure(self, error: BaseException | None) -> None:
        """Note what ended an exchange early, if one was under way: the stream is out of step since then.

        :param error: None is a good end, after which more of a stream may come.
        """
        if error is not None and self.mid_message and self.error is None:
            self.error = without_frames(error)

    def interrupt(self, error: BaseException) -> None:
        """End what the connection is doing now, or next, with `error`, and close its socket. Does not switch."""
        self.error = self._interruption = without_frames(error)
        link = self._transport or self.race
        if link is not None:
            link.interrupt(error)

    def mark_forked(self, error: BaseException) -> None:
        """Never touch the socket again, which a forked child has inherited from its parent."""
        self.inherited = True
        self.error = self._interruption = error
        link = self._transport or self.race
        if link is not None:
            link.mark_forked(error)

    def close(self) -> None:
        """Close the socket at once. Nothing is sent."""
        if self._limit is not None:
            self._limit.close()
        link = self._transport or self.race
        if link is not None:
            link.close()


def _with_gist(error: Lost, gist: str, progress: Progress) -> Lost:
    """Note the text that the same failure has each time: ages differ."""
    error._gist = f"{gist} ({progress.stage} {progress.peer})"
    return error


def _timeout_error(
    address: Address, usual: tuple[str, float | None], seconds: float | None, option: str | None = None
) -> NetworkTimeout:
    """The error for a limit of time, which says how long it was, and what sets it."""
    where = address_text(address)
    if seconds is None or seconds <= 0:
        return NetworkTimeout(f"{where}: timed out ({limit_text(seconds)} ended before)")
    if option is None and usual[1] in (seconds, None):
        option = usual[0]
    limit = option or f"left of {limit_text(seconds)}"
    return NetworkTimeout(f"{where}: timed out (no complete reply within {milliseconds(seconds)}: {limit})")
