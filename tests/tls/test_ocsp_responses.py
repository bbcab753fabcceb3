"""OCSP without a server: what a response says, whether it is believed, and what is said of one that is not."""

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
from gmongo.wire.ocsp.response import NoResponse, Response, read_answer
from gmongo.wire.ocsp.verifier import Verifier
from gmongo.wire.transport import TransportError
from tests.support.ocsp import DAY, GOOD, OCSP_SIGNING, REVOKED, UNKNOWN, Authority

KEYS = ("ecdsa", "rsa", "ed25519", "ed448")
NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def library() -> None:
    """None is needed."""


@pytest.fixture(scope="module")
def authorities() -> dict[str, Authority]:
    return {kind: Authority(kind) for kind in KEYS}


def refusal(authority: Authority, certified: Any, response: bytes) -> str:
    with pytest.raises(NoResponse) as caught:
        read_answer(Request(certified.certificate, authority.certificate), response)
    return str(caught.value)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("by_delegate", [False, True])
def test_keys_of_every_kind_sign(authorities: dict[str, Authority], kind: str, by_delegate: bool) -> None:
    authority = authorities[kind]
    certified = authority.server()
    signer = authority.delegate(OCSP_SIGNING) if by_delegate else None
    asked = Request(certified.certificate, authority.certificate)
    for status, revoked in ((GOOD, False), (REVOKED, True), (UNKNOWN, None)):
        response = authority.response(certified, status, signer=signer)
        assert read_answer(asked, response).revoked is revoked
        if status is not GOOD:
            continue
        # Of the signature, which comes last unless a certificate does; or of what is signed.
        at = response.index(responses.ocsp.load_der_ocsp_response(response).signature) + 40
        forged = response[:at] + bytes([response[at] ^ 1]) + response[at + 1 :]
        assert refusal(authority, certified, forged) == "the signature of the OCSP response is wrong"


def test_a_key_of_an_unknown_kind(authorities: dict[str, Authority]) -> None:
    key = dsa.generate_private_key(1024).public_key()
    response = SimpleNamespace(
        signature_hash_algorithm=hashes.SHA256(), signature=b"", tbs_response_bytes=b"", responder_name=None
    )
    with pytest.raises(NoResponse) as caught:
        responses._check_signature(response, SimpleNamespace(public_key=lambda: key))  # type: ignore[arg-type]
    assert str(caught.value) == f"the OCSP response is signed with a key of an unknown kind ({type(key).__name__})"


@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
def test_a_signature_without_a_hash_is_none(authorities: dict[str, Authority], kind: str) -> None:
    response = SimpleNamespace(signature_hash_algorithm=None, signature=b"", tbs_response_bytes=b"")
    with pytest.raises(NoResponse, match="signed with a key of an unknown kind"):
        responses._check_signature(response, authorities[kind].certificate)  # type: ignore[arg-type]


def single(status: Any, since: timedelta, until: timedelta | None) -> Any:
    return SimpleNamespace(
        certificate_status=status, this_update_utc=NOW + since, next_update_utc=None if until is None else NOW + until
    )


@pytest.mark.parametrize(
    ("singles", "expected"),
    [
        ([(GOOD, -DAY, DAY)], (False, DAY)),
        ([(GOOD, 0 * DAY, SECOND)], (False, SECOND)),
        ([(REVOKED, -DAY, DAY)], (True, DAY)),
        ([(UNKNOWN, -DAY, DAY)], (None, DAY)),
        ([(GOOD, -DAY, None)], (False, None)),
        ([(GOOD, -DAY, DAY), (GOOD, -DAY, 2 * DAY)], (False, DAY)),
        ([(GOOD, -DAY, 2 * DAY), (GOOD, -DAY, DAY)], (False, DAY)),
        ([(GOOD, -DAY, DAY), (GOOD, -DAY, None)], (False, None)),
        ([(GOOD, -DAY, None), (GOOD, -DAY, DAY)], (False, None)),
        ([(GOOD, -DAY, DAY), (REVOKED, -DAY, DAY)], (True, DAY)),
        ([(REVOKED, -DAY, DAY), (UNKNOWN, -DAY, DAY)], (True, DAY)),
        ([(GOOD, -DAY, DAY), (UNKNOWN, -DAY, DAY)], (None, DAY)),
        ([], "is not about the server's certificate"),
        ([(GOOD, SECOND, DAY)], "is not valid yet"),
        ([(GOOD, -DAY, 0 * DAY)], "has expired"),
        ([(GOOD, -DAY, -SECOND)], "has expired"),
        ([(GOOD, -DAY, DAY), (REVOKED, -DAY, -SECOND)], "has expired"),
    ],
)
def test_what_a_response_says(monkeypatch: pytest.MonkeyPatch, singles: list[Any], expected: Any) -> None:
    monkeypatch.setattr(_clock, "time", NOW.timestamp)
    if isinstance(expected, str):
        with pytest.raises(NoResponse) as caught:
            responses._current([single(*each) for each in singles])
        assert str(caught.value) == f"the OCSP response {expected}"
        return
    revoked, until = expected
    found = responses._current([single(*each) for each in singles])
    assert found == Response(revoked, -inf if until is None else (NOW + until).timestamp())
    assert found.is_conclusive is (revoked is not None) and found.holds is (until is not None)


