"""Revocation check of a server certificate, between the TLS handshake and the first MongoDB message.

The check has three sources: stapled response, cached answer, OCSP responders. Without an answer, the
client uses the connection (soft failure), unless the certificate requires a stapled response.
"""

from __future__ import annotations

import _socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import cast

from cryptography import x509
from gevent import getcurrent

from gmongo._fork import register_after_fork
from gmongo._safe_log import safely
from gmongo.wire.ocsp.fetch import ResponderQueries
from gmongo.wire.ocsp.messages import CertificateId, NoResponse, Request, Response, parse_response
from gmongo.wire.openssl import OpenSslObject
from gmongo.wire.tls import Tls, TlsTransport, ocsp_log
from gmongo.wire.transport import TransportError


class Verifier:
    """Revocation checks of a client, with a cache of answers. `seconds` limits the queries."""

    def __init__(self, queries_responders: bool, seconds: float) -> None:
        self._queries_responders = queries_responders
        self._seconds = seconds
        self._answers: dict[CertificateId, Response] = {}
        self._queries: dict[CertificateId, ResponderQueries] = {}
        register_after_fork(self)

    def mark_forked(self) -> None:
        """Drop the queries of the parent process in a forked child."""
        for each in self._queries.values():
            each.mark_forked()
        self._queries.clear()

    def check(
        self, chain: Sequence[x509.Certificate], staple: bytes, wait: Callable[[ResponderQueries], None]
    ) -> float | None:
        """Check the revocation status of the first certificate in `chain`. `staple` is the stapled response, or empty.

        Return the Unix time when the answer expires. Without an answer, return None, or infinity if
        no issuer or no responder exists. Raise TransportError if the certificate is revoked, the
        staple is wrong, or a required staple is missing.
        """
        if len(chain) < 2:
            return inf  # the client trusts the server certificate directly, so no issuer can revoke the certificate
        try:
            request = Request(chain[0], chain[1])
        except Exception as error:  # OpenSSL accepts certificates that cryptography rejects
            safely(
                ocsp_log.warning, "OCSP: the client cannot create a request about the server's certificate: %r", error
            )
            return None
        answer = self._check_staple(request, staple) or self._find_cached_answer(request)
        answer = answer or self._query_responders(request, wait)
        if answer is None:
            return None if request.responders else inf
        if answer.revoked:
            raise TransportError("the server's certificate has been revoked, according to OCSP")
        return answer.valid_until

    def _check_staple(self, request: Request, staple: bytes) -> Response | None:
        if not staple:
            if request.must_be_stapled:
                raise TransportError("the server's certificate requires a stapled OCSP response, but there is none")
            return None
        try:
            answer = parse_response(request, staple)
        except NoResponse as error:
            raise TransportError(f"the server's stapled OCSP response was not accepted: {error}") from error
        self._cache_answer(request, answer)
        return answer if answer.is_conclusive else None

    def _find_cached_answer(self, request: Request) -> Response | None:
        answer = self._answers.get(request.id)
        return answer if answer is not None and answer.is_valid else None

    def _cache_answer(self, request: Request, answer: Response) -> None:
        cached = self._answers.get(request.id)
        if answer.is_conclusive and (cached is None or cached.valid_until < answer.valid_until):
            self._answers = {key: each for key, each in self._answers.items() if each.is_valid}
            self._answers[request.id] = answer

    def _query_responders(self, request: Request, wait: Callable[[ResponderQueries], None]) -> Response | None:
        if not self._queries_responders or not request.responders:
            return None
        queries = self._queries.get(request.id)
        if queries is None or queries.may_be_replaced:
            self._queries = {key: each for key, each in self._queries.items() if not each.may_be_replaced}
            queries = self._queries[request.id] = ResponderQueries(request, self._seconds, self._cache_answer)
        wait(queries)
        return queries.answer


@dataclass(eq=False)
class CheckedTls(Tls):
    """TLS settings of a client that checks revocation."""

    revocation: Verifier = field(kw_only=True)

    def transport(self, sock: _socket.socket, ref: bool, host: str) -> CheckedTransport:
        return CheckedTransport(sock, ref, self, host)


class CheckedTransport(TlsTransport):
    """TLS socket with :mod:`gmongo.wire.openssl`, and with a revocation check after the handshake."""

    def shake_hands(self) -> None:
        super().shake_hands()
        try:
            self._check()
        except TransportError as error:
            self._tls.sessions.pop(self._host, None)
            raise TransportError(f"TLS handshake failed: {error}") from error

    def _check(self) -> None:
        engine, tls = cast(OpenSslObject, self._engine), cast(CheckedTls, self._tls)
        peer = engine.peer
        if peer.sent_certificate:
            try:
                chain = engine.verified_chain()
            except Exception as error:  # OpenSSL accepts certificates that cryptography rejects
                safely(ocsp_log.warning, "OCSP: the server's certificates cannot be parsed: %r", error)
                return
            peer.valid_until = tls.revocation.check(chain, peer.staple, self._wait_for)
        elif peer.valid_until is None:
            raise TransportError("the server has shown no certificate")

    def _wait_for(self, queries: ResponderQueries) -> None:
        self._waiting_greenlet = getcurrent()  # an interruption of the transport ends the wait
        try:
            queries.wait(self._read_watcher.ref)
        finally:
            self._waiting_greenlet = None
