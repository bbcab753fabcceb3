"""Revocation check of a server certificate.

The order is the order of the OCSP Support specification: stapled response, cached answer, responders. Without an
answer, the connection continues (soft failure).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from cryptography import x509

from gmongo._fork import register_after_fork
from gmongo._safe_log import safely
from gmongo.wire.ocsp.fetch import Fetch
from gmongo.wire.ocsp.request import CertificateId, Request
from gmongo.wire.ocsp.response import NoResponse, Response, read_answer
from gmongo.wire.tls import ocsp_log
from gmongo.wire.transport import TransportError

_REVOKED = "the server's certificate has been revoked, by OCSP"


class Verifier:
    """Revocation checks and cached answers of a client.

    :param asks: True to query responders if no other answer is known.
    :param seconds: time limit of these queries.
    """

    def __init__(self, asks: bool, seconds: float) -> None:
        self._asks = asks
        self._seconds = seconds
        self._answers: dict[CertificateId, Response] = {}
        self._inquiries: dict[CertificateId, Fetch] = {}
        register_after_fork(self)

    def mark_forked(self) -> None:
        """Drop the queries of the parent process in a forked child."""
        for each in self._inquiries.values():
            each.mark_forked()
        self._inquiries.clear()

    def check(self, chain: Sequence[x509.Certificate], staple: bytes, wait: Callable[[Fetch], None]) -> float | None:
        """Check the revocation status of a server certificate.

        :param chain: certificate chain from the server certificate up.
        :param staple: stapled response; empty without one.
        :param wait: waits for the end of an inquiry.
        :returns: end of validity of the answer in seconds since 1970; None without an answer.
        :raises TransportError: the certificate was revoked, or its staple is invalid or missing.
        """
        if len(chain) < 2:
            return inf  # the server certificate itself is trusted
        try:
            question = Request(chain[0], chain[1])
        except Exception as error:  # OpenSSL accepts certificates that cryptography rejects
            safely(ocsp_log.warning, "OCSP: the server's certificate cannot be asked about: %r", error)
            return None
        answer = self._stapled(question, staple) or self._known(question) or self._asked(question, wait)
        if answer is None:
            return None if question.responders else inf
        if answer.revoked:
            raise TransportError(_REVOKED)
        return answer.valid_until

    def _stapled(self, question: Request, staple: bytes) -> Response | None:
        if not staple:
            if question.must_be_stapled:
                raise TransportError("the server's certificate demands a stapled OCSP response, and there is none")
            return None
        try:
            answer = read_answer(question, staple)
        except NoResponse as error:
            raise TransportError(f"the server's stapled OCSP response was not accepted: {error}") from error
        self._remember(question, answer)
        return answer if answer.is_conclusive else None

    def _known(self, question: Request) -> Response | None:
        answer = self._answers.get(question.id)
        return answer if answer is not None and answer.holds else None

    def _remember(self, question: Request, answer: Response) -> None:
        known = self._answers.get(question.id)
        if answer.is_conclusive and (known is None or known.valid_until < answer.valid_until):
            self._answers = {key: each for key, each in self._answers.items() if each.holds}
            self._answers[question.id] = answer

    def _asked(self, question: Request, wait: Callable[[Fetch], None]) -> Response | None:
        if not self._asks or not question.responders:
            return None
        inquiry = self._inquiries.get(question.id)
        if inquiry is None or inquiry.is_over:
            self._inquiries = {key: each for key, each in self._inquiries.items() if not each.is_over}
            inquiry = self._inquiries[question.id] = Fetch(question, self._seconds, self._remember)
        wait(inquiry)
        return inquiry.answer
