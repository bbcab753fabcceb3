"""The driver validates OCSP responses, and explains rejected responses. The tests use no server."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gevent
import pytest

pytest.importorskip("OpenSSL")
pytest.importorskip("service_identity")

from cryptography.hazmat.primitives import hashes

from gmongo import _clock
from gmongo.wire.ocsp import fetch, messages
from gmongo.wire.ocsp.messages import NoResponse, Request, Response, parse_response
from gmongo.wire.ocsp.verifier import Verifier
from gmongo.wire.transport import TransportError
from tests.support.cases import with_cases
from tests.support.ocsp import DAY, GOOD, OCSP_SIGNING, REVOKED, SERVER_AUTH_PURPOSE, UNKNOWN, Authority

KEY_TYPES = ("ecdsa", "rsa", "ed25519", "ed448")
NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def library() -> None:
    """Replace the fixture `library` of `conftest.py`, because these tests open no TLS connection."""


@pytest.fixture(scope="module")
def authorities() -> dict[str, Authority]:
    return {kind: Authority(kind) for kind in KEY_TYPES}


def rejection(authority: Authority, certified: Any, response: bytes) -> str:
    with pytest.raises(NoResponse) as caught:
        parse_response(Request(certified.certificate, authority.certificate), response)
    return str(caught.value)


@pytest.mark.parametrize("key_type", KEY_TYPES)
@pytest.mark.parametrize("is_delegated", [False, True])
def test_signature_by_each_kind_of_key_is_verified(
    authorities: dict[str, Authority], key_type: str, is_delegated: bool
) -> None:
    authority = authorities[key_type]
    certified = authority.issue_server()
    signer = authority.issue_delegate(OCSP_SIGNING) if is_delegated else None
    request = Request(certified.certificate, authority.certificate)
    for status, revoked in ((GOOD, False), (REVOKED, True), (UNKNOWN, None)):
        response = authority.respond(certified, status, signer=signer)
        assert parse_response(request, response).revoked is revoked
        if status is not GOOD:
            continue
        # A changed byte in the signature makes the signature invalid.
        index = response.index(messages.ocsp.load_der_ocsp_response(response).signature) + 40
        damaged_response = response[:index] + bytes([response[index] ^ 1]) + response[index + 1 :]
        assert rejection(authority, certified, damaged_response) == "the signature of the OCSP response is wrong"


def test_signature_by_unknown_kind_of_key_is_rejected() -> None:
    response: Any = SimpleNamespace(signature_hash_algorithm=None, signature=b"", tbs_response_bytes=b"")
    with pytest.raises(NoResponse, match=r"^the OCSP response is signed with a key of an unknown kind \(int\)$"):
        messages._check_signature(response, SimpleNamespace(public_key=lambda: 5))  # type: ignore[arg-type]


def single_response(status: str, since: int, until: int | None) -> Any:
    """Return a `SingleResponse` of OCSP that is valid from `since` to `until` seconds after `NOW`.
    None means no end.
    """
    return SimpleNamespace(
        certificate_status=messages.ocsp.OCSPCertStatus[status],
        this_update_utc=NOW + since * SECOND,
        next_update_utc=None if until is None else NOW + until * SECOND,
    )


@with_cases
def test_single_responses_are_combined_to_status_and_validity(
    monkeypatch: pytest.MonkeyPatch, single_responses: list[Any], expected: Any
) -> None:
    monkeypatch.setattr(_clock, "time", NOW.timestamp)
    if isinstance(expected, str):
        with pytest.raises(NoResponse) as caught:
            messages._combine_statuses([single_response(*each) for each in single_responses])
        assert str(caught.value) == f"the OCSP response {expected}"
        return
    revoked, until = expected
    result = messages._combine_statuses([single_response(*each) for each in single_responses])
    assert result == Response(revoked, -inf if until is None else (NOW + until * SECOND).timestamp())
    assert result.is_conclusive is (revoked is not None) and result.is_valid is (until is not None)
    assert not Response(False, NOW.timestamp()).is_valid


NOT_FOR_SIGNING = "the certificate of the OCSP responder is not for signing OCSP responses"
NOT_VALID_NOW = "the certificate of the OCSP responder has expired or is not valid yet"
NOT_OF_ISSUER = "the issuer did not issue the certificate that signed the OCSP response"
WRONG_SIGNATURE = "the signature of the OCSP response is wrong"


@pytest.mark.parametrize(
    ("signer", "message"),
    [
        (lambda ca: ca.issue_delegate(), NOT_FOR_SIGNING),
        (lambda ca: ca.issue_delegate(SERVER_AUTH_PURPOSE), NOT_FOR_SIGNING),
        (lambda ca: ca.issue_server(), NOT_FOR_SIGNING),
        (lambda ca: ca.issue_delegate(OCSP_SIGNING, signs=False), NOT_FOR_SIGNING),
        (lambda _: Authority().issue_delegate(OCSP_SIGNING), NOT_OF_ISSUER),
        (lambda _: Authority(name="another").own, NOT_OF_ISSUER),
        (lambda _: Authority().own, (NOT_OF_ISSUER, WRONG_SIGNATURE)),
        (lambda _: Authority("rsa").own, (NOT_OF_ISSUER, WRONG_SIGNATURE)),
    ],
)
@pytest.mark.parametrize("by_name", [False, True])
def test_response_of_unauthorized_signer_is_rejected(
    authorities: dict[str, Authority], signer: Any, message: Any, by_name: bool
) -> None:
    authority = authorities["ecdsa"]
    certified = authority.issue_server()
    response = authority.respond(certified, signer=signer(authority), identifies_signer_by_name=by_name)
    assert rejection(authority, certified, response) == (message if isinstance(message, str) else message[by_name])


@pytest.mark.parametrize("options", [{"identifies_signer_by_name": True}, {"certificate_id_hash": hashes.SHA256()}])
def test_response_of_authorized_signer_is_accepted(authorities: dict[str, Authority], options: dict[str, Any]) -> None:
    authority = authorities["ecdsa"]
    certified = authority.issue_server()
    response = authority.respond(certified, **options)
    assert parse_response(Request(certified.certificate, authority.certificate), response).revoked is False


@pytest.mark.parametrize(("days", "is_valid"), [(-10, True), (1, True), (-10 - 1e-5, False), (1 + 1e-5, False)])
def test_only_response_of_signer_with_valid_certificate_is_accepted(
    authorities: dict[str, Authority], monkeypatch: pytest.MonkeyPatch, days: float, is_valid: bool
) -> None:
    authority = authorities["ecdsa"]
    certified, signer = authority.issue_server(), authority.issue_delegate(OCSP_SIGNING)
    response = authority.respond(certified, signer=signer, this_update_offset=-20 * DAY, next_update_offset=20 * DAY)
    issue_time = signer.certificate.not_valid_after_utc - DAY
    monkeypatch.setattr(_clock, "time", (issue_time + days * DAY).timestamp)
    if is_valid:
        request = Request(certified.certificate, authority.certificate)
        assert parse_response(request, response).revoked is False
    else:
        assert rejection(authority, certified, response) == NOT_VALID_NOW


# Tests of requests


def test_ocsp_request_is_sent_only_to_http_responders(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    urls = ["http://a/", "HTTP://b/", "https://c/", "ldap://d/", "http://e/"]
    request = Request(authority.issue_server(*urls).certificate, authority.certificate)
    assert request.responders == ["http://a/", "HTTP://b/", "http://e/"]
    assert not request.must_be_stapled
    without_responder = Request(authority.issue_server(must_staple=True).certificate, authority.certificate)
    assert without_responder.responders == [] and without_responder.must_be_stapled


# Tests of `Verifier` and `ResponderQueries`


def test_self_signed_certificate_needs_no_ocsp_response(authorities: dict[str, Authority]) -> None:
    for chain in ([], [authorities["rsa"].certificate]):
        assert Verifier(True, 1).check(chain, b"junk", pytest.fail) == inf


def test_revocation_check_returns_end_of_validity_or_raises_transport_error(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    plain, with_responder, must_staple = (
        authority.issue_server(),
        authority.issue_server("http://127.0.0.1:9/"),
        authority.issue_server(must_staple=True),
    )

    def check(certified: Any, staple: bytes = b"") -> float | None:
        chain = [certified.certificate, authority.certificate]
        return Verifier(False, 1).check(chain, staple, pytest.fail)

    assert check(plain) == inf
    assert check(with_responder) is None
    response = authority.respond(with_responder)
    until = messages.ocsp.load_der_ocsp_response(response).next_update_utc
    assert until is not None and check(with_responder, response) == until.timestamp()
    assert check(with_responder, authority.respond(with_responder, UNKNOWN)) is None
    for certified, staple, message in (
        (must_staple, b"", "the server's certificate requires a stapled OCSP response, but there is none"),
        (plain, authority.respond(plain, REVOKED), "the server's certificate has been revoked, according to OCSP"),
        (
            plain,
            authority.respond(must_staple),
            "the server's stapled OCSP response was not accepted: "
            "the OCSP response is not about the server's certificate",
        ),
    ):
        with pytest.raises(TransportError) as caught:
            check(certified, staple)
        assert str(caught.value) == message


def test_verifier_keeps_longest_valid_response_until_revocation(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    certified = authority.issue_server("http://127.0.0.1:9/")
    chain = [certified.certificate, authority.certificate]
    verifier = Verifier(False, 1)
    long_response, short_response = (authority.respond(certified, next_update_offset=days * DAY) for days in (2, 1))
    until = verifier.check(chain, long_response, pytest.fail)
    assert verifier.check(chain, short_response, pytest.fail) != until
    assert verifier.check(chain, b"", pytest.fail) == until
    assert verifier.check(chain, authority.respond(certified, UNKNOWN), pytest.fail) == until
    with pytest.raises(TransportError):
        verifier.check(chain, authority.respond(certified, REVOKED, next_update_offset=3 * DAY), pytest.fail)
    with pytest.raises(TransportError):
        verifier.check(chain, b"", pytest.fail)


def test_ocsp_fetch_sends_requests_to_at_most_four_responders(monkeypatch: pytest.MonkeyPatch) -> None:
    urls: list[str] = []
    monkeypatch.setattr(fetch.ResponderQueries, "_query", lambda _fetch, url, *_: urls.append(url))
    monkeypatch.setattr(_clock, "monotonic", Mock(side_effect=[1000.0, 1064.9, 1065.0]))
    with gevent.Timeout(10):
        queries = fetch.ResponderQueries(SimpleNamespace(responders=list("abcdef")), 5.0, lambda *_: None)  # type: ignore[arg-type]
        queries.wait(True)
    assert urls == list("abcd")
    assert [queries.may_be_replaced, queries.may_be_replaced] == [False, True]


def test_new_answer_or_query_removes_expired_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = Verifier(True, 1)
    verifier._answers = {"expired": Mock(is_valid=False), "valid": Mock(is_valid=True)}  # type: ignore[dict-item]
    verifier._queries = {"old": Mock(may_be_replaced=True), "new": Mock(may_be_replaced=False)}  # type: ignore[dict-item]
    request = Mock(id="last")
    verifier._cache_answer(request, Mock(is_conclusive=True))
    monkeypatch.setattr("gmongo.wire.ocsp.verifier.ResponderQueries", Mock())
    verifier._query_responders(request, Mock())
    assert ([*verifier._answers], [*verifier._queries]) == (["valid", "last"], ["new", "last"])
