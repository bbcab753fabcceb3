"""TLS objects of pyOpenSSL behave like TLS objects of the module `ssl`.

TLS transports raise documented errors for TLS errors and for the end of the stream.
"""

from __future__ import annotations

import _socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import bson
import pytest
import trustme
from cryptography import x509
from gevent import GreenletExit

pytest.importorskip("OpenSSL")
pytest.importorskip("service_identity")

from OpenSSL import SSL, crypto

from gmongo import _clock
from gmongo._tls import tls_of
from gmongo.cmap.connection import Connection
from gmongo.errors import AutoReconnect, ConfigurationError
from gmongo.wire import connect as connecting
from gmongo.wire import openssl
from gmongo.wire.ocsp.transport import CheckedTransport
from gmongo.wire.openssl import OpenSslContext, OpenSslObject, Peer, Session, Trust
from gmongo.wire.tls import Tls, TlsTransport, reason
from gmongo.wire.transport import TransportError
from tests.hostile.callback_server import message
from tests.support.cases import with_cases
from tests.support.ocsp import Authority, CertificateWithKey

CIPHERS = "ECDHE+AESGCM"


@pytest.fixture(autouse=True)
def library() -> None:
    """Replace the fixture `library` of the folder, because each test selects a TLS library itself."""


@pytest.fixture
def authority() -> Authority:
    return Authority()


class FakeOpenSslConnection:
    """Substitute for a connection of pyOpenSSL.

    :param methods: the methods of the connection, by name.
    """

    def __init__(self, **methods: Any) -> None:
        self.received_bytes: list[bytes] = []
        self.output: list[bytes] = []
        self.__dict__.update(methods)

    def bio_write(self, data: bytes) -> None:
        self.received_bytes.append(data)

    def bio_read(self, size: int) -> bytes:
        if not self.output:
            raise SSL.WantReadError
        return self.output.pop(0)

    def pending(self) -> int:
        return 0


def tls_object_with_methods(
    **methods: Any,
) -> tuple[OpenSslObject, FakeOpenSslConnection, ssl.MemoryBIO, ssl.MemoryBIO]:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    fake_connection = FakeOpenSslConnection(**methods)
    tls_object: Any = OpenSslObject(fake_connection, Peer("h", True), incoming, outgoing)  # type: ignore[arg-type]
    return tls_object, fake_connection, incoming, outgoing


def method_that_raises(error: BaseException) -> Any:
    return Mock(side_effect=error)


def test_tls_object_reads_and_writes_like_standard_library() -> None:
    tls_object, fake_connection, incoming, outgoing = tls_object_with_methods(
        recv=lambda size: b"x" * size, recv_into=lambda into, size: size - 1, sendall=len, do_handshake=lambda: None
    )
    fake_connection.output = [b"one", b"two"]
    incoming.write(b"record")
    assert tls_object.read(5) == b"xxxxx" and tls_object.read(5, memoryview(bytearray(5))) == 4
    assert tls_object.write(b"abc") == 3 and tls_object.do_handshake() is None  # type: ignore[func-returns-value]
    assert fake_connection.received_bytes == [b"record"] and outgoing.read() == b"onetwo" and tls_object.pending()


@pytest.mark.parametrize("method", ["read", "read into", "write", "do_handshake"])
def test_openssl_error_becomes_ssl_error_or_end_of_stream(method: str) -> None:
    def run_method_with_error(error: BaseException) -> tuple[Any, OpenSslObject, ssl.MemoryBIO]:
        step = method_that_raises(error)
        tls_object, fake_connection, incoming, outgoing = tls_object_with_methods(
            recv=step, recv_into=step, sendall=step, do_handshake=step
        )
        fake_connection.output = [b"alert"]
        incoming.write(b"record")
        calls = {
            "read": lambda: tls_object.read(5),
            "read into": lambda: tls_object.read(5, memoryview(bytearray(5))),
            "write": lambda: tls_object.write(b"abc"),
            "do_handshake": tls_object.do_handshake,
        }
        try:
            return calls[method](), tls_object, outgoing  # type: ignore[operator]
        except ssl.SSLError as raised:
            return raised, tls_object, outgoing

    result, tls_object, outgoing = run_method_with_error(SSL.WantReadError())
    assert type(result) is ssl.SSLWantReadError and result.__cause__ is None
    assert not tls_object.pending() and outgoing.read() == b"alert"
    result, tls_object, outgoing = run_method_with_error(SSL.ZeroReturnError())
    assert result == {"read": b"", "read into": 0, "write": 0, "do_handshake": None}[method]
    assert outgoing.read() == b"alert"
    result, tls_object, outgoing = run_method_with_error(SSL.Error([("", "", "tlsv1 alert unknown ca")]))
    assert type(result) is ssl.SSLError and result.reason == "TLSV1_ALERT_UNKNOWN_CA" and outgoing.read() == b"alert"
    with pytest.raises(GreenletExit):
        run_method_with_error(GreenletExit())


