"""Clients check the revocation of server certificates with stapled OCSP responses, and with responses
from OCSP responders.
"""

from __future__ import annotations

import gc
import logging
import weakref

import gevent
import pytest

pytest.importorskip("OpenSSL")
pytest.importorskip("service_identity")

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from OpenSSL import crypto

import gmongo
from gmongo._tls import tls_of
from gmongo.cmap.connection import Connection
from gmongo.errors import AutoReconnect, InvalidOperation
from gmongo.wire.ocsp.fetch import ResponderQueries
from gmongo.wire.ocsp.messages import Request
from gmongo.wire.ocsp.verifier import Verifier
from gmongo.wire.openssl import _describe_name_mismatch
from gmongo.wire.transport import TransportError
from tests.support.cases import with_cases
from tests.support.ocsp import (
    DAY,
    GOOD,
    MINUTE,
    OCSP_SIGNING,
    REVOKED,
    Authority,
    CertificateWithKey,
    Responder,
    StaplingServer,
    http_response,
    now,
)
from tests.support.pools import checked_out
from tests.support.refused_connections import selection_error
from tests.support.streams import open_stream
from tests.support.wait import WAIT_LIMIT, eventually


@pytest.fixture(autouse=True)
def library():
    """Replace the fixture `library` of `conftest.py`, because OCSP needs pyOpenSSL."""


@pytest.fixture(scope="module")
def authorities():
    return {kind: Authority(kind) for kind in ("ecdsa", "rsa")}


@pytest.fixture
def authority(authorities):
    return authorities["ecdsa"]


@pytest.fixture
def responder():
    with Responder() as responder:
        yield responder


class OcspSetup:
    """A TLS server with a certificate, and clients that trust the certificate authority of the
    server.
    """

    def __init__(self, folder, authority, certified, staple=b"", chain=(), **options):
        self.ca = CertificateWithKey(authority.certificate, authority.key).write(folder / "ca.pem")
        self.certified = certified
        self.server = StaplingServer(certified.write(folder / "server.pem", *chain), staple, **options)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()

    def client(self, **options):
        defaults = {"tls": True, "tlsCAFile": self.ca}
        return gmongo.MongoClient("localhost", self.server.port, **{**defaults, **options})

    def accepts(self, **options):
        with self.client(**options) as client:
            return client.db.c.find_one({"_id": 1}) == {"_id": 1}

    def rejection(self, **options):
        return selection_error(lambda timeout_ms: self.client(**{"serverSelectionTimeoutMS": timeout_ms, **options}))


# Tests from the table of test cases in the OCSP specification

RELAXED_OPTIONS = [{"tlsInsecure": True}, {"tlsAllowInvalidCertificates": True}]


@pytest.mark.parametrize("by_delegate", [False, True], ids=["issuer", "delegate"])
@pytest.mark.parametrize("key_type", ["ecdsa", "rsa"])
@with_cases
def test_client_accepts_or_rejects_certificate_as_test_plan_states(
    tmp_path, authorities, responder, key_type, by_delegate, server_staples, has_must_staple, status, is_accepted
):
    authority = authorities[key_type]
    url = "http://127.0.0.1:9/" if status is None else responder.url
    certified = authority.issue_server(url, must_staple=has_must_staple)
    signer = authority.issue_delegate(OCSP_SIGNING, signs=True) if by_delegate else None
    if status is not None:
        responder.body = authority.respond(certified, status, signer=signer)
    with OcspSetup(tmp_path, authority, certified, responder.body if server_staples else b"") as setup:
        if is_accepted:
            assert setup.accepts()
        else:
            assert (
                "stapled OCSP response, but there is none" if has_must_staple and not server_staples else "revoked"
            ) in (setup.rejection())
        for options in RELAXED_OPTIONS:
            assert setup.accepts(**options)
        assert len(responder.requests) <= (0 if server_staples or has_must_staple or status is None else 5)


# Tests of stapled responses and of unusual certificates


