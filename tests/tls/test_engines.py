"""TLS objects of pyOpenSSL behave like TLS objects of the module `ssl`.

TLS transports explain TLS errors. An interrupted send puts a transport out of step.
"""

from __future__ import annotations

import _socket
import ssl
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gevent
import pytest
import trustme
from cryptography import x509
from gevent import GreenletExit

pytest.importorskip("OpenSSL")
pytest.importorskip("service_identity")

from OpenSSL import SSL, crypto

from gmongo import _clock
from gmongo._tls import tls_context, tls_of
from gmongo.errors import ConfigurationError
from gmongo.wire import openssl
from gmongo.wire.ocsp.verifier import CheckedTls, CheckedTransport, Verifier
from gmongo.wire.openssl import OpenSslContext, Session, Trust
from gmongo.wire.tls import Tls, TlsTransport, describe_tls_error
from gmongo.wire.transport import TransportError
from tests.support.cases import with_cases

CIPHERS = "ECDHE+AESGCM"


@pytest.fixture(autouse=True)
def library() -> None:
    """Replace the fixture `library` of `conftest.py`: each test runs once, with the OCSP packages."""


@with_cases
def test_host_name_is_compared_with_names_of_certificate(name: str, matches: bool) -> None:
    leaf_certificate = trustme.CA().issue_cert("*.example.test", "plain", "127.0.0.7")
    certificate = x509.load_pem_x509_certificate(leaf_certificate.cert_chain_pems[0].bytes())
    assert (openssl._describe_name_mismatch(name, crypto.X509.from_cryptography(certificate)) == "") is matches


@pytest.mark.parametrize(
    ("valid_until", "is_resumed"), [(1000.0, False), (1000.5, True), (999.0, False), (None, False)]
)
def test_tls_session_is_resumed_until_validity_of_ocsp_status_ends(
    monkeypatch: pytest.MonkeyPatch, valid_until: float | None, is_resumed: bool
) -> None:
    monkeypatch.setattr(_clock, "time", lambda: 1000.0)
    tls_object: Any = Mock()
    monkeypatch.setattr(openssl.SSL, "Connection", lambda context, _: tls_object)
    context = OpenSslContext(Trust(CIPHERS))
    assert context.check_hostname is True and OpenSslContext(Trust(CIPHERS, check_name=False)).check_hostname is False
    result = context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), "h", Session("raw", valid_until))  # type: ignore[arg-type]
    assert [call.args for call in tls_object.set_session.call_args_list] == ([("raw",)] if is_resumed else [])
    assert result.peer.valid_until == (valid_until if is_resumed else None)
    assert (result.peer.name, result.peer.check_name) == ("h", True)
    assert result.verified_chain() == []


def test_certificate_is_refused_after_unknown_error_of_verification() -> None:
    peer = SimpleNamespace(refusal="", check_name=True)
    connection: Any = Mock(get_app_data=lambda: peer)
    assert openssl._verify_certificate(connection, Mock(), 9999, 1, 0) is False
    assert peer.refusal == "error 9999 of OpenSSL's verification"


def test_certificate_errors_have_numbers_and_texts_of_openssl() -> None:
    for number, text in openssl._CERTIFICATE_ERRORS.items():
        assert SSL._ffi.string(SSL._lib.X509_verify_cert_error_string(number)).decode().startswith(text)


def test_pyopenssl_context_forbids_renegotiation_and_compression() -> None:
    options = OpenSslContext(Trust(CIPHERS))._context.set_options(0)
    assert options & ssl.OP_NO_RENEGOTIATION and options & ssl.OP_NO_COMPRESSION


def test_error_of_unusable_certificate_file_names_option_and_file(files: SimpleNamespace) -> None:
    with pytest.raises(ConfigurationError, match=r"tlsCertificateKeyFile: pyOpenSSL cannot use '.*junk\.pem': "):
        openssl._load_client_certificate(Mock(use_certificate_chain_file=Mock(side_effect=TypeError)), files.junk, None)


@with_cases
def test_trusted_authorities_come_from_option_or_system(
    monkeypatch: pytest.MonkeyPatch, cafile: str | None, capath: str | None, expected_locations: Any
) -> None:
    paths = SimpleNamespace(cafile=cafile, capath=capath)
    monkeypatch.setattr(openssl.ssl, "get_default_verify_paths", lambda: paths)
    context = Mock()
    openssl._load_authorities(context, None)
    assert [call.kwargs for call in context.load_verify_locations.call_args_list] == (
        [expected_locations] if expected_locations else []
    )
    assert context.set_default_verify_paths.called is (expected_locations is None)
    openssl._load_authorities(context, "own.pem")
    assert context.load_verify_locations.call_args.kwargs == {"cafile": "own.pem"}


