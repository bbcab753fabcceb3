"""Whether a server's certificate has been revoked, asked in the order of MongoDB's specification of OCSP support: what
is stapled, what is remembered, and then the responders. If nothing is found out, the connection goes on (soft failure).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from cryptography import x509

from gmongo._fork import register_after_fork
from gmongo._safe_log import safely
from gmongo.wire.ocsp.answer import Answer, NoAnswer, read_answer
from gmongo.wire.ocsp.inquiry import Inquiry
from gmongo.wire.ocsp.question import CertificateId, Question
from gmongo.wire.tls import ocsp_log
from gmongo.wire.transport import TransportError

_REVOKED = "the server's certificate has been revoked, by OCSP"


class Revocation:
    """What a client knows of revocations.

    :param asks: whether responders are asked for what is known in no other way.
    :param seconds: how long they are waited for.
    """

    def __init__(self, asks: bool, seconds: float) -> None:
        self._asks = asks
        self._seconds = seconds
        self._answers: dict[CertificateId, Answer] = {}
        self._inquiries: dict[CertificateId, Inquiry] = {}
        register_after_fork(self)

    def mark_forked(self) -> None:
        """Called in a forked child: it asks by itself."""
        for each in self._inquiries.values():
            each.mark_forked()
        self._inquiries.clear()

    def check(self, chain: Sequence[x509.Certificate], staple: bytes, wait: Callable[[Inquiry], None]) -> float | None:
        """Find out about a server's certificate.

        :param chain: the certificate, that of its issuer, and so on.
        :param staple: the response that came with it; empty if none did.
        :param wait: waits for an inquiry to end.
        :returns: until when this holds, on the clock of the day; None if nothing was found out.
        :raises TransportError: it has been revoked, or its staple is wrong or missing.
        """
        if len(chain) < 2:
            return inf  # it is trusted by itself
        try:
            question = Question(chain[0], chain[1])
        except Exception as error:  # OpenSSL accepts more than cryptography
            safely(ocsp_log.warning, "OCSP: the server's certificate cannot be asked about: %r", error)
            return None
        answer = self._stapled(question, staple) or self._known(question) or self._asked(question, wait)
        if answer is None:
            return None if question.responders else inf
        if answer.revoked:
            raise TransportError(_REVOKED)
        return answer.valid_until

    def _stapled(self, question: Question, staple: bytes) -> Answer | None:
        if not staple:
            if question.must_be_stapled:
                raise TransportError("the server's certificate demands a stapled OCSP response, and there is none")
            return None
        try:
            answer = read_answer(question, staple)
        except NoAnswer as error:
            raise TransportError(f"the server's stapled OCSP response was not accepted: {error}") from error
        self._remember(question, answer)
        return answer if answer.is_conclusive else None

    def _known(self, question: Question) -> Answer | None:
        answer = self._answers.get(question.id)
        return answer if answer is not None and answer.holds else None

    def _remember(self, question: Question, answer: Answer) -> None:
        known = self._answers.get(question.id)
        if answer.is_conclusive and (known is None or known.valid_until < answer.valid_until):
            self._answers = {key: each for key, each in self._answers.items() if each.holds}
            self._answers[question.id] = answer

    def _asked(self, question: Question, wait: Callable[[Inquiry], None]) -> Answer | None:
        if not self._asks or not question.responders:
            return None
        inquiry = self._inquiries.get(question.id)
        if inquiry is None or inquiry.is_over:
            self._inquiries = {key: each for key, each in self._inquiries.items() if not each.is_over}
            inquiry = self._inquiries[question.id] = Inquiry(question, self._seconds, self._remember)
        wait(inquiry)
        return inquiry.answer