@pytest.mark.parametrize(
    ("error", "expected_reason"),
    [
        (SSL.Error([("", "", "wrong version number")]), "WRONG_VERSION_NUMBER"),
        (SSL.Error([("", "", "ssl/tls alert handshake failure")]), "SSLV3_ALERT_HANDSHAKE_FAILURE"),
        (SSL.Error([("", "", "sslv3 alert bad certificate"), ("", "", "x")]), "SSLV3_ALERT_BAD_CERTIFICATE"),
        (SSL.Error([("", "", "tlsv1 alert protocol version")]), "TLSV1_ALERT_PROTOCOL_VERSION"),
        (SSL.Error([("", "", "tlsv13 alert certificate required")]), "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
        (SSL.Error(), "ERROR"),
        (SSL.SysCallError(-1, "Unexpected EOF"), "(-1,_'UNEXPECTED_EOF')"),
    ],
)
def test_openssl_error_has_reason_of_standard_library(error: SSL.Error, expected_reason: str) -> None:
    result = openssl._as_ssl_error(error, "")
    assert type(result) is ssl.SSLError and result.reason == expected_reason
    number, text = result.args
    assert (
        number == 1
        and text.replace(" ", "_").upper().rpartition("_ALERT_")[2] == expected_reason.rpartition("_ALERT_")[2]
    )


def test_failed_openssl_verification_becomes_ssl_cert_verification_error() -> None:
    result = openssl._as_ssl_error(SSL.Error([("", "", "certificate verify failed")]), "certificate has expired")
    assert isinstance(result, ssl.SSLCertVerificationError)
    assert result.verify_message == "certificate has expired" and str(result) == "certificate has expired"
    assert reason(result) == "the server's certificate was not accepted: certificate has expired"


@with_cases
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "elsewhere", "127.0.0.2"])
@pytest.mark.parametrize("checks_host_name", [True, False])
def test_verification_accepts_only_valid_chain_with_matching_name(
    authority: Authority,
    openssl_result: int,
    depth: int,
    error_number: int,
    expected_refusal: str,
    name: str,
    checks_host_name: bool,
) -> None:
    peer = Peer(name, checks_host_name)
    certificate = crypto.X509.from_cryptography(authority.server().certificate)
    connection: Any = SimpleNamespace(get_app_data=lambda: peer)
    accepted = openssl._verify(connection, certificate, error_number, depth, openssl_result)
    if checks_host_name and openssl_result and depth == 0 and name in ("elsewhere", "127.0.0.2"):
        kind = "IP address" if name[0] == "1" else "Hostname"
        expected_refusal = f"{kind} mismatch, certificate is not valid for {name!r}"
    assert (peer.refusal, accepted) == (expected_refusal, not expected_refusal)
    assert peer.sent_certificate is bool(openssl_result and depth == 0)


@with_cases
def test_host_name_is_compared_with_names_of_certificate(name: str, matches: bool) -> None:
    issued = trustme.CA().issue_cert("*.example.test", "plain", "127.0.0.7")
    certificate = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    assert (openssl._name_mismatch(name, crypto.X509.from_cryptography(certificate)) == "") is matches


