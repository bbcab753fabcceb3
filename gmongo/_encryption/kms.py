"""Requests to key management services (KMS). Each request uses TLS, a separate connection and a time limit."""

from __future__ import annotations

import _socket
from collections.abc import Callable
from contextlib import AbstractContextManager

from gevent import sleep, spawn
from gevent.socket import socket

from gmongo._background import timer_delay
from gmongo._encryption.connect_callback import KMSConnectContext
from gmongo._encryption.kms_tls import TIMEOUT, KmsTls
from gmongo._encryption.library import MongoCryptError, Native
from gmongo._native_threads import result_or_exception
from gmongo.errors import AutoReconnect, EncryptionError, NetworkTimeout
from gmongo.options.hosts import parse_host
from gmongo.wire.address import Address, address_text
from gmongo.wire.connect import connect
from gmongo.wire.race import Race
from gmongo.wire.timeout import interrupt_after, remaining
from gmongo.wire.tls import TlsTransport
from gmongo.wire.transport import Transport, TransportError

_PORT, _KMIP_PORT = 443, 5696


class Kms:
    """Client of key management services, with gmongo's TCP connections or the connections of a callback."""

    def __init__(self, tls: KmsTls, connect_callback: Callable[[KMSConnectContext], object] | None) -> None:
        self._tls = tls
        self._callback = connect_callback

    def complete_request(self, request: Native, deadline: float | None) -> None:
        """Send one request, a ``MongoCryptKmsContext``, and pass the response to libmongocrypt.

        After a network error, report the failure to libmongocrypt, which may request a new attempt.
        """
        pause, seconds_left = request.usleep / 1e6, remaining(deadline)
        if pause:
            sleep(timer_delay(pause if seconds_left is None else min(pause, seconds_left)))
        provider = request.kms_provider
        address = parse_host(request.endpoint, _KMIP_PORT if provider.startswith("kmip") else _PORT)
        try:
            self._exchange(request, provider, address, deadline)
        except MongoCryptError as error:
            raise EncryptionError(error) from error
        except AutoReconnect as error:
            seconds_left = remaining(deadline)
            if seconds_left is not None and seconds_left <= 0:
                raise
            try:
                request.fail()
            except MongoCryptError as final_error:
                raise EncryptionError(MongoCryptError(f"{final_error}, last attempt failed with: {error}")) from error

    def _exchange(self, request: Native, provider: str, address: Address, deadline: float | None) -> None:
        service = f"{provider} KMS at {address_text(address)}"
        connections: list[Transport | Race] = []
        try:
            with _time_limit(service, "could not be connected to", deadline):
                transport = self._connect(connections.append, provider, address, deadline)
            with _time_limit(service, "did not answer", deadline):
                transport.send([request.message])
                while (byte_count := request.bytes_needed) > 0:
                    request.feed(transport.receive_some(byte_count))
        except TransportError as error:
            raise AutoReconnect(f"{service}: {error}") from error
        finally:
            for each in connections:
                each.close()

    def _connect(
        self, attach: Callable[[Transport | Race], None], provider: str, address: Address, deadline: float | None
    ) -> Transport:
        tls = self._tls.for_provider(provider)
        if self._callback is None:
            return connect(address, attach, tls=tls)
        argument = KMSConnectContext(address[0], address[1] or _PORT, timeout_until(deadline))
        sock = _run_callback(self._callback, argument)
        transport = tls.transport(_detach_socket(sock), True, address[0])
        attach(transport)
        assert isinstance(transport, TlsTransport)
        transport.shake_hands()
        return transport


def timeout_until(deadline: float | None) -> float:
    seconds_left = remaining(deadline)
    return TIMEOUT if seconds_left is None else min(TIMEOUT, seconds_left)


def _time_limit(service: str, problem: str, deadline: float | None) -> AbstractContextManager[None]:
    seconds = timeout_until(deadline)
    return interrupt_after(seconds, NetworkTimeout(f"{service} {problem} within {max(seconds, 0):.3g} seconds"))


def _run_callback(callback: Callable[[KMSConnectContext], object], context: KMSConnectContext) -> socket:
    """Run the callback in a separate greenlet. Convert its exceptions to TransportError."""
    greenlet = spawn(result_or_exception, callback, context)
    try:
        result = greenlet.get()
    finally:
        greenlet.kill(block=False)
    if isinstance(result, Exception):
        raise TransportError(f"kms_connect_callback failed: {result}") from result
    if not hasattr(result, "detach"):
        raise TransportError(
            f"kms_connect_callback must return a socket, not an object of type {type(result).__name__}"
        )
    return result


def _detach_socket(sock: socket) -> _socket.socket:
    """Move the file descriptor of an application socket into a new plain socket object."""
    family, kind, file_descriptor = sock.family, sock.type, sock.detach()
    plain_socket = _socket.socket(family, kind, 0, fileno=file_descriptor)
    plain_socket.setblocking(False)
    return plain_socket
