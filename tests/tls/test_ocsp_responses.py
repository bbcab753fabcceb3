"""The driver validates OCSP responses, and explains rejected responses. The tests use no server."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("OpenSSL")
pytest.importorskip("service_identity")

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa

from gmongo import _clock
from gmongo.wire.ocsp import fetch
from gmongo.wire.ocsp import request as requests
from gmongo.wire.ocsp import response as responses
from gmongo.wire.ocsp.request import Request
from gmongo.wire.ocsp.response import NoResponse, Response, parse_response
from gmongo.wire.ocsp.verifier import Verifier
from gmongo.wire.transport import TransportError
from tests.support.cases import with_cases
from tests.support.ocsp import DAY, GOOD, OCSP_SIGNING, REVOKED, SERVER_AUTH_PURPOSE, UNKNOWN, Authority

KEYS = ("ecdsa", "rsa", "ed25519", "ed448")
NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def library() -> None:
    """Replace the fixture `library` of the folder, because these tests open no TLS connection."""


@pytest.fixture(scope="module")
def authorities() -> dict[str, Authority]:
    return {kind: Authority(kind) for kind in KEYS}


def refusal(authority: Authority, certified: Any, response: bytes) -> str:
    with pytest.raises(NoResponse) as caught:
        parse_response(Request(certified.certificate, authority.certificate), response)
    return str(caught.value)


@pytest.mark.parametrize("key_type", KEYS)
@pytest.mark.parametrize("is_delegated", [False, True])
def test_signature_by_each_kind_of_key_is_verified(
    authorities: dict[str, Authority], key_type: str, is_delegated: bool
) -> None:
    authority = authorities[key_type]
    certified = authority.server()
    signer = authority.delegate(OCSP_SIGNING) if is_delegated else None
    request = Request(certified.certificate, authority.certificate)
    for status, revoked in ((GOOD, False), (REVOKED, True), (UNKNOWN, None)):
        response = authority.response(certified, status, signer=signer)
        assert parse_response(request, response).revoked is revoked
        if status is not GOOD:
            continue
        # A changed byte in the signature or in the signed data makes the signature invalid.
        index = response.index(responses.ocsp.load_der_ocsp_response(response).signature) + 40
        damaged = response[:index] + bytes([response[index] ^ 1]) + response[index + 1 :]
        assert refusal(authority, certified, damaged) == "the signature of the OCSP response is wrong"


def test_response_signed_with_unknown_key_type_is_rejected() -> None:
    key = dsa.generate_private_key(1024).public_key()
    response = SimpleNamespace(
        signature_hash_algorithm=hashes.SHA256(), signature=b"", tbs_response_bytes=b"", responder_name=None
    )
    with pytest.raises(NoResponse) as caught:
        responses._check_signature(response, SimpleNamespace(public_key=lambda: key))  # type: ignore[arg-type]
    assert str(caught.value) == f"the OCSP response is signed with a key of an unknown kind ({type(key).__name__})"


@pytest.mark.parametrize("key_type", ["ecdsa", "rsa"])
def test_response_signature_without_hash_is_rejected(authorities: dict[str, Authority], key_type: str) -> None:
    response = SimpleNamespace(signature_hash_algorithm=None, signature=b"", tbs_response_bytes=b"")
    with pytest.raises(NoResponse, match="signed with a key of an unknown kind"):
        responses._check_signature(response, authorities[key_type].certificate)  # type: ignore[arg-type]


def single_response(status: str, since: int, until: int | None) -> Any:
    """Return a single response whose validity begins and ends the given numbers of seconds after `NOW`."""
    return SimpleNamespace(
        certificate_status=responses.ocsp.OCSPCertStatus[status],
        this_update_utc=NOW + since * SECOND,
        next_update_utc=None if until is None else NOW + until * SECOND,
    )


@with_cases
def test_single_responses_are_combined_to_status_and_validity(
    monkeypatch: pytest.MonkeyPatch, singles: list[Any], expected: Any
) -> None:
    monkeypatch.setattr(_clock, "time", NOW.timestamp)
    if isinstance(expected, str):
        with pytest.raises(NoResponse) as caught:
            responses._combined_status([single_response(*each) for each in singles])
        assert str(caught.value) == f"the OCSP response {expected}"
        return
    revoked, until = expected
    result = responses._combined_status([single_response(*each) for each in singles])
    assert result == Response(revoked, -inf if until is None else (NOW + until * SECOND).timestamp())
    assert result.is_conclusive is (revoked is not None) and result.is_valid is (until is not None)


def test_ocsp_response_is_valid_until_next_update(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, holds in ((-1, True), (0, False), (1, False)):
        monkeypatch.setattr(_clock, "time", lambda seconds=seconds: NOW.timestamp() + seconds)
        assert Response(False, NOW.timestamp()).is_valid is holds


CERTIFICATE = "the certificate of the OCSP responder"


NOT_OF_ISSUER = "the issuer did not issue the certificate that signed the OCSP response"
WRONG_SIGNATURE = "the signature of the OCSP response is wrong"


@pytest.mark.parametrize(
    ("signer", "message"),
    [
        (lambda ca: ca.delegate(), f"{CERTIFICATE} is not for signing OCSP responses"),
        (lambda ca: ca.delegate(SERVER_AUTH_PURPOSE), f"{CERTIFICATE} is not for signing OCSP responses"),
        (lambda ca: ca.server(), f"{CERTIFICATE} is not for signing OCSP responses"),
        (lambda ca: ca.delegate(OCSP_SIGNING, signs=False), f"{CERTIFICATE} is not for signing OCSP responses"),
        (lambda _: Authority().delegate(OCSP_SIGNING), NOT_OF_ISSUER),
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
    certified = authority.server()
    response = authority.response(certified, signer=signer(authority), identifies_signer_by_name=by_name)
    assert refusal(authority, certified, response) == (message if isinstance(message, str) else message[by_name])


@pytest.mark.parametrize("options", [{"identifies_signer_by_name": True}, {"certificate_id_hash": hashes.SHA256()}])
def test_response_of_authorized_signer_is_accepted(authorities: dict[str, Authority], options: dict[str, Any]) -> None:
    authority = authorities["ecdsa"]
    certified = authority.server()
    response = authority.response(certified, **options)
    assert parse_response(Request(certified.certificate, authority.certificate), response).revoked is False


@pytest.mark.parametrize(("days", "is_valid"), [(-10, True), (1, True), (-10 - 1e-5, False), (1 + 1e-5, False)])
def test_response_of_signer_with_expired_or_future_certificate_is_rejected(
    authorities: dict[str, Authority], monkeypatch: pytest.MonkeyPatch, days: float, is_valid: bool
) -> None:
    authority = authorities["ecdsa"]
    certified, signer = authority.server(), authority.delegate(OCSP_SIGNING)
    response = authority.response(certified, signer=signer, this_update_offset=-20 * DAY, next_update_offset=20 * DAY)
    issued = signer.certificate.not_valid_after_utc - DAY
    monkeypatch.setattr(_clock, "time", (issued + days * DAY).timestamp)
    if is_valid:
        request = Request(certified.certificate, authority.certificate)
        assert parse_response(request, response).revoked is False
    else:
        assert refusal(authority, certified, response) == f"{CERTIFICATE} has expired or is not valid yet"


@pytest.mark.parametrize("size", [responses.MAX_RESPONSE_SIZE, responses.MAX_RESPONSE_SIZE + 1])
def test_response_larger_than_limit_is_rejected(authorities: dict[str, Authority], size: int) -> None:
    authority = authorities["ecdsa"]
    message = refusal(authority, authority.server(), b"\x30" * size)
    if size > responses.MAX_RESPONSE_SIZE:
        assert message == "the OCSP response is longer than 65536 bytes"
    else:
        assert message.startswith("the OCSP response cannot be read: ")


# Tests of requests


def test_ocsp_request_is_sent_only_to_http_responders(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    urls = ["http://a/", "HTTP://b/", "https://c/", "ldap://d/", "http://e/"]
    request = Request(authority.server(*urls).certificate, authority.certificate)
    assert request.responders == ["http://a/", "HTTP://b/", "http://e/"]
    assert not request.must_be_stapled
    silent = Request(authority.server(must_staple=True).certificate, authority.certificate)
    assert silent.responders == [] and silent.must_be_stapled


def test_certificate_id_in_response_may_use_other_hash(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    request = Request(authority.server().certificate, authority.certificate)
    assert request.id == request.id_with_hash(hashes.SHA1()) != request.id_with_hash(hashes.SHA256())
    assert [len(each) for each in request.id_with_hash(hashes.SHA256())[:2]] == [32, 32]
    assert requests._id_of(responses.ocsp.load_der_ocsp_request(request.encoded)) == request.id


# Tests of the verification


def test_self_signed_certificate_needs_no_ocsp_response(authorities: dict[str, Authority]) -> None:
    for chain in ([], [authorities["rsa"].certificate]):
        assert Verifier(True, 1).check(chain, b"junk", pytest.fail) == inf


def test_revocation_check_returns_end_of_validity_or_raises_transport_error(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    plain, request, must = (
        authority.server(),
        authority.server("http://127.0.0.1:9/"),
        authority.server(must_staple=True),
    )

    def check(certified: Any, staple: bytes = b"") -> float | None:
        chain = [certified.certificate, authority.certificate]
        return Verifier(False, 1).check(chain, staple, pytest.fail)

    assert check(plain) == inf
    assert check(request) is None
    response = authority.response(request)
    until = responses.ocsp.load_der_ocsp_response(response).next_update_utc
    assert until is not None and check(request, response) == until.timestamp()
    assert check(request, authority.response(request, UNKNOWN)) is None
    for certified, staple, message in (
        (must, b"", "the server's certificate requires a stapled OCSP response, but there is none"),
        (plain, authority.response(plain, REVOKED), "the server's certificate has been revoked, according to OCSP"),
        (
            plain,
            authority.response(must),
            "the server's stapled OCSP response was not accepted: "
            "the OCSP response is not about the server's certificate",
        ),
    ):
        with pytest.raises(TransportError) as caught:
            check(certified, staple)
        assert str(caught.value) == message


def test_verifier_keeps_longest_valid_response_until_revocation(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    certified = authority.server("http://127.0.0.1:9/")
    chain = [certified.certificate, authority.certificate]
    verifier = Verifier(False, 1)
    long, short = (authority.response(certified, next_update_offset=days * DAY) for days in (2, 1))
    until = verifier.check(chain, long, pytest.fail)
    assert verifier.check(chain, short, pytest.fail) != until
    assert verifier.check(chain, b"", pytest.fail) == until
    assert verifier.check(chain, authority.response(certified, UNKNOWN), pytest.fail) == until
    with pytest.raises(TransportError):
        verifier.check(chain, authority.response(certified, REVOKED, next_update_offset=3 * DAY), pytest.fail)
    with pytest.raises(TransportError):
        verifier.check(chain, b"", pytest.fail)


def test_signer_certificate_is_selected_by_key_hash() -> None:
    authority = Authority()
    signer, other = authority.delegate(OCSP_SIGNING), authority.delegate(OCSP_SIGNING)
    response: Any = SimpleNamespace(
        responder_name=None,
        responder_key_hash=x509.SubjectKeyIdentifier.from_public_key(signer.certificate.public_key()).digest,
        certificates=[other.certificate, signer.certificate],
    )
    assert responses._signer(response, authority.certificate) == signer.certificate


def test_ocsp_fetch_sends_requests_to_at_most_four_responders(monkeypatch: pytest.MonkeyPatch) -> None:
    urls: list[str] = []
    monkeypatch.setattr(fetch.Fetch, "_query", lambda _fetch, url, *_: urls.append(url))
    fetch.Fetch(SimpleNamespace(responders=list("abcdef")), 5.0, lambda *_: None).wait(True)  # type: ignore[arg-type]
    assert urls == list("abcd")


def test_timeout_of_ocsp_fetch_does_not_keep_event_loop_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []

    def record_limit(*arguments: Any, **options: Any) -> Any:
        limits.append((arguments, options))
        return nullcontext()

    monkeypatch.setattr(fetch, "interrupt_after", record_limit)
    monkeypatch.setattr(fetch, "query", Mock(side_effect=NoResponse("it has none")))
    fetch.Fetch(SimpleNamespace(responders=["a"], encoded=b""), 5.0, pytest.fail).wait(True)  # type: ignore[arg-type]
    (((seconds, error), named),) = limits
    assert seconds == 5.0 and isinstance(error, NoResponse) and named == {"ref": False}


@pytest.mark.parametrize("addresses", [1, 2])
def test_ocsp_fetch_closes_each_connection_to_responder(monkeypatch: pytest.MonkeyPatch, addresses: int) -> None:
    connections: list[Mock] = []

    def ask_responder(url: str, request: bytes, attach: Any) -> bytes:
        for _ in range(addresses):
            connections.append(Mock())
            attach(connections[-1])
        raise NoResponse("it has none")

    monkeypatch.setattr(fetch, "query", ask_responder)
    started = fetch.Fetch(SimpleNamespace(responders=["a"], encoded=b""), 5.0, pytest.fail)  # type: ignore[arg-type]
    started.wait(True)
    assert [each.close.call_count for each in connections] == [1] * addresses and not started._transports


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("x"), UnsupportedAlgorithm("x")])
def test_unreadable_response_of_responder_raises_no_response_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses.ocsp, "load_der_ocsp_response", Mock(side_effect=error))
    with pytest.raises(NoResponse, match=r"^the OCSP response cannot be read: x$"):
        parse_response(Mock(), b"")