def test_tls_object_returns_session_and_chain_after_verification() -> None:
    tls_object, _, _, _ = tls_object_with_methods(get_session=lambda: None, get_verified_chain=lambda: None)
    assert tls_object.session is None and tls_object.verified_chain() == []
    tls_object.peer.sent_certificate, tls_object.peer.valid_until = True, 5.0
    assert tls_object.verified_chain() == []
    one, two = (SimpleNamespace(to_cryptography=lambda number=number: number) for number in (1, 2))
    tls_object, _, _, _ = tls_object_with_methods(get_session=lambda: "raw", get_verified_chain=lambda: [one, two])
    tls_object.peer.valid_until = 5.0
    assert tls_object.verified_chain() == []
    tls_object.peer.sent_certificate = True
    assert tls_object.verified_chain() == [1, 2]
    result = tls_object.session
    assert result is not None and (result.raw, result.valid_until, result.has_ticket) == ("raw", 5.0, True)
    assert not Session(None, None).has_ticket
    connection: Any = SimpleNamespace(get_app_data=lambda: tls_object.peer)
    assert openssl._keep_staple(connection, b"staple", None) is True and tls_object.peer.staple == b"staple"


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


@pytest.mark.parametrize(
    ("name", "server_names"),
    [("h.example", [b"h.example"]), ("10.0.0.1", []), ("::1", []), ("bücher.example", [b"xn--bcher-kva.example"])],
)
def test_sni_contains_only_host_name(monkeypatch: pytest.MonkeyPatch, name: str, server_names: list[bytes]) -> None:
    tls_object: Any = Mock()
    monkeypatch.setattr(openssl.SSL, "Connection", lambda context, _: tls_object)
    OpenSslContext(Trust(CIPHERS)).wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), name)
    assert [call.args[0] for call in tls_object.set_tlsext_host_name.call_args_list] == server_names
    assert tls_object.request_ocsp.called and tls_object.set_connect_state.called and not tls_object.set_session.called