def test_stapled_response_without_signer_certificate_is_rejected(tmp_path, authority):
    certified = authority.issue_server()
    delegate = authority.issue_delegate(OCSP_SIGNING)
    builder = ocsp.OCSPResponseBuilder().add_response(
        certified.certificate, authority.certificate, hashes.SHA1(), GOOD, now() - MINUTE, now() + DAY, None, None
    )
    builder = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, delegate.certificate)
    staple = builder.sign(delegate.key, hashes.SHA256()).public_bytes(Encoding.DER)
    with OcspSetup(tmp_path, authority, certified, staple) as setup:
        assert "not signed by the issuer" in setup.rejection()


@pytest.mark.parametrize(
    ("staple", "message"),
    [
        (b"junk", "cannot be read"),
        (b"\x30" * 70_000, "longer than"),
        (ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.TRY_LATER), "reports TRY_LATER"),
    ],
)
def test_malformed_stapled_response_raises_transport_error(authority, staple, message):
    data = staple if isinstance(staple, bytes) else staple.public_bytes(Encoding.DER)
    with pytest.raises(TransportError, match=f"stapled OCSP response was not accepted: .*{message}"):
        check_without_server(authority, authority.issue_server(), data)


def test_stapled_response_with_weak_signature_raises_transport_error(authority, monkeypatch):
    # Current libraries refuse to sign with weak hashes, so let the driver count a strong hash as
    # weak.
    monkeypatch.setattr("gmongo.wire.ocsp.messages._WEAK_HASHES", (hashes.SHA256,))
    certified = authority.issue_server()
    with pytest.raises(TransportError, match="signed with sha256, which is too weak"):
        check_without_server(authority, certified, authority.respond(certified))


def unparsed_extension(oid, value):
    """Return a certificate extension that `cryptography` does not parse, and False (not critical).

    :param value: the bytes of the extension as hexadecimal digits.
    """
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), bytes.fromhex(value)), False


HOST_HEX = "8209" + b"localhost".hex() + "87047f000001"
NAMES_EXTENSION = unparsed_extension("2.5.29.17", "3011" + HOST_HEX)


@pytest.mark.parametrize(
    "extensions",
    [
        pytest.param([NAMES_EXTENSION, unparsed_extension("2.5.29.32", "3003020105")], id="policies"),
        pytest.param([NAMES_EXTENSION, unparsed_extension("1.3.6.1.5.5.7.1.24", "3003020163")], id="TLS-feature"),
        pytest.param([NAMES_EXTENSION, unparsed_extension("1.3.6.1.4.1.11129.2.4.2", "0403616263")], id="timestamps"),
        pytest.param([unparsed_extension("2.5.29.17", "3015" + "a3023000" + HOST_HEX)], id="X.400"),
        pytest.param([unparsed_extension("2.5.29.17", "301c" + "8209" + b"*.*.a.org".hex() + HOST_HEX)], id="wildcard"),
    ],
)
def test_certificate_with_unusual_extension_is_accepted(tmp_path, authority, extensions, monkeypatch, caplog):
    certified = authority.issue("server", extensions)
    with OcspSetup(tmp_path, authority, certified) as setup:
        assert setup.accepts()
        assert not caplog.text or "OCSP: an extension of the server's certificate cannot be parsed" in caplog.text
        assert "cannot create a request" not in caplog.text
        monkeypatch.setattr(gmongo._tls, "_OCSP_PACKAGES", ("no_package_of_this_name",))
        assert setup.accepts()
    assert "Hostname mismatch" in _describe_name_mismatch("other", crypto.X509.from_cryptography(certified.certificate))


def check_without_server(authority, certified, staple):
    """Let the driver check a certificate with a stapled response. The check needs no server."""
    return Verifier(False, 1).check([certified.certificate, authority.certificate], staple, None)


# Tests of responders


def send_endless_response(sock, header=b""):
    sock.sendall(b"HTTP/1.1 200 OK\r\n" + header)
    while True:
        sock.sendall(b"x" * 65536)


def redirection_to(url, status="302 Found"):
    return lambda sock: sock.sendall(http_response(b"", status, f"Location: {url}"))


def send_no_response(sock):
    gevent.sleep(60)


def send_invalid_response(sock):
    sock.sendall(b"junk\r\n\r\n")


def send_status_500(sock):
    sock.sendall(http_response(b"", "500 Internal Server Error"))