def test_an_answer_holds_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, holds in ((-1, True), (0, False), (1, False)):
        monkeypatch.setattr(_clock, "time", lambda seconds=seconds: NOW.timestamp() + seconds)
        assert Response(False, NOW.timestamp()).holds is holds


CERTIFICATE = "the certificate of the OCSP responder"


@pytest.mark.parametrize(
    ("signer", "why"),
    [
        (lambda it: it.delegate(), f"{CERTIFICATE} is not for signing OCSP responses"),
        (lambda it: it.delegate(OCSP_SIGNING, days=-1), f"{CERTIFICATE} has expired or is not valid yet"),
        (lambda it: it.delegate(OCSP_SIGNING, signs=False), f"{CERTIFICATE} is not for signing OCSP responses"),
        (
            lambda _: Authority().delegate(OCSP_SIGNING),
            "the signer of the OCSP response has no certificate of the issuer's",
        ),
    ],
)
def test_signers_that_are_refused(authorities: dict[str, Authority], signer: Any, why: str) -> None:
    authority = authorities["ecdsa"]
    certified = authority.server()
    assert refusal(authority, certified, authority.response(certified, signer=signer(authority))) == why


@pytest.mark.parametrize(("days", "good"), [(-10, True), (1, True), (-10 - 1e-5, False), (1 + 1e-5, False)])
def test_a_signer_signs_for_as_long_as_its_certificate_says(
    authorities: dict[str, Authority], monkeypatch: pytest.MonkeyPatch, days: float, good: bool
) -> None:
    authority = authorities["ecdsa"]
    certified, signer = authority.server(), authority.delegate(OCSP_SIGNING)
    response = authority.response(certified, signer=signer, since=-20 * DAY, until=20 * DAY)
    begun = signer.certificate.not_valid_after_utc - DAY
    monkeypatch.setattr(_clock, "time", (begun + days * DAY).timestamp)
    if good:
        asked = Request(certified.certificate, authority.certificate)
        assert read_answer(asked, response).revoked is False
    else:
        assert refusal(authority, certified, response) == f"{CERTIFICATE} has expired or is not valid yet"


@pytest.mark.parametrize("size", [responses.LONGEST, responses.LONGEST + 1])
def test_the_longest_response(authorities: dict[str, Authority], size: int) -> None:
    authority = authorities["ecdsa"]
    said = refusal(authority, authority.server(), b"\x30" * size)
    if size > responses.LONGEST:
        assert said == "the OCSP response is longer than 65536 bytes"
    else:
        assert said.startswith("the OCSP response cannot be read: ")


# The question