def test_pyopenssl_read_and_write_return_nothing_after_close_notify() -> None:
    steps = dict.fromkeys(("recv", "recv_into", "sendall"), Mock(side_effect=[b"x", *[SSL.ZeroReturnError()] * 3]))
    connection: Any = Mock(bio_read=Mock(side_effect=SSL.WantReadError), **steps)
    tls_object: Any = openssl.OpenSslObject(connection, Mock(), ssl.MemoryBIO(), ssl.MemoryBIO())
    results = [tls_object.read(5), tls_object.read(5), tls_object.read(5, "memory"), tls_object.write(b"y")]
    assert results == [b"x", b"", 0, 0]
    assert [call.args for call in connection.recv.call_args_list] == [(5,), (5,), ("memory", 5), (b"y",)]


# Tests of transports


@pytest.fixture
def socket_pair() -> Any:
    here, there = _socket.socketpair()
    for each in (here, there):
        each.setblocking(False)
    yield here, there
    there.close()


@pytest.mark.parametrize("error", [GreenletExit(), TransportError("gone"), KeyboardInterrupt()])
def test_interrupted_tls_send_marks_transport_out_of_step(socket_pair: Any, error: BaseException) -> None:
    tls: Any = SimpleNamespace()
    transport = TlsTransport(socket_pair[0], True, tls, "h.")
    transport._engine = SimpleNamespace(write=Mock(side_effect=error))  # type: ignore[assignment]
    assert not transport.out_of_step and transport._host == "h"
    with pytest.raises(type(error)):
        transport.send([b"request"])
    assert transport.out_of_step
    transport.close()


@pytest.mark.parametrize("exchange", [lambda each: each.send([b"request"]), lambda each: each.receive(1)])
def test_interrupted_tls_transport_uses_engine_no_more(socket_pair: Any, exchange: Any) -> None:
    tls: Any = SimpleNamespace()
    transport = TlsTransport(socket_pair[0], True, tls, "h")
    engine = transport._engine = Mock(pending=lambda: 16)
    transport.interrupt(GreenletExit())
    with pytest.raises(GreenletExit):
        exchange(transport)
    assert not engine.read.called and not engine.write.called


def test_tls_alert_precedes_error_and_is_omitted_if_connection_is_lost(socket_pair: Any) -> None:
    transport, peer, error = TlsTransport(socket_pair[0], True, Mock(), "h"), socket_pair[1], ssl.SSLError(1, "bad")
    error.reason = "BAD"
    transport._engine = Mock(write=Mock(side_effect=error))
    for expected in (b"alert", b""):
        transport._outgoing.write(b"alert")
        with pytest.raises(TransportError, match=r"^BAD$") as caught:
            transport.send([b"request"])
        assert caught.value.__cause__ is error
        assert (peer.recv(10) if expected else b"") == expected
        peer.close()


def test_end_of_tls_stream_raises_transport_error(socket_pair: Any) -> None:
    transport = TlsTransport(socket_pair[0], True, Mock(), "h")
    transport._engine = Mock(pending=lambda: 1, read=lambda size, into: 0)
    with pytest.raises(TransportError, match=r"^connection closed by the server$"):
        transport.receive(1)


@pytest.mark.parametrize("make_context", [ssl.create_default_context, lambda: OpenSslContext(Trust(CIPHERS))])
def test_host_name_that_cannot_be_in_certificate_raises_transport_error(socket_pair: Any, make_context: Any) -> None:
    transport = TlsTransport(socket_pair[0], True, Tls(make_context()), "a" * 64)
    with pytest.raises(
        TransportError, match=r"^TLS handshake failed: 'a{64}' cannot be in a certificate: .*too long\)?$"
    ):
        transport.shake_hands()


