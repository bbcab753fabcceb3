"""Mutations of OCSP: what is believed, remembered and asked."""

from tests.mutations.mutation import Mutation as M

ANSWER, REVOCATION, INQUIRY = "wire/ocsp/answer.py", "wire/ocsp/revocation.py", "wire/ocsp/inquiry.py"
TESTS = "tls/test_ocsp"

MUTATIONS = (
    M("o01", "a signature is not looked at", ANSWER, "        _check_signature(response, _signer(response, question.issuer))\n", "        _signer(response, question.issuer)\n", TESTS),
    M("o02", "a delegate needs no purpose", ANSWER, "    return signs and ExtendedKeyUsageOID.OCSP_SIGNING in purposes\n", "    return signs\n", TESTS),
    M("o03", "a delegate's key need not be for signing", ANSWER, "    return signs and ExtendedKeyUsageOID", "    return ExtendedKeyUsageOID", TESTS),
    M("o04", "any authority's delegate may sign", ANSWER, "        found.verify_directly_issued_by(issuer)\n", "        pass\n", TESTS),
    M("o05", "a delegate's certificate never expires", ANSWER, "    if not found.not_valid_before_utc <= now <= found.not_valid_after_utc:\n", "    if not found.not_valid_before_utc <= now:\n", TESTS),
    M("o06", "a response about another certificate counts", ANSWER, "    return found == question.id_by(single.hash_algorithm)\n", "    return True\n", TESTS),
    M("o07", "a response never expires", ANSWER, "        elif each.next_update_utc <= now:\n", "        elif False:\n", TESTS),
    M("o08", "a response of the future counts", ANSWER, "        if each.this_update_utc > now:\n", "        if False:\n", TESTS),
    M("o09", "a certificate that demands a staple needs none", REVOCATION, "            if question.must_be_stapled:\n", "            if False:\n", TESTS),
    M("o10", "a staple that is wrong is passed over", REVOCATION, '            raise TransportError(f"the server\'s stapled OCSP response was not accepted: {error}") from error\n', "            return None\n", TESTS),
    M("o11", "a responder is asked although it must not be", REVOCATION, "        if not self._asks or not question.responders:\n", "        if not question.responders:\n", TESTS),
    M("o12", "an answer is not remembered", REVOCATION, "            self._answers[question.id] = answer\n", "            pass\n", TESTS),
    M("o13", "a session is taken up although nothing is known of the certificate", REVOCATION, "            return None if question.responders else inf\n", "            return inf\n", TESTS),
    M("o14", "responders that did not answer are asked by each connection", INQUIRY, "_clock.monotonic() >= self._again_at)", "True)", TESTS),
    M("o15", "the wait for a responder does not hold the hub", INQUIRY, "        timer = hold_hub() if ref and not self._ended.is_set() else None\n", "        timer = None\n", TESTS),
    M("o16", "a responder is read without end", "wire/ocsp/responder.py", "            data = self._transport.receive_some(min(len(into), self._left)) if self._left else b\"\"\n", "            data = self._transport.receive_some(len(into))\n", TESTS),
    M("o17", "redirections have no end", "wire/ocsp/responder.py", "_MOST_REDIRECTIONS = 3\n", "_MOST_REDIRECTIONS = 30\n", TESTS),
    M("o18", "the name of a server is not compared", "wire/openssl.py", "            peer.refusal = _wrong_name(peer.name, certificate)\n", "            pass\n", "tls/test_tls_connections"),
    M("o19", "a session is taken up for ever", "wire/openssl.py", "session.valid_until is not None and _clock.time() < session.valid_until:", "session.valid_until is not None:", TESTS),
    M("o20", "a second record in what has come is not seen", "wire/openssl.py", "            self._may_have_more = True\n", "            self._may_have_more = False\n", "tls/test_tls_connections"),
    M("o21", "a close does not reach what waits for a responder", "wire/ocsp/transport.py", "        self._waiting = getcurrent()  # so that an interruption reaches it here, too\n", "        self._waiting = None\n", TESTS),
)  # fmt: skip
