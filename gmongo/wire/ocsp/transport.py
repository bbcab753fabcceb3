"""TLS transport that checks before the first message whether the server certificate has been revoked."""

from __future__ import annotations

import _socket
from dataclasses import dataclass, field
from typing import cast

from gevent import getcurrent

from gmongo._safe_log import safely
from gmongo.wire.ocsp.fetch import Fetch
from gmongo.wire.ocsp.verifier import Verifier
from gmongo.wire.openssl import OpenSslObject
from gmongo.wire.tls import Tls, TlsTransport, ocsp_log
from gmongo.wire.transport import TransportError


@dataclass(eq=False)
class CheckedTls(Tls):
    """TLS settings of a client that checks revocation."""

    revocation: Verifier = field(kw_only=True)

    def transport(self, sock: _socket.socket, ref: bool, host: str) -> CheckedTransport:
        return CheckedTransport(sock, ref, self, host)


class CheckedTransport(TlsTransport):
    """Connected stream socket with TLS from :mod:`gmongo.wire.openssl`."""

    def shake_hands(self) -> None:
        super().shake_hands()
        try:
            self._check()
        except TransportError as error:
            self._tls.forget_session(self._host)
            raise TransportError(f"TLS handshake failed: {error}") from error

    def _check(self) -> None:
        engine, tls = cast(OpenSslObject, self._engine), cast(CheckedTls, self._tls)
        peer = engine.peer
        if peer.sent_certificate:
            try:
                chain = engine.verified_chain()
            except Exception as error:
                # the package cryptography rejects some certificates that OpenSSL accepts
                safely(ocsp_log.warning, "OCSP: the server's certificates cannot be parsed: %r", error)
                return
            peer.valid_until = tls.revocation.check(chain, peer.staple, self._wait_for)
        elif peer.valid_until is None:
            raise TransportError("the server has shown no certificate")

    def _wait_for(self, fetch: Fetch) -> None:
        self._waiting = getcurrent()  # an interruption of the transport ends this wait
        try:
            fetch.wait(self._readable.ref)
        finally:
            self._waiting = None