LATE = "the OCSP responder at {url} does not answer within 0.5 seconds"
UNREADABLE = "the OCSP response cannot be read: "
TOO_LONG = "the OCSP response is longer than 65536 bytes"
QUERY_FAILED = "the query to the OCSP responder at {place} failed: "
HTTP_ONLY = "failed: only HTTP URLs with a host are supported"
# Fault of a responder -> function that sends the answer, and a part of the client's log message.
FAULTS = {
    "closes": (lambda sock: None, QUERY_FAILED),
    "is silent": (send_no_response, LATE),
    "is slow": (lambda sock: [(sock.sendall(each), gevent.sleep(0.05)) for each in [b"H", b"T"] * 1000], LATE),
    "has no body": (lambda sock: sock.sendall(http_response(b"")), UNREADABLE),
    "sends invalid bytes": (send_invalid_response, QUERY_FAILED),
    "sends half": (lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nhalf"), UNREADABLE),
    "has status 500": (send_status_500, "the OCSP responder at {place} answers with status 500"),
    "sends too much": (lambda sock: send_endless_response(sock, b"\r\n"), TOO_LONG),
    "sends headers without end": (send_endless_response, QUERY_FAILED),
    "sends chunks without end": (
        lambda sock: send_endless_response(sock, b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"),
        TOO_LONG,
    ),
    "continues without end": (
        lambda sock: [sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000) for _ in range(10**6)],
        QUERY_FAILED,
    ),
    "redirects in a circle": (redirection_to("/status"), "the OCSP responder redirects more than 3 times"),
    "redirects to nothing": (redirection_to("http://127.0.0.1:9/"), "at 127.0.0.1:9 failed: [Errno 111] Connection"),
    "redirects elsewhere": (redirection_to("https://127.0.0.1/"), f"responder at 127.0.0.1 {HTTP_ONLY}"),
    "redirects to a file": (redirection_to("file:///etc/passwd"), f"responder at  {HTTP_ONLY}"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_invalid_answer_of_responder_is_logged_and_client_connects(tmp_path, authority, caplog, monkeypatch, case):
    answer, text = FAULTS[case]
    caplog.set_level(logging.INFO, "gmongo.ocsp")
    # If the client read an endless answer until this timeout, the client would log the timeout, and
    # the test would fail.
    monkeypatch.setattr("gmongo._tls._MAX_OCSP_QUERY_TIME", 0.5 if text is LATE else 20)
    # The responder and the client share an event loop. A client that blocks the loop gets no answer.
    with Responder(answer) as responder:
        certified = authority.issue_server(responder.url)
        with OcspSetup(tmp_path, authority, certified) as setup:
            assert setup.accepts(connectTimeoutMS=40_000)
            assert len(responder.requests) == (4 if case == "redirects in a circle" else 1)
    [message] = caplog.messages
    assert text.format(place=responder.url.split("/")[2], url=responder.url) in message


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_ocsp_request_follows_redirection_of_responder(tmp_path, authority, responder, status):
    with Responder() as redirect_target:
        responder.answer = redirection_to(redirect_target.url, status)
        certified = authority.issue_server(responder.url)
        redirect_target.body = authority.respond(certified, REVOKED)
        with OcspSetup(tmp_path, authority, certified) as setup:
            assert "revoked" in setup.rejection()


def test_client_queries_responders_concurrently_and_uses_valid_response(tmp_path, authority, responder):
    with Responder(send_no_response) as silent_responder, Responder(send_invalid_response) as invalid_responder:
        certified = authority.issue_server(silent_responder.url, invalid_responder.url, responder.url)
        responder.body = authority.respond(certified, REVOKED)
        with OcspSetup(tmp_path, authority, certified) as setup:
            assert "revoked" in setup.rejection(connectTimeoutMS=20_000)
        eventually(lambda: silent_responder.requests and invalid_responder.requests)


# Tests of intermediate certificate authorities


@pytest.mark.parametrize("signer", ["issuer", "delegate of issuer", "root", "delegate of root"])
@pytest.mark.parametrize("server_staples", [True, False])
def test_only_response_of_direct_issuer_revokes_certificate(tmp_path, authority, responder, signer, server_staples):
    issuer = authority.issue_intermediate()
    certified = issuer.issue_server(responder.url)
    signers = {
        "issuer": None,
        "delegate of issuer": issuer.issue_delegate(OCSP_SIGNING),
        "root": authority.own,
        "delegate of root": authority.issue_delegate(OCSP_SIGNING),
    }
    responder.body = issuer.respond(certified, REVOKED, signer=signers[signer])
    staple = responder.body if server_staples else b""
    with OcspSetup(tmp_path, authority, certified, staple, chain=[issuer.own]) as setup:
        if "root" not in signer:
            assert "has been revoked" in setup.rejection()
        elif server_staples:
            assert "not accepted" in setup.rejection()
        else:
            assert setup.accepts()
        assert bool(responder.requests) != server_staples


# Tests of the options for revocation checks


def test_options_disable_ocsp_requests_or_all_revocation_checks(tmp_path, authority, responder):
    certified = authority.issue_server(responder.url)
    responder.body = authority.respond(certified, REVOKED)
    with OcspSetup(tmp_path, authority, certified) as setup:
        assert setup.accepts(tlsDisableOCSPEndpointCheck=True)
        assert not responder.requests
        setup.server.staple = responder.body
        assert "revoked" in setup.rejection(tlsDisableOCSPEndpointCheck=True)
        assert setup.accepts(tlsDisableCertificateRevocationCheck=True)
        assert not responder.requests


def test_revocation_list_replaces_requests_to_responders(tmp_path, authority, responder):
    certified = authority.issue_server(responder.url)
    responder.body = authority.respond(certified, REVOKED)
    revocation_lists = {each: authority.revocation_list(*each) for each in [(), (certified,)]}
    (tmp_path / "good.pem").write_bytes(revocation_lists[()])
    (tmp_path / "revoked.pem").write_bytes(revocation_lists[certified,])
    with OcspSetup(tmp_path, authority, certified) as setup:
        assert setup.accepts(tlsCRLFile=tmp_path / "good.pem")
        assert "certificate revoked" in setup.rejection(tlsCRLFile=tmp_path / "revoked.pem")
        assert not responder.requests
        setup.server.staple = responder.body
        assert "revoked, according to OCSP" in setup.rejection(tlsCRLFile=tmp_path / "good.pem")


# Tests of cached responses


def check_out_connections(client, count):
    """Check out `count` connections at the same time, so that the pool contains at least `count`
    connections.
    """
    pool = client._topology.pools()[0]
    if count:
        with checked_out(pool):
            check_out_connections(client, count - 1)


def test_response_of_responder_is_cached_for_new_connections(tmp_path, authority, responder):
    certified = authority.issue_server(responder.url)
    responder.body = authority.respond(certified)
    with OcspSetup(tmp_path, authority, certified) as setup, setup.client() as client:
        client.db.command("ping")
        check_out_connections(client, 5)
        assert setup.server.connection_count >= 5
    assert len(responder.requests) == 1


def test_ocsp_response_without_next_update_is_not_cached(tmp_path, authority, responder):
    certified = authority.issue_server(responder.url)
    responder.body = authority.respond(certified, next_update_offset=None)
    with OcspSetup(tmp_path, authority, certified) as setup, setup.client() as client:
        client.db.command("ping")
        request_count = len(responder.requests)
        responder.body = authority.respond(certified, REVOKED)
        with pytest.raises(AutoReconnect, match="revoked"):
            check_out_connections(client, 5)
    assert len(responder.requests) > request_count


def test_unknown_status_prevents_session_resumption_without_new_request(tmp_path, authority, responder):
    responder.answer = send_status_500
    certified = authority.issue_server(responder.url)
    with OcspSetup(tmp_path, authority, certified) as setup, setup.client() as client:
        client.db.command("ping")
        request_count = len(responder.requests)
        setup.server.staple = authority.respond(certified, REVOKED)
        with pytest.raises(AutoReconnect, match="revoked"):
            check_out_connections(client, 5)
    assert request_count == len(responder.requests) == 1


def test_stapled_response_is_cached_for_new_connections(tmp_path, authority, responder):
    certified = authority.issue_server(responder.url)
    with OcspSetup(tmp_path, authority, certified, authority.respond(certified)) as setup, setup.client() as client:
        client.db.command("ping")
        setup.server.staple = b""
        check_out_connections(client, 5)
    assert not responder.requests


def test_session_is_resumed_while_stapled_response_is_valid(tmp_path, authority):
    certified = authority.issue_server(must_staple=True)
    with OcspSetup(tmp_path, authority, certified, authority.respond(certified)) as setup, setup.client() as client:
        client.db.command("ping")
        handshake_count = setup.server.handshake_count
        setup.server.staple = b""
        check_out_connections(client, 5)
        assert setup.server.connection_count > handshake_count


# Tests of interruptions, forks and closed clients


def test_close_interrupts_operation_that_waits_for_responder(tmp_path, authority):
    with Responder(send_no_response) as responder:
        certified = authority.issue_server(responder.url)
        with OcspSetup(tmp_path, authority, certified) as setup:
            client = setup.client(connectTimeoutMS=4_000 * WAIT_LIMIT, connect=False)
            client._topology.settings.connection.tls.revocation._seconds = 4 * WAIT_LIMIT
            operation_greenlet = gevent.spawn(client.db.c.find_one)
            eventually(lambda: responder.requests)
            assert setup.server.peers
            client.close()
            eventually(operation_greenlet.ready)
            assert isinstance(operation_greenlet.exception, InvalidOperation)
            eventually(lambda: not setup.server.peers)


def test_ocsp_request_continues_after_one_waiting_greenlet_is_killed(tmp_path, authority, responder):
    gate = gevent.event.Event()
    certified = authority.issue_server(responder.url)
    responder.body = authority.respond(certified, REVOKED)
    responder.answer = lambda sock: gate.wait() and sock.sendall(http_response(responder.body))
    with OcspSetup(tmp_path, authority, certified) as setup:
        tls = tls_of({"tls": True, "tlscafile": setup.ca}, 10)
        greenlets = [gevent.spawn(open_stream, Connection(("localhost", setup.server.port)), tls) for _ in range(3)]
        eventually(lambda: responder.requests)
        greenlets.pop().kill()
        gate.set()
        gevent.joinall(greenlets)
        assert all("revoked" in str(each.exception) for each in greenlets)
        assert len(responder.requests) == 1


def test_forked_child_sends_own_ocsp_request(authority):
    with Responder(send_no_response) as responder:
        certified = authority.issue_server(responder.url)
        chain = [certified.certificate, authority.certificate]
        revocation = Verifier(True, 30)
        fetches = []
        for _ in range(2):
            revocation.check(chain, b"", fetches.append)
        eventually(lambda: responder.requests)
        assert fetches[0] is fetches[1]
        revocation.mark_forked()
        [transport] = fetches[0]._transports
        with pytest.raises(TransportError, match="parent"):
            transport.receive_some(1)
        transport.close()
        revocation.check(chain, b"", fetches.append)
        assert fetches[2] is not fetches[0]
        eventually(lambda: len(responder.requests) == 2)
        fetches[2]._transports[0].close()


def test_wait_for_ocsp_response_keeps_event_loop_alive_only_with_ref(authority):
    with Responder(send_no_response) as responder:
        certified = authority.issue_server(responder.url)
        fetch = ResponderQueries(Request(certified.certificate, authority.certificate), 30, None)
        eventually(lambda: responder.requests)
        [transport] = fetch._transports
        assert not transport._read_watcher.ref
        assert not transport._write_watcher.ref
        loop = gevent.get_hub().loop
        before = loop.activecnt
        for ref in (False, True):
            waiter = gevent.spawn(fetch.wait, ref)
            gevent.sleep(0)
            assert loop.activecnt - before == ref
            waiter.kill()
            assert loop.activecnt == before
        transport.close()


def test_closed_client_releases_verifier(tmp_path, authority, responder):
    certified = authority.issue_server(responder.url)
    responder.body = authority.respond(certified)
    with OcspSetup(tmp_path, authority, certified) as setup:
        client = setup.client()
        client.db.command("ping")
        reference = weakref.ref(client._topology.settings.connection.tls.revocation)
        client.close()
        del client
        eventually(lambda: gc.collect() >= 0 and reference() is None)