def test_private_key_of_other_certificate_raises_configuration_error(authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "own.pem"
    CertificateWithKey(authority.certificate, Authority().key).write(path)
    with pytest.raises(ConfigurationError) as caught:
        OpenSslContext(Trust(CIPHERS, key_file=str(path)))
    assert str(caught.value).startswith(f"tlsCertificateKeyFile: pyOpenSSL cannot use {str(path)!r}: ")
    assert isinstance(caught.value.__cause__, SSL.Error)


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
    transport._engine = SimpleNamespace(write=method_that_raises(error))  # type: ignore[assignment]
    assert not transport.out_of_step and transport._host == "h"
    with pytest.raises(type(error)):
        transport.send([b"request"])
    assert transport.out_of_step
    transport.close()


def test_end_of_tls_stream_raises_connection_closed_error(socket_pair: Any) -> None:
    transport = TlsTransport(socket_pair[0], True, SimpleNamespace(), "h")  # type: ignore[arg-type]
    transport._engine = SimpleNamespace(read=lambda size, into: 0, pending=lambda: 1)  # type: ignore[assignment]
    with pytest.raises(TransportError, match=r"^connection closed by the server$"):
        transport.receive_some(5)
    transport.close()


@pytest.mark.parametrize("socket_is_open", [True, False])
def test_failed_handshake_raises_reason_even_if_alert_cannot_be_sent(socket_pair: Any, socket_is_open: bool) -> None:
    tls = Mock()
    transport = TlsTransport(socket_pair[0], True, tls, "h")

    def fail_handshake() -> None:
        transport._outgoing.write(b"alert")
        error = ssl.SSLError(1, "why")
        error.reason = "UNEXPECTED_EOF_WHILE_READING"
        raise error

    tls.fresh_context.return_value.wrap_bio.return_value = SimpleNamespace(do_handshake=fail_handshake)
    if not socket_is_open:
        socket_pair[1].close()
    with pytest.raises(TransportError, match=r"^TLS handshake failed: connection closed by the server \(UNEXP"):
        transport.shake_hands()
    assert not socket_is_open or socket_pair[1].recv(10) == b"alert"
    transport.close()


@pytest.mark.parametrize("method", ["round trip", "receive"])
def test_transport_reads_from_tls_object_only_after_bytes_arrived(socket_pair: Any, method: str) -> None:
    # A TLS object raises an exception if code reads before bytes have arrived. The exceptions would
    # slow each operation.
    transport = TlsTransport(socket_pair[0], True, SimpleNamespace(), "h")  # type: ignore[arg-type]
    pending: list[int] = []

    def read(size: int, into: memoryview | None = None) -> Any:
        pending.append(transport._incoming.pending)
        data = transport._incoming.read(size)
        if into is None:
            return data
        into[: len(data)] = data
        return len(data)

    transport._engine = SimpleNamespace(write=len, read=read, pending=lambda: 0)  # type: ignore[assignment]
    reply = message(bson.encode({"ok": 1}), 7)
    socket_pair[1].send(reply)
    body = transport.round_trip([b"request"], 7) if method == "round trip" else transport.receive(7)[3][5:]
    assert body is not None and bson.decode(body) == {"ok": 1}
    assert pending == [len(reply)]
    transport.close()


def test_host_name_invalid_for_tls_raises_transport_error(socket_pair: Any) -> None:
    class Context:
        def wrap_bio(self, *_: Any, **__: Any) -> None:
            raise ValueError("label too long")

    transport = Tls(Context()).transport(socket_pair[0], True, "h" * 70)  # type: ignore[arg-type]
    with pytest.raises(TransportError) as caught:
        transport.shake_hands()
    message = f"TLS handshake failed: {'h' * 70!r} cannot be in a certificate: label too long"
    assert str(caught.value) == f"{message} (perhaps the server does not use TLS)"
    transport.close()


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
        tls.forget_session.assert_called_once_with("h")
    else:
        transport.shake_hands()
        assert not tls.forget_session.called and tls.revocation.check.called is certificate_was_shown
        assert peer.valid_until == (7.0 if certificate_was_shown else valid_until)
    transport.close()


def test_tls_session_with_ticket_is_cached_for_host() -> None:
    tls = Tls(ssl.create_default_context())
    with_ticket, without = SimpleNamespace(has_ticket=True), SimpleNamespace(has_ticket=False)
    for session, expected in ((None, None), (without, None), (with_ticket, with_ticket), (without, with_ticket)):
        tls.store_session("h", session, tls.context)  # type: ignore[arg-type]
        assert tls.session("h") is expected and tls.session("other") is None
    for _ in range(2):
        tls.forget_session("h")
        assert tls.session("h") is None


def test_error_of_custom_dns_resolver_raises_transport_error(monkeypatch: pytest.MonkeyPatch) -> None:
    error = _socket.gaierror(-2, "unknown")
    monkeypatch.setattr(
        connecting, "get_hub", lambda: SimpleNamespace(resolver=Mock(getaddrinfo=method_that_raises(error)))
    )
    with pytest.raises(TransportError) as caught:
        connecting.connect(("no.example", 1), pytest.fail)
    assert caught.value.args == error.args and caught.value.__cause__ is error


def test_read_on_connection_without_socket_raises_auto_reconnect() -> None:
    connection = Connection(("h", 1))
    with pytest.raises(AutoReconnect, match=r"^h:1: connection is not open$"):
        connection.next_reply(None, bytes)
    connection = Connection(("h", 1))
    connection.interrupt(AutoReconnect("cleared"))
    with pytest.raises(AutoReconnect, match="cleared"):
        connection.next_reply(None, bytes)


@pytest.mark.parametrize("failing_method", ["use_certificate_chain_file", "check_privatekey"])
@pytest.mark.parametrize("error_class", [openssl.SSL.Error, TypeError, ValueError, openssl.UnsupportedAlgorithm])
def test_unusable_certificate_key_raises_configuration_error(
    error_class: Any, failing_method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Mock()
    getattr(context, failing_method).side_effect = error_class("no")
    monkeypatch.setattr(openssl, "_client_key", Mock())
    with pytest.raises(ConfigurationError, match=r"^tlsCertificateKeyFile: pyOpenSSL cannot use 'file': "):
        openssl._load_client_certificate(context, "file", None)


def test_failed_handshake_removes_cached_tls_session_of_host() -> None:
    ours, theirs = _socket.socketpair()
    tls: Any = Mock()
    tls.fresh_context.return_value.wrap_bio.side_effect = ValueError("no")
    transport = TlsTransport(ours, True, tls, "h.")
    with pytest.raises(TransportError, match=r"^TLS handshake failed: "):
        transport.shake_hands()
    tls.forget_session.assert_called_once_with("h")
    transport.close()
    theirs.close()


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
    created: list[Any] = []
    monkeypatch.setattr("gmongo.wire.ocsp.verifier.Verifier", lambda *arguments: created.append(arguments))
    assert tls_of({"tls": True, **tls_option}, connect_timeout) is not None
    assert created == [(requests_are_enabled, seconds)]


@with_cases
def test_error_text_explains_openssl_reason(name: str, text: str) -> None:
    error = ssl.SSLError(1, "x")
    error.reason = name
    assert reason(error) == text
