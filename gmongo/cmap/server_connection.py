"""Connection to one server. At most one request is in progress on a connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from bson.errors import InvalidBSON
from bson.objectid import ObjectId
from gevent.exceptions import ConcurrentObjectUseError

from gmongo._server_facts import sizes
from gmongo._truncated_repr import format_milliseconds
from gmongo.cmap.hello import Hello
from gmongo.errors import AutoReconnect, InvalidOperation, NetworkTimeout, ProtocolError
from gmongo.wire.address import Address, address_text
from gmongo.wire.compression import Compressor, compress_message, decompress_message
from gmongo.wire.message import OP_COMPRESSED, Buffer, allows_stream, decode_reply
from gmongo.wire.race import AttemptsTimedOut, Race
from gmongo.wire.reply import is_well_formed
from gmongo.wire.timeout import TimeLimit, interrupt_after, limit_text
from gmongo.wire.transport import Transport, TransportError, without_frames

if TYPE_CHECKING:
    from gmongo.cmap.progress import Progress


Decoded = TypeVar("Decoded")
NetworkError = TypeVar("NetworkError", bound=AutoReconnect)


class Reauthentication(Protocol):
    """Authentication that a connection repeats if the server demands a reauthentication."""

    def reauthenticate(self, seconds: float | None) -> None: ...


class ServerConnection:
    """Connection to one server. The constructor does no I/O. `socket_timeout` limits one exchange (in seconds).

    `mid_message` is true from the first byte of a request to the last byte of its reply. While `mid_message` is
    true, the connection cannot send a new request, because the next received bytes belong to the old reply.
    """

    def __init__(
        self, address: Address, socket_timeout: float | None = None, ref: bool = True, is_monitor: bool = False
    ) -> None:
        self.address = address
        self.is_monitor = is_monitor
        self.socket_timeout = socket_timeout
        self.id = 0
        self.service_id: ObjectId | None = None
        self.hello: Hello
        self.inherited = False  # True in a forked child if the parent process opened the connection
        self.mid_message = False
        self.error: BaseException | None = None  # Error that made the connection unusable.
        self.unanswered_request_id: int | None = None  # ID of an interrupted request with an outstanding reply.
        self.authentication: Reauthentication | None = None  # Set after the authentication.
        self.progress: Progress | None = None  # Progress of the establishment, or None.
        self.race: Race | None = None  # TCP connections in progress to several addresses, or None.
        self.ref = ref  # True if waiting for the connection keeps the event loop alive.
        self._limit: TimeLimit | None = None  # The first exchange with a timeout creates the limit.
        self._transport: Transport | None = None
        self._interruption: BaseException | None = None
        self._last_reply_id = 0
        self._stream_request_id = 0  # ID of the request that started the current stream of replies.
        self._compressor: Compressor | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.id} to {address_text(self.address)}>"

    @property
    def usable(self) -> bool:
        """True if the connection can send a new request."""
        return not self.mid_message and self.error is None

    @property
    def has_socket(self) -> bool:
        """True after the name lookup, when a socket exists."""
        return self._transport is not None or self.race is not None

    @property
    def handshake_done(self) -> bool:
        """True after the handshake, when `hello` is set."""
        return hasattr(self, "hello")

    def attach(self, transport: Transport) -> None:
        self.race = None
        self._transport = transport
        # The pool may have called `interrupt` during the name lookup, when no socket existed.
        if self._interruption is not None:
            transport.interrupt(self._interruption)

    def attach_race(self, race: Race) -> None:
        """Set the race between several TCP connections. The caller later attaches the transport of the winner."""
        self.race = race
        if self._interruption is not None:
            race.interrupt(self._interruption)

    def has_arrived(self) -> bool:
        """Return True if a result of the current stage may have arrived. The method does not switch greenlets."""
        transport = self._transport
        if transport is None or self.progress is None:
            return True  # during a name lookup or a race, a result may have arrived
        return self.progress.has_result(transport)

    def may_be_closed(self) -> bool:
        """Return True if the server closed this idle connection or sent unexpected bytes. Do not switch greenlets."""
        return self._transport is not None and self._transport.has_arrived()

    def store_hello(self, hello: Hello, compressor: Compressor | None) -> None:
        """Store the results of the hello. Authentication may follow."""
        self.hello = hello
        self._compressor = compressor
        self._open_transport().set_max_message_size(hello.max_message_size + sizes.COMMAND_OVERHEAD)

    def reauthenticate(self, seconds: float | None = None) -> None:
        """Authenticate again within `seconds`, after the error ReauthenticationRequired (391)."""
        if self.authentication is None:
            raise InvalidOperation(f"{self!r} cannot reauthenticate, because the connection has never authenticated")
        try:
            self.authentication.reauthenticate(seconds)
        except BaseException as error:
            # Close the connection even after a late reply, because the authenticated user is unknown.
            self.unanswered_request_id = None
            self.error = self.error or without_frames(error)
            raise

    def set_ref(self, keep_loop_alive: bool) -> None:
        """Set whether a wait for the connection keeps the event loop alive."""
        self.ref = keep_loop_alive
        if self._transport is not None:
            self._transport.set_ref(keep_loop_alive)

    def exchange(
        self, request_id: int, buffers: Sequence[bytes], timeout: float | None, decode: Callable[[Buffer], Decoded]
    ) -> Decoded:
        """Send a request and return its reply. During a stream of replies, send nothing, and return the next reply.

        `decode` must not keep the body of the reply, because the connection reuses the memory of
        small bodies. If the timeout ended before the driver sent data, the connection remains usable
        after the NetworkTimeout.
        """
        if self.mid_message:
            return self._receive_next_of_stream(buffers, timeout, decode)
        # Set `mid_message` before the first byte of the request, and reset `mid_message` after the
        # last byte of the reply. Therefore `mid_message` stays true after an interruption.
        self.mid_message = True
        limit = None
        try:
            transport = self._transport or self._open_transport()
            if timeout is not None:
                # if no time is left, `limit.begin` raises an error before the driver sends data
                self.mid_message = timeout > 0
                limit = self._limit = self._limit or TimeLimit(
                    partial(_make_timeout_error, self.address, self._usual_limit)
                )
                limit.begin(timeout, transport)
            try:
                if self._compressor is not None:
                    buffers = self._compress(transport, buffers, self._compressor)
                complete_body = transport.round_trip(buffers, request_id)
                if complete_body is None:
                    self._stream_request_id = request_id
                    body = self._receive(transport, request_id)
                else:
                    body = complete_body
                    self.mid_message = False
            finally:
                if limit is not None:
                    limit.end()
        except BaseException as error:
            if self.mid_message:
                self._record_unanswered(error, request_id)
                if isinstance(error, Exception):
                    raise self._store_error(error)
            raise  # raise this object, because applications compare a `gevent.Timeout` by identity
        try:
            return decode(body)
        except InvalidBSON as error:
            # if the body is well formed, the codec options caused the error
            if not is_well_formed(body):
                self.mark_unusable(error)
            raise
        finally:
            if complete_body is None and not transport.release() and not self.mid_message:
                self.mark_unusable(ProtocolError("the server sent data after the reply"))

    def _compress(self, transport: Transport, buffers: Sequence[bytes], compressor: Compressor) -> Sequence[bytes]:
        try:
            return compress_message(buffers, compressor)
        except BaseException:
            transport.out_of_step = True  # no request was sent, so `_record_unanswered` must not expect a late reply
            raise

    def _receive_next_of_stream(
        self, buffers: Sequence[bytes], timeout: float | None, decode: Callable[[Buffer], Decoded]
    ) -> Decoded:
        """Return the next reply of a stream, or raise InvalidOperation if the request does not allow a stream."""
        if not allows_stream(buffers):
            raise InvalidOperation(f"{self!r} is in the middle of another request")
        if self.error is not None:
            raise without_frames(self.error)
        return self.next_reply(timeout, decode)

    def next_reply(self, timeout: float | None, decode: Callable[[Buffer], Decoded]) -> Decoded:
        """Return the next reply of a stream. Then, `mid_message` is true if more replies follow."""
        transport = self._open_transport()
        try:
            with interrupt_after(timeout, self.make_timeout_error(timeout), self.ref):
                # MongoDB sets `responseTo` to the ID of the previous reply of the stream. Some compatible servers set
                # `responseTo` to the ID of the request that started the stream.
                body = self._receive(transport, self._last_reply_id, self._stream_request_id)
        except Exception as error:
            raise self._store_error(error)
        try:  # these lines repeat `exchange`, because a function call would make `exchange` slower
            return decode(body)
        except InvalidBSON as error:
            if not is_well_formed(body):
                self.mark_unusable(error)
            raise
        finally:
            if not transport.release() and not self.mid_message:
                self.mark_unusable(ProtocolError("the server sent data after the last reply of the stream"))

    def _receive(self, transport: Transport, request_id: int, other_request_id: int | None = None) -> Buffer:
        reply_id, response_to, opcode, payload = transport.receive(request_id, other_request_id)
        try:
            if opcode == OP_COMPRESSED:
                opcode, payload = decompress_message(payload, transport.max_message_size)
            body, self.mid_message = decode_reply(opcode, payload, reply_id, response_to)
        except BaseException:
            transport.out_of_step = True  # the reply was received, so `_record_unanswered` must not expect a reply
            raise
        self._last_reply_id = reply_id
        return body

    def send(self, buffers: Sequence[bytes], timeout: float | None) -> None:
        """Send a request that has no reply."""
        self.mid_message = True
        try:
            with interrupt_after(timeout, self.make_timeout_error(timeout), self.ref):
                if self._compressor is not None:
                    buffers = compress_message(buffers, self._compressor)
                self._open_transport().send(buffers)
        except Exception as error:
            raise self._store_error(error)
        self.mid_message = False

    def _record_unanswered(self, error: BaseException, request_id: int) -> None:
        """Store the ID of an interrupted request, if only the request's reply is outstanding."""
        transport = self._transport
        if transport is None or transport.out_of_step or transport.closed:
            return
        if not isinstance(error, (TransportError, ProtocolError, ConcurrentObjectUseError)):
            self.unanswered_request_id = request_id

    def _open_transport(self) -> Transport:
        if self._transport is None:
            if self._interruption is not None:
                raise without_frames(self._interruption)
            raise AutoReconnect(f"{address_text(self.address)}: connection is not open")
        return self._transport

    def _store_error(self, error: Exception) -> Exception:
        if isinstance(error, (TransportError, ProtocolError)):
            cause = error
            if isinstance(cause, TransportError):
                error = self.make_network_error(cause)
            else:
                error = type(cause)(f"{address_text(self.address)}: {cause}")
            error.__cause__ = cause
        self.error = without_frames(error)
        return error

    def make_network_error(self, error: TransportError) -> AutoReconnect:
        """Convert a transport error to an AutoReconnect error, which names the stage if the establishment failed."""
        kind = NetworkTimeout if isinstance(error, AttemptsTimedOut) else AutoReconnect
        text = f"{address_text(self.address)}: {error}"
        progress = self.progress
        if progress is None:
            return kind(text)
        return _set_stable_text(
            kind(f"{text} ({progress}{progress.likely_reason(error, self._transport)})"), text, progress
        )

    def make_timeout_error(self, seconds: float | None, option: str | None = None) -> NetworkTimeout:
        """Return the error for a timeout of `seconds`. `option` is the option that set the timeout, or None."""
        progress = self.progress
        if progress is None or seconds is None or seconds <= 0:
            return _make_timeout_error(self.address, self._usual_limit, seconds, option)
        details = f"limit {format_milliseconds(seconds)}: {option or limit_text(seconds)}"
        where = address_text(self.address)
        return _set_stable_text(
            NetworkTimeout(f"{where}: timed out ({progress}; {details})"), f"timed out ({details})", progress
        )

    @property
    def _usual_limit(self) -> tuple[str, float | None]:
        """Name and seconds of the option that usually limits an exchange. Seconds of None match any timeout."""
        return ("connectTimeoutMS", None) if self.is_monitor else ("socketTimeoutMS", self.socket_timeout or -1.0)

    def mark_unusable(self, error: BaseException) -> None:
        if self.error is None:
            self.error = without_frames(error)

    def record_failure(self, error: BaseException | None) -> None:
        """Mark the connection as unusable if `error` interrupted an exchange."""
        if error is not None and self.mid_message:
            self.mark_unusable(error)

    def interrupt(self, error: BaseException) -> None:
        """Close the socket without a greenlet switch. The current or next use of the connection raises `error`."""
        self.error = self._interruption = without_frames(error)
        transport_or_race = self._transport or self.race
        if transport_or_race is not None:
            transport_or_race.interrupt(error)

    def mark_forked(self, error: BaseException) -> None:
        self.inherited = True
        self.error = self._interruption = error
        transport_or_race = self._transport or self.race
        if transport_or_race is not None:
            transport_or_race.mark_forked(error)

    def close(self) -> None:
        """Close the socket immediately, without sending data."""
        if self._limit is not None:
            self._limit.close()
        transport_or_race = self._transport or self.race
        if transport_or_race is not None:
            transport_or_race.close()


def _set_stable_text(error: NetworkError, text_without_duration: str, progress: Progress) -> NetworkError:
    """Store in `error` a text without the duration of the stage. Equal failures have equal texts. Return `error`."""
    error._stable_text = f"{text_without_duration} ({progress.stage} {progress.peer})"
    return error


def _make_timeout_error(
    address: Address, usual_limit: tuple[str, float | None], seconds: float | None, option: str | None = None
) -> NetworkTimeout:
    """Return the error for a timeout. The text of the error names the time limit."""
    where = address_text(address)
    if seconds is None or seconds <= 0:
        return NetworkTimeout(f"{where}: timed out ({limit_text(seconds)} ended before the exchange)")
    if option is None and usual_limit[1] in (seconds, None):
        option = usual_limit[0]
    cause = option or f"rest of {limit_text(seconds)}"
    return NetworkTimeout(f"{where}: timed out (no complete reply within {format_milliseconds(seconds)}: {cause})")