def test_only_responders_over_http_are_asked(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    urls = ["http://a/", "HTTP://b/", "https://c/", "ldap://d/", "http://e/"]
    asked = Request(authority.server(*urls).certificate, authority.certificate)
    assert asked.responders == ["http://a/", "HTTP://b/", "http://e/"]
    assert not asked.must_be_stapled
    silent = Request(authority.server(must_staple=True).certificate, authority.certificate)
    assert silent.responders == [] and silent.must_be_stapled


def test_a_certificate_is_named_by_any_hash(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    asked = Request(authority.server().certificate, authority.certificate)
    assert asked.id == asked.id_by(hashes.SHA1()) != asked.id_by(hashes.SHA256())
    assert [len(each) for each in asked.id_by(hashes.SHA256())[:2]] == [32, 32]
    assert requests._id_of(responses.ocsp.load_der_ocsp_request(asked.request)) == asked.id


# What a client makes of it


def test_a_certificate_that_is_trusted_by_itself_is_not_asked_about(authorities: dict[str, Authority]) -> None:
    for chain in ([], [authorities["rsa"].certificate]):
        assert Verifier(True, 1).check(chain, b"junk", pytest.fail) == inf


def test_until_when_what_was_found_out_holds(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    plain, asked, must = authority.server(), authority.server("http://127.0.0.1:9/"), authority.server(must_staple=True)

    def check(certified: Any, staple: bytes = b"") -> float | None:
        chain = [certified.certificate, authority.certificate]
        return Verifier(False, 1).check(chain, staple, pytest.fail)

    assert check(plain) == inf
    assert check(asked) is None
    response = authority.response(asked)
    until = responses.ocsp.load_der_ocsp_response(response).next_update_utc
    assert until is not None and check(asked, response) == until.timestamp()
    assert check(asked, authority.response(asked, UNKNOWN)) is None
    for certified, staple, why in (
        (must, b"", "the server's certificate demands a stapled OCSP response, and there is none"),
        (plain, authority.response(plain, REVOKED), "the server's certificate has been revoked, by OCSP"),
        (
            plain,
            authority.response(must),
            "the server's stapled OCSP response was not accepted: "
            "the OCSP response is not about the server's certificate",
        ),
    ):
        with pytest.raises(TransportError) as caught:
            check(certified, staple)
        assert str(caught.value) == why


def test_of_two_answers_the_one_that_holds_longer_is_kept(authorities: dict[str, Authority]) -> None:
    authority = authorities["ecdsa"]
    certified = authority.server("http://127.0.0.1:9/")
    chain = [certified.certificate, authority.certificate]
    known = Verifier(False, 1)
    long, short = (authority.response(certified, until=days * DAY) for days in (2, 1))
    until = known.check(chain, long, pytest.fail)
    assert known.check(chain, short, pytest.fail) != until
    assert known.check(chain, b"", pytest.fail) == until
    assert known.check(chain, authority.response(certified, UNKNOWN), pytest.fail) == until
    with pytest.raises(TransportError):
        known.check(chain, authority.response(certified, REVOKED, until=3 * DAY), pytest.fail)
    with pytest.raises(TransportError):
        known.check(chain, b"", pytest.fail)


def test_the_certificate_of_the_responder_is_found_among_others() -> None:
    authority = Authority()
    signer, other = authority.delegate(OCSP_SIGNING), authority.delegate(OCSP_SIGNING)
    response: Any = SimpleNamespace(
        responder_name=None,
        responder_key_hash=x509.SubjectKeyIdentifier.from_public_key(signer.certificate.public_key()).digest,
        certificates=[other.certificate, signer.certificate],
    )
    assert responses._signer(response, authority.certificate) == signer.certificate


def test_no_more_than_four_responders_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(fetch.Fetch, "_ask", lambda _inquiry, url, *_more: asked.append(url))
    started = fetch.Fetch(SimpleNamespace(responders=list("abcdef")), 5.0, lambda *_: None)  # type: ignore[arg-type]
    started.wait(True)
    assert asked == list("abcd")


def test_a_limit_of_an_inquiry_does_not_hold_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []

    def limit(*arguments: Any, **named: Any) -> Any:
        limits.append((arguments, named))
        return nullcontext()

    monkeypatch.setattr(fetch, "interrupt_after", limit)
    monkeypatch.setattr(fetch, "ask", Mock(side_effect=NoResponse("it has none")))
    fetch.Fetch(SimpleNamespace(responders=["a"], request=b""), 5.0, pytest.fail).wait(True)  # type: ignore[arg-type]
    (((seconds, error), named),) = limits
    assert seconds == 5.0 and isinstance(error, NoResponse) and named == {"ref": False}


@pytest.mark.parametrize("addresses", [1, 2])
def test_connections_to_a_responder_are_closed(monkeypatch: pytest.MonkeyPatch, addresses: int) -> None:
    made: list[Mock] = []

    def ask(url: str, request: bytes, attach: Any) -> bytes:
        for _ in range(addresses):
            made.append(Mock())
            attach(made[-1])
        raise NoResponse("it has none")

    monkeypatch.setattr(fetch, "ask", ask)
    asking = fetch.Fetch(SimpleNamespace(responders=["a"], request=b""), 5.0, pytest.fail)  # type: ignore[arg-type]
    asking.wait(True)
    assert [each.close.call_count for each in made] == [1] * addresses and not asking._transports


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("x"), UnsupportedAlgorithm("x")])
def test_a_response_that_the_library_cannot_read(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses.ocsp, "load_der_ocsp_response", Mock(side_effect=error))
    with pytest.raises(NoResponse, match=r"^the OCSP response cannot be read: x$"):
        read_answer(Mock(), b"")