@pytest.mark.parametrize(
    ("certificate_was_shown", "valid_until", "handshake_fails"),
    [(True, None, False), (False, 5.0, False), (False, None, True)],
)
def test_handshake_without_certificate_raises_transport_error_unless_resumed(
    monkeypatch: pytest.MonkeyPatch,
    socket_pair: Any,
    certificate_was_shown: bool,
    valid_until: float | None,
    handshake_fails: bool,
) -> None:
    peer = SimpleNamespace(sent_certificate=certificate_was_shown, valid_until=valid_until, staple=b"s")
    tls: Any = Mock()
    tls.revocation.check.return_value = 7.0
    transport = CheckedTransport(socket_pair[0], True, tls, "h")
    transport._engine = SimpleNamespace(peer=peer, verified_chain=lambda: ["c"])  # type: ignore[assignment]
    monkeypatch.setattr(TlsTransport, "shake_hands", lambda self: None)
    if handshake_fails:
        with pytest.raises(TransportError, match=r"^TLS handshake failed: the server has shown no certificate$"):
            transport.shake_hands()
        tls.sessions.pop.assert_called_once_with("h", None)
    else:
        transport.shake_hands()
        assert not tls.sessions.pop.called and tls.revocation.check.called is certificate_was_shown
        assert peer.valid_until == (7.0 if certificate_was_shown else valid_until)
    transport.close()


@pytest.mark.parametrize("chain", [Mock(side_effect=KeyError("odd")), Mock(return_value=["odd", "certificates"])])
def test_certificates_that_cryptography_rejects_cause_only_warning(socket_pair: Any, caplog: Any, chain: Mock) -> None:
    transport = CheckedTransport(socket_pair[0], True, Mock(revocation=Verifier(True, 5.0)), "h")
    transport._engine = Mock(peer=Mock(sent_certificate=True), verified_chain=chain)
    transport._check()
    problems = ["be parsed: KeyError("] if chain.side_effect else ["AttributeError(", "certificate: TypeError("]
    assert [each in text for each, text in zip(problems, caplog.messages, strict=True)] == [True] * len(problems)


def test_interruption_of_transport_ends_wait_for_ocsp_responder(socket_pair: Any) -> None:
    transport = CheckedTransport(socket_pair[0], True, Mock(), "h")
    waiter = gevent.spawn(transport._wait_for, Mock(wait=lambda ref: gevent.sleep(60)))
    gevent.sleep(0)
    transport.interrupt(TransportError("closed"))
    with pytest.raises(TransportError, match=r"^closed$"):
        waiter.get(timeout=5)


@pytest.mark.parametrize(("connect_timeout", "seconds"), [(None, 5.0), (20.0, 5.0), (10.0, 5.0), (4.0, 2.0)])
@pytest.mark.parametrize(
    ("tls_option", "requests_are_enabled"), [({}, True), ({"tlsdisableocspendpointcheck": True}, False)]
)
def test_ocsp_timeout_is_half_of_connect_timeout_up_to_five_seconds(
    connect_timeout: float | None,
    seconds: float,
    tls_option: Any,
    requests_are_enabled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verifier_arguments: list[Any] = []
    monkeypatch.setattr("gmongo.wire.ocsp.verifier.Verifier", lambda *arguments: verifier_arguments.append(arguments))
    assert tls_of({"tls": True, **tls_option}, connect_timeout) is not None
    assert verifier_arguments == [(requests_are_enabled, seconds)]


# Whether a client with an option checks the host name, the certificate, and the revocation of the certificate.
CHECKS = {
    "tls": (True, True, True), "tlsallowinvalidhostnames": (False, True, True),
    "tlsdisablecertificaterevocationcheck": (True, True, False),
    "tlsallowinvalidcertificates": (False, False, False), "tlsinsecure": (False, False, False),
}  # fmt: skip


@pytest.mark.parametrize("option", CHECKS)
def test_option_disables_only_its_checks(option: str) -> None:
    context: Any = tls_context({"tls": True, option: True})
    checks_revocation = isinstance(tls_of({"tls": True, option: True}, None), CheckedTls)
    assert (context.check_hostname, context.verify_mode == ssl.CERT_REQUIRED, checks_revocation) == CHECKS[option]
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2 and not context.hostname_checks_common_name
    assert context.options & ssl.OP_NO_RENEGOTIATION


@with_cases
def test_error_text_explains_openssl_reason(name: str, text: str) -> None:
    error = ssl.SSLError(1, "x")
    error.reason = name
    assert describe_tls_error(error) == text


def test_key_without_password_ignores_given_password(files: Any) -> None:
    assert openssl._load_client_key(files.client, "unused")
