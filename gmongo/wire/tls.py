"""Transport with TLS.

OpenSSL encrypts and decrypts in memory, and the transport sends and receives the encrypted bytes.
Therefore interruption, closing and forking are the same as without TLS. Closing a transport sends no
TLS alert.
"""

from __future__ import annotations

import _socket
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gmongo._background import LongWork
from gmongo.wire.message import join_buffers
from gmongo.wire.transport import Transport, TransportError, without_frames

# Logger of `gmongo.wire.ocsp`, a module that only some clients load. If gmongo replaces PyMongo,
# gmongo renames only the loggers of loaded modules. Therefore `gmongo.wire.tls` creates the logger.
ocsp_log = logging.getLogger("gmongo.ocsp")

# Number of bytes that the driver encrypts in one step, so that a long message does not block the event loop.
_CHUNK_SIZE = 64 * 1024
_BUFFER_SIZE = 32 * 1024


@dataclass(eq=False)
class Tls:
    """TLS settings and TLS sessions of a client."""

    context: ssl.SSLContext
    renew: Callable[[], ssl.SSLContext | None] | None = None  # returns a context if a certificate file changed
    sessions: dict[str, ssl.SSLSession] = field(default_factory=dict, repr=False)

    def fresh_context(self) -> ssl.SSLContext:
        """Return the context for a new connection, with the current certificate files."""
        new_context = None if self.renew is None else self.renew()
        if new_context is not None:
            self.context = new_context
            self.sessions.clear()  # drop the sessions, which belong to the old certificates
        return self.context

    def transport(self, sock: _socket.socket, ref: bool, host: str) -> TlsTransport:
        """Return a transport to the server `host`. :meth:`TlsTransport.shake_hands` starts the encryption."""
        return TlsTransport(sock, ref, self, host)

    def store_session(self, host: str, session: ssl.SSLSession | None, context: ssl.SSLContext) -> None:
        """Store a TLS session for the next connection to `host`, unless `context` is outdated."""
        if session is not None and session.has_ticket and context is self.context:
            self.sessions[host] = session


class TlsTransport(Transport):
    """Stream socket with TLS."""

    _waits_first = False

    def __init__(self, sock: _socket.socket, ref: bool, tls: Tls, host: str) -> None:
        super().__init__(sock, ref)
        self._tls = tls
        self._host = host.removesuffix(".")
        self._chunk = memoryview(bytearray(_BUFFER_SIZE))
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._engine: ssl.SSLObject

    def shake_hands(self) -> None:
        """Perform the TLS handshake on a connected socket."""
        try:
            self._engine = self._make_engine()
            self._run_engine_step(self._engine.do_handshake)
        except TransportError as error:
            self._tls.sessions.pop(self._host, None)
            is_explained = isinstance(error.__cause__, (ssl.SSLError, ValueError))
            hint = "" if is_explained else " (perhaps the server does not use TLS)"
            raise TransportError(f"TLS handshake failed: {error}{hint}") from error

    def _make_engine(self) -> ssl.SSLObject:
        self._context = self._tls.fresh_context()
        session = self._tls.sessions.get(self._host)
        try:
            return self._context.wrap_bio(self._incoming, self._outgoing, server_hostname=self._host, session=session)
        except ValueError as error:  # the host name is invalid: for example, a label is too long
            raise TransportError(f"{self._host!r} cannot be in a certificate: {error}") from error

    def set_max_message_size(self, max_message_size: int) -> None:
        super().set_max_message_size(max_message_size)
        # Store the session now, because the server sends the session tickets before its first reply.
        self._tls.store_session(self._host, self._engine.session, self._context)

    def send(self, buffers: Sequence[bytes]) -> None:
        try:
            self._send(buffers)
        except BaseException:
            self.out_of_step = True
            raise

    def _send(self, buffers: Sequence[bytes]) -> None:
        if len(buffers) == 1 and len(buffers[0]) <= _CHUNK_SIZE:
            self._run_engine_step(self._engine.write, buffers[0])
            return
        work = LongWork()
        for data in join_buffers(buffers):
            view = memoryview(data)
            while view:
                view = view[self._run_engine_step(self._engine.write, view[:_CHUNK_SIZE]) :]
                work.checkpoint()

    def round_trip(self, buffers: Sequence[bytes], request_id: int) -> bytes | None:
        self.send(buffers)
        if (
            self._view is not None or self._incoming.pending or self._engine.pending()
        ):  # the connection has unread bytes
            return None
        # Fast path for a reply in one TLS record. `receive` handles other replies.
        self._receive_encrypted()
        data: bytes = self._run_engine_step(self._engine.read, _BUFFER_SIZE)
        return self._extract_body(data, request_id)

    def _receive_into(self, into: memoryview) -> int:
        if not (self._engine.pending() or self._incoming.pending):
            self._receive_encrypted()  # receive more bytes, because the engine has no data
        count: int = self._run_engine_step(self._engine.read, len(into), into)
        if count == 0:
            raise TransportError("connection closed by the server")
        return count

    def _run_engine_step(self, step: Callable[..., Any], *arguments: object) -> Any:
        """Repeat a step of the TLS engine until success, and move bytes between engine and socket."""
        if self._interruption is not None:
            raise without_frames(self._interruption)
        while True:
            try:
                result = step(*arguments)
            except ssl.SSLWantReadError:
                self._send_encrypted()
                self._receive_encrypted()
            except ssl.SSLError as error:
                self._send_alert()
                raise TransportError(describe_tls_error(error)) from error
            else:
                self._send_encrypted()
                return result

    def _send_encrypted(self) -> None:
        if self._outgoing.pending:
            data = self._outgoing.read()
            sent_size = self._try_to_send(data)
            if sent_size != len(data):
                self.send_raw(data[sent_size:])

    def _receive_encrypted(self) -> None:
        self._wait(self._read_watcher)
        count = super()._receive_into(self._chunk)
        self._incoming.write(self._chunk[:count])

    def _send_alert(self) -> None:
        """Send the TLS alert about the failure, if the socket can send without a wait."""
        try:
            if self._outgoing.pending:
                self._try_to_send(self._outgoing.read())
        except TransportError:
            pass


_REASONS = {
    "WRONG_VERSION_NUMBER": "the server does not speak TLS",
    "HTTP_REQUEST": "the server does not speak TLS",
    "PACKET_LENGTH_TOO_LONG": "the server does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "the server supports neither TLS 1.2 nor a later version",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the server supports neither TLS 1.2 nor a later version",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server demands a client certificate (tlsCertificateKeyFile)",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server refused (perhaps it demands a client certificate)",
    "TLSV1_ALERT_UNKNOWN_CA": "the server does not know the authority of the client certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the server refused the client certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the server says that the client certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the server says that the client certificate has been revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the server refused the client certificate",
    "UNEXPECTED_EOF_WHILE_READING": "connection closed by the server",
}


def describe_tls_error(error: ssl.SSLError) -> str:
    """Return the reason of a TLS error as a text for error messages."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate was not accepted: {error.verify_message.rstrip('.')}"
    explanation = _REASONS.get(error.reason or "")
    return f"{explanation} ({error.reason})" if explanation else str(error.reason or error)
