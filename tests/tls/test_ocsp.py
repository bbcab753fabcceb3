"""OCSP: which certificates of servers are taken, by what is stapled to them and by what responders say."""

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
from OpenSSL import SSL, crypto

import gmongo
from gmongo._tls import tls_of
from gmongo.cmap.connection import Connection
from gmongo.errors import AutoReconnect, ConfigurationError, InvalidOperation
from gmongo.wire.ocsp.fetch import Fetch
from gmongo.wire.ocsp.request import Request
from gmongo.wire.ocsp.verifier import Verifier
from gmongo.wire.openssl import _wrong_name
from gmongo.wire.transport import TransportError
from tests.support.ocsp import (
    DAY,
    FOR_SERVERS,
    GOOD,
    MINUTE,
    OCSP_SIGNING,
    REVOKED,
    UNKNOWN,
    Authority,
    Certified,
    Responder,
    StaplingServer,
    http,
    now,
)
from tests.support.pools import checked_out
from tests.support.refusal import why_refused
from tests.support.streams import open_stream
from tests.support.wait import PATIENCE, eventually


@pytest.fixture(autouse=True)
def library():
    """pyOpenSSL encrypts in all of these."""


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


class Scene:
    """A server with a certificate, and clients that trust its authority."""

    def __init__(self, folder, authority, certified, staple=b"", chain=(), **options):
        self.ca = Certified(authority.certificate, authority.key).write(folder / "ca.pem")
        self.certified = certified
        self.server = StaplingServer(certified.write(folder / "server.pem", *chain), staple, **options)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()

    def client(self, **options):
        known = {"tls": True, "tlsCAFile": self.ca}
        return gmongo.MongoClient("localhost", self.server.port, **{**known, **options})

    def accepts(self, **options):
        with self.client(**options) as client:
            return client.db.c.find_one({"_id": 1}) == {"_id": 1}

    def refusal(self, **options):
        return why_refused(lambda patience: self.client(**{"serverSelectionTimeoutMS": patience, **options}))


# The table of the specification's test plan

STAPLED_GOOD, STAPLED_REVOKED, ASKED_GOOD, ASKED_REVOKED, SOFT_FAIL, MALICIOUS_1, MALICIOUS_2 = range(7)
RELAXED = [{"tlsInsecure": True}, {"tlsAllowInvalidCertificates": True}]


@pytest.mark.parametrize("by_delegate", [False, True], ids=["issuer", "delegate"])
@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
@pytest.mark.parametrize(
    ("staples", "must_staple", "status", "accepted"),
    [
        pytest.param(True, True, GOOD, True, id="1: valid, stapled"),
        pytest.param(True, True, REVOKED, False, id="2: revoked, stapled"),
        pytest.param(False, False, GOOD, True, id="3: valid, not stapled"),
        pytest.param(False, False, REVOKED, False, id="4: revoked, not stapled"),
        pytest.param(False, False, None, True, id="soft failure: no responder"),
        pytest.param(False, True, REVOKED, False, id="malicious 1: must staple, revoked"),
        pytest.param(False, True, None, False, id="malicious 2: must staple, no responder"),
    ],
)
def test_the_plan(tmp_path, authorities, responder, kind, by_delegate, staples, must_staple, status, accepted):
    authority = authorities[kind]
    url = "http://127.0.0.1:9/" if status is None else responder.url
    certified = authority.server(url, must_staple=must_staple)
    signer = authority.delegate(OCSP_SIGNING, signs=True) if by_delegate else None
    if status is not None:
        responder.body = authority.response(certified, status, signer=signer)
    with Scene(tmp_path, authority, certified, responder.body if staples else b"") as scene:
        if accepted:
            assert scene.accepts()
        else:
            assert ("stapled OCSP response, and there is none" if must_staple and not staples else "revoked") in (
                scene.refusal()
            )
        for relaxed in RELAXED:
            assert scene.accepts(**relaxed)
        assert len(responder.requests) <= (0 if staples or must_staple or status is None else 5)


# What is stapled

CASES = {
    "good": ({}, True),
    "good, by name": ({"by_name": True}, True),
    "good, by another hash": ({"identified_by": hashes.SHA256()}, True),
    "good, for this moment": ({"until": None}, True),
    "unknown": ({"status": UNKNOWN}, True),
    "revoked": ({"status": REVOKED}, "has been revoked"),
    "expired": ({"since": -DAY, "until": -MINUTE}, "has expired"),
    "of the future": ({"since": DAY, "until": 2 * DAY}, "not valid yet"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
def test_a_staple(tmp_path, authority, case, version):
    options, outcome = CASES[case]
    certified = authority.server()
    with Scene(tmp_path, authority, certified, authority.response(certified, **options), version=version) as scene:
        assert scene.accepts() if outcome is True else outcome in scene.refusal()


SIGNERS = {
    "a delegate": (lambda it: it.delegate(OCSP_SIGNING), None),
    "a delegate whose key signs": (lambda it: it.delegate(OCSP_SIGNING, signs=True), None),
    "one without the purpose": (lambda it: it.delegate(), "not for signing OCSP responses"),
    "one of another purpose": (lambda it: it.delegate(FOR_SERVERS), "not for signing OCSP responses"),
    "one whose key does not sign": (lambda it: it.delegate(OCSP_SIGNING, signs=False), "not for signing"),
    "one that has expired": (lambda it: it.delegate(OCSP_SIGNING, days=-1), "has expired"),
    "another authority's": (lambda _: Authority().delegate(OCSP_SIGNING), "no certificate of the issuer's"),
    "another authority": (lambda _: Authority(name="another").own, "no certificate of the issuer's"),
    "one of the authority's name": (lambda _: Authority().own, "signature of the OCSP response is wrong"),
    "one of its name, with another kind of key": (lambda _: Authority("rsa").own, "signature"),
    "the server itself": (None, "not for signing OCSP responses"),
}


def signer_of(case, authority, certified):
    make, refusal = SIGNERS[case]
    return certified if make is None else make(authority), refusal


@pytest.mark.parametrize("case", SIGNERS)
def test_signers_of_a_staple(tmp_path, authority, case):
    certified = authority.server()
    signer, refusal = signer_of(case, authority, certified)
    staple = authority.response(certified, signer=signer, by_name=True)
    with Scene(tmp_path, authority, certified, staple) as scene:
        assert scene.accepts() if refusal is None else refusal in scene.refusal()


def test_a_signer_that_is_not_shown(tmp_path, authority):
    certified = authority.server()
    delegate = authority.delegate(OCSP_SIGNING)
    builder = ocsp.OCSPResponseBuilder().add_response(
        certified.certificate, authority.certificate, hashes.SHA1(), GOOD, now() - MINUTE, now() + DAY, None, None
    )
    builder = builder.responder_id(ocsp.OCSPResponderEncoding.HASH, delegate.certificate)
    staple = builder.sign(delegate.key, hashes.SHA256()).public_bytes(Encoding.DER)
    with Scene(tmp_path, authority, certified, staple) as scene:
        assert "not signed by the issuer" in scene.refusal()


@pytest.mark.parametrize(
    ("staple", "words"),
    [
        (b"junk", "cannot be read"),
        (b"\x30" * 70_000, "longer than"),
        (ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.TRY_LATER), "says TRY_LATER"),
    ],
)
def test_a_staple_that_is_none(authority, staple, words):
    """Servers of the newest OpenSSL do not send such a thing, others may."""
    data = staple if isinstance(staple, bytes) else staple.public_bytes(Encoding.DER)
    with pytest.raises(TransportError, match=f"stapled OCSP response was not accepted: .*{words}"):
        check(authority, authority.server(), data)


def test_a_staple_of_another_certificate(authority):
    staple = authority.response(authority.server())
    with pytest.raises(TransportError, match="not about the server's certificate"):
        check(authority, authority.server(), staple)


def test_a_staple_of_the_same_number_by_another_authority(authority):
    """An authority numbers its certificates as it likes."""
    other, certified = Authority(name="other"), authority.server()
    staple = other.response(certified, signer=authority.own)
    with pytest.raises(TransportError, match="not about the server's certificate"):
        check(authority, certified, staple)


def test_a_signature_that_is_too_weak(authority, monkeypatch):
    """Libraries of today sign nothing by the hashes that are; so another one takes their place."""
    monkeypatch.setattr("gmongo.wire.ocsp.response._TOO_WEAK", (hashes.SHA256,))
    certified = authority.server()
    with pytest.raises(TransportError, match="signed with sha256, which is too weak"):
        check(authority, certified, authority.response(certified))


def unparsed(oid, value):
    """An extension whose value is given in hexadecimal digits."""
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), bytes.fromhex(value)), False


HOST = "8209" + b"localhost".hex() + "87047f000001"
NAMES = unparsed("2.5.29.17", "3011" + HOST)


@pytest.mark.parametrize(
    "extensions",
    {
        "policies": [NAMES, unparsed("2.5.29.32", "3003020105")],
        "TLS feature": [NAMES, unparsed("1.3.6.1.5.5.7.1.24", "3003020163")],
        "timestamps": [NAMES, unparsed("1.3.6.1.4.1.11129.2.4.2", "0403616263")],
        "an X.400 name": [unparsed("2.5.29.17", "3015" + "a3023000" + HOST)],
        "another wildcard": [unparsed("2.5.29.17", "301c" + "8209" + b"*.*.a.org".hex() + HOST)],
    }.values(),
    ids=["policies", "TLS-feature", "timestamps", "X.400", "wildcard"],
)
def test_certificate_with_an_odd_extension_is_accepted_as_without_the_extra(
    tmp_path, authority, extensions, monkeypatch, caplog
):
    certified = authority._certified("server", extensions)
    with Scene(tmp_path, authority, certified) as scene:
        scene.accepts()
        assert not caplog.text or "OCSP: an extension of the server's certificate cannot be parsed" in caplog.text
        monkeypatch.setattr(gmongo._tls, "_PACKAGES", ("no_package_of_this_name",))
        scene.accepts()
    assert "Hostname mismatch" in _wrong_name("other", crypto.X509.from_cryptography(certified.certificate))


def test_inquiry_ends_when_its_greenlets_are_killed_before_they_begin(authority):
    question = Request(authority.server("http://127.0.0.1:1").certificate, authority.certificate)
    before = {id(each) for each in greenlets()}
    inquiry = Fetch(question, 5, lambda *_: None)
    new = [each for each in greenlets() if id(each) not in before]
    gevent.killall(new, block=False)
    with gevent.Timeout(PATIENCE):
        inquiry.wait(True)
    assert new and inquiry.answer is None


def greenlets():
    return [each for each in gc.get_objects() if issubclass(type(each), gevent.Greenlet)]  # no dead weak proxy


def check(authority, certified, staple):
    """What comes of a certificate and a staple, without a server."""
    return Verifier(False, 1).check([certified.certificate, authority.certificate], staple, None)


# What responders say


@pytest.mark.parametrize("case", CASES)
def test_a_responder_says(tmp_path, authority, responder, case):
    """It is believed as a staple is; if it cannot be, the connection goes on."""
    options, outcome = CASES[case]
    certified = authority.server(responder.url)
    responder.body = authority.response(certified, **options)
    with Scene(tmp_path, authority, certified) as scene:
        if case == "revoked":
            assert outcome in scene.refusal()
        else:
            assert scene.accepts()
        assert responder.requests


@pytest.mark.parametrize("case", SIGNERS)
def test_signers_of_a_responder(tmp_path, authority, responder, case):
    """A revocation counts if its signer may sign it; one that may not changes nothing."""
    certified = authority.server(responder.url)
    signer, refusal = signer_of(case, authority, certified)
    responder.body = authority.response(certified, REVOKED, signer=signer, by_name=True)
    with Scene(tmp_path, authority, certified) as scene:
        assert "revoked" in scene.refusal() if refusal is None else scene.accepts()


def test_a_responder_is_asked_about_the_certificate(tmp_path, authority, responder):
    certified = authority.server(responder.url)
    responder.body = authority.response(certified)
    with Scene(tmp_path, authority, certified) as scene:
        assert scene.accepts()
    [request] = map(ocsp.load_der_ocsp_request, responder.requests)
    assert request.serial_number == certified.certificate.serial_number


def flood(sock, head=b""):
    sock.sendall(b"HTTP/1.1 200 OK\r\n" + head)
    while True:
        sock.sendall(b"x" * 65536)


def redirect(where, status="302 Found"):
    return lambda sock: sock.sendall(http(b"", status, f"Location: {where}"))


WRONG = {
    "closes": lambda sock: None,
    "is silent": lambda sock: gevent.sleep(60),
    "is slow": lambda sock: [(sock.sendall(each), gevent.sleep(0.05)) for each in [b"H", b"T"] * 1000],
    "has no body": lambda sock: sock.sendall(http(b"")),
    "sends junk": lambda sock: sock.sendall(b"junk\r\n\r\n"),
    "sends half": lambda sock: sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nhalf"),
    "says that it fails": lambda sock: sock.sendall(http(b"", "500 Internal Server Error")),
    "sends too much": lambda sock: flood(sock, b"\r\n"),
    "sends headers without end": flood,
    "sends chunks without end": lambda sock: flood(sock, b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"),
    "continues without end": lambda sock: [sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000) for _ in range(10**6)],
    "redirects in a circle": redirect("/status"),
    "redirects to nothing": redirect("http://127.0.0.1:9/"),
    "redirects elsewhere": redirect("https://127.0.0.1/"),
    "redirects to a file": redirect("file:///etc/passwd"),
}


CANNOT_BE_ASKED = "the OCSP responder at {place} cannot be asked: "
SAID = {
    "closes": CANNOT_BE_ASKED,
    "is silent": "the OCSP responder at {url} does not answer within 0.5 seconds",
    "is slow": "the OCSP responder at {url} does not answer within 0.5 seconds",
    "has no body": "the OCSP response cannot be read: ",
    "sends junk": CANNOT_BE_ASKED,
    "sends half": "the OCSP response cannot be read: ",
    "says that it fails": "the OCSP responder at {place} answers with status 500",
    "sends too much": "the OCSP response is longer than 65536 bytes",
    "sends headers without end": CANNOT_BE_ASKED,
    "sends chunks without end": "the OCSP response is longer than 65536 bytes",
    "continues without end": CANNOT_BE_ASKED,
    "redirects in a circle": "the OCSP responder redirects more than 3 times",
    "redirects to nothing": "the OCSP responder at 127.0.0.1:9 cannot be asked: [Errno 111] Connection refused",
    "redirects elsewhere": "the OCSP responder at 127.0.0.1 cannot be asked: it is not asked over HTTP",
    "redirects to a file": "the OCSP responder at  cannot be asked: it is not asked over HTTP",
}


@pytest.mark.parametrize("case", WRONG)
def test_a_responder_that(tmp_path, authority, caplog, monkeypatch, case):
    """Whatever it does: the connection goes on, and a message is left.

    The responder runs in this hub: it could answer nothing if what asks it held the loop meanwhile.
    """
    caplog.set_level(logging.INFO, "gmongo.ocsp")
    late = case in ("is silent", "is slow")  # which alone are ended by time
    monkeypatch.setattr("gmongo._tls._LONGEST_INQUIRY", 0.5 if late else 20)
    with Responder(WRONG[case]) as responder:
        certified = authority.server(responder.url)
        with Scene(tmp_path, authority, certified) as scene:
            assert scene.accepts(connectTimeoutMS=40_000)
            assert len(responder.requests) == (4 if case == "redirects in a circle" else 1)
    [said] = caplog.messages
    place = responder.url.split("/")[2]
    assert SAID[case].format(place=place, url=responder.url) in said


@pytest.mark.parametrize("case", [each for each in WRONG if "without end" in each or each == "sends too much"])
def test_what_has_no_end_is_left_before_the_time_is_over(authority, case):
    """Else a responder that is fast enough would hold the loop."""
    with Responder(WRONG[case]) as responder:
        certified = authority.server(responder.url)
        inquiry = Fetch(Request(certified.certificate, authority.certificate), 1000, None)
        with gevent.Timeout(PATIENCE):
            inquiry.wait(True)
        assert inquiry.answer is None


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_redirection_is_followed(tmp_path, authority, responder, status):
    with Responder() as other:
        responder.answer = redirect(other.url, status)
        certified = authority.server(responder.url)
        other.body = authority.response(certified, REVOKED)
        with Scene(tmp_path, authority, certified) as scene:
            assert "revoked" in scene.refusal()


def test_all_responders_are_asked_at_once(tmp_path, authority, responder):
    """The one that knows it is believed, whatever the others do."""
    with Responder(WRONG["is silent"]) as silent, Responder(WRONG["sends junk"]) as junk:
        certified = authority.server(silent.url, junk.url, responder.url)
        responder.body = authority.response(certified, REVOKED)
        with Scene(tmp_path, authority, certified) as scene:
            assert "revoked" in scene.refusal(connectTimeoutMS=20_000)
        eventually(lambda: silent.requests and junk.requests)


@pytest.mark.parametrize("url", ["https://127.0.0.1:9/", "ldap://127.0.0.1/", "http://", "http://127.0.0.1:70000/"])
def test_a_url_that_cannot_be_asked(tmp_path, authority, url):
    with Scene(tmp_path, authority, authority.server(url)) as scene:
        assert scene.accepts()


# Authorities that others have certified


@pytest.mark.parametrize("signer", ["the issuer", "its delegate", "the root", "a delegate of the root"])
@pytest.mark.parametrize("staples", [True, False])
def test_the_issuer_answers_and_not_the_root(tmp_path, authority, responder, signer, staples):
    """What the root says counts for its own certificates only."""
    issuer = authority.subordinate()
    certified = issuer.server(responder.url)
    signers = {
        "the issuer": None,
        "its delegate": issuer.delegate(OCSP_SIGNING),
        "the root": authority.own,
        "a delegate of the root": authority.delegate(OCSP_SIGNING),
    }
    responder.body = issuer.response(certified, REVOKED, signer=signers[signer])
    staple = responder.body if staples else b""
    with Scene(tmp_path, authority, certified, staple, chain=[issuer.own]) as scene:
        if "root" not in signer:
            assert "has been revoked" in scene.refusal()
        elif staples:
            assert "not accepted" in scene.refusal()
        else:
            assert scene.accepts()
        assert bool(responder.requests) != staples


def test_intermediate_certificates_are_not_asked_about(tmp_path, authority, responder):
    issuer = authority.subordinate()
    certified = issuer.server()
    with Scene(tmp_path, authority, certified, chain=[issuer.own]) as scene:
        assert scene.accepts()
    assert not responder.requests


# Options


def test_the_endpoint_is_not_asked(tmp_path, authority, responder):
    certified = authority.server(responder.url)
    responder.body = authority.response(certified, REVOKED)
    with Scene(tmp_path, authority, certified) as scene:
        assert scene.accepts(tlsDisableOCSPEndpointCheck=True)
        assert not responder.requests
        scene.server.staple = responder.body
        assert "revoked" in scene.refusal(tlsDisableOCSPEndpointCheck=True)
        assert scene.accepts(tlsDisableCertificateRevocationCheck=True)
        assert not responder.requests


def test_conflicting_options():
    for first in ("tlsInsecure", "tlsAllowInvalidCertificates", "tlsDisableCertificateRevocationCheck"):
        with pytest.raises(ConfigurationError, match="cannot be given together"):
            gmongo.MongoClient("h", connect=False, tls=True, **{first: True, "tlsDisableOCSPEndpointCheck": True})


def test_a_list_of_revocations_decides(tmp_path, authority, responder):
    certified = authority.server(responder.url)
    responder.body = authority.response(certified, REVOKED)
    lists = {each: authority.revocations(*each) for each in [(), (certified,)]}
    (tmp_path / "good.pem").write_bytes(lists[()])
    (tmp_path / "revoked.pem").write_bytes(lists[certified,])
    with Scene(tmp_path, authority, certified) as scene:
        assert scene.accepts(tlsCRLFile=tmp_path / "good.pem")
        assert "certificate revoked" in scene.refusal(tlsCRLFile=tmp_path / "revoked.pem")
        assert not responder.requests
        scene.server.staple = responder.body
        assert "revoked, by OCSP" in scene.refusal(tlsCRLFile=tmp_path / "good.pem")


def test_keys_with_and_without_a_password(tmp_path, authority):
    """A password for a key that needs none is not used, as the standard library has it."""
    with Scene(tmp_path, authority, authority.server()) as scene:
        own = authority.server().write(tmp_path / "own.pem")
        assert scene.accepts(tlsCertificateKeyFile=own, tlsCertificateKeyFilePassword="not needed")


# What is remembered


def connections(client, count):
    """Check out so many new connections at a time, after the first."""
    pool = client._topology.pools()[0]
    if count:
        with checked_out(pool):
            connections(client, count - 1)


def test_an_answer_is_remembered(tmp_path, authority, responder):
    certified = authority.server(responder.url)
    responder.body = authority.response(certified)
    with Scene(tmp_path, authority, certified) as scene, scene.client() as client:
        client.db.command("ping")
        connections(client, 5)
        assert scene.server.connection_count >= 5
    assert len(responder.requests) == 1


def test_no_connection_asks_what_another_has_learned(authority, responder):
    certified = authority.server(responder.url)
    responder.body = authority.response(certified)
    revocation = Verifier(True, 5)
    for _ in range(3):
        revocation.check([certified.certificate, authority.certificate], b"", lambda inquiry: inquiry.wait(True))
    assert len(responder.requests) == 1


def test_an_answer_for_the_moment_is_not_remembered(tmp_path, authority, responder):
    certified = authority.server(responder.url)
    responder.body = authority.response(certified, until=None)
    with Scene(tmp_path, authority, certified) as scene, scene.client() as client:
        client.db.command("ping")
        asked = len(responder.requests)
        responder.body = authority.response(certified, REVOKED)
        with pytest.raises(AutoReconnect, match="revoked"):
            connections(client, 5)
    assert len(responder.requests) > asked


def test_a_certificate_of_which_nothing_is_known_is_shown_again(tmp_path, authority, responder):
    """No earlier session of TLS is taken up, in which it would not be seen; nor are the responders asked each time."""
    responder.answer = WRONG["says that it fails"]
    certified = authority.server(responder.url)
    with Scene(tmp_path, authority, certified) as scene, scene.client() as client:
        client.db.command("ping")
        asked = len(responder.requests)
        scene.server.staple = authority.response(certified, REVOKED)
        with pytest.raises(AutoReconnect, match="revoked"):
            connections(client, 5)
    assert asked == len(responder.requests) == 1


def test_what_is_stapled_is_remembered(tmp_path, authority, responder):
    certified = authority.server(responder.url)
    with Scene(tmp_path, authority, certified, authority.response(certified)) as scene, scene.client() as client:
        client.db.command("ping")
        scene.server.staple = b""
        connections(client, 5)
    assert not responder.requests


def test_sessions_are_used_while_the_answer_holds(tmp_path, authority):
    certified = authority.server(must_staple=True)
    with Scene(tmp_path, authority, certified, authority.response(certified)) as scene, scene.client() as client:
        client.db.command("ping")
        shown = scene.server.handshakes
        scene.server.staple = b""
        connections(client, 5)
        assert scene.server.connection_count > shown


# Being interrupted


def test_a_client_is_closed_while_a_responder_is_silent(tmp_path, authority):
    with Responder(WRONG["is silent"]) as responder:
        certified = authority.server(responder.url)
        with Scene(tmp_path, authority, certified) as scene:
            client = scene.client(connectTimeoutMS=4_000 * PATIENCE, connect=False)
            client._topology.settings.connection.tls.revocation._seconds = 4 * PATIENCE
            finding = gevent.spawn(client.db.c.find_one)
            eventually(lambda: responder.requests)
            assert scene.server.peers
            client.close()
            eventually(finding.ready)
            assert isinstance(finding.exception, InvalidOperation)
            eventually(lambda: not scene.server.peers)


def test_a_connection_is_interrupted_while_a_responder_is_silent(tmp_path, authority):
    with Responder(WRONG["is silent"]) as responder:
        certified = authority.server(responder.url)
        with Scene(tmp_path, authority, certified) as scene:
            tls = tls_of({"tls": True, "tlscafile": scene.ca}, 10)
            tls.revocation._seconds = 60
            connection = Connection(("localhost", scene.server.port))
            connecting = gevent.spawn(open_stream, connection, tls)
            eventually(lambda: responder.requests)
            connection.interrupt(AutoReconnect("enough"))
            eventually(connecting.ready)
            assert str(connecting.exception) == "enough"


def test_an_inquiry_goes_on_without_what_waits(tmp_path, authority, responder):
    gate = gevent.event.Event()
    certified = authority.server(responder.url)
    responder.body = authority.response(certified, REVOKED)
    responder.answer = lambda sock: gate.wait() and sock.sendall(http(responder.body))
    with Scene(tmp_path, authority, certified) as scene:
        tls = tls_of({"tls": True, "tlscafile": scene.ca}, 10)
        waiting = [gevent.spawn(open_stream, Connection(("localhost", scene.server.port)), tls) for _ in range(3)]
        while not responder.requests:
            gevent.sleep(0.01)
        waiting.pop().kill()
        gate.set()
        gevent.joinall(waiting)
        assert all("revoked" in str(each.exception) for each in waiting)
        assert len(responder.requests) == 1


def test_a_child_asks_by_itself(authority):
    """It must not read what the parent waits for."""
    with Responder(WRONG["is silent"]) as responder:
        certified = authority.server(responder.url)
        chain = [certified.certificate, authority.certificate]
        revocation = Verifier(True, 30)
        inquiries = []
        for _ in range(2):
            revocation.check(chain, b"", inquiries.append)
        eventually(lambda: responder.requests)
        assert inquiries[0] is inquiries[1]
        revocation.mark_forked()
        [transport] = inquiries[0]._transports
        with pytest.raises(TransportError, match="parent"):
            transport.receive_some(1)
        transport.close()
        revocation.check(chain, b"", inquiries.append)
        assert inquiries[2] is not inquiries[0]
        eventually(lambda: len(responder.requests) == 2)
        inquiries[2]._transports[0].close()


def test_what_waits_for_a_responder_holds_the_hub_if_its_connection_does(authority):
    """The sockets of responders never do."""
    with Responder(WRONG["is silent"]) as responder:
        certified = authority.server(responder.url)
        inquiry = Fetch(Request(certified.certificate, authority.certificate), 30, None)
        eventually(lambda: responder.requests)
        [transport] = inquiry._transports
        assert not transport._readable.ref
        assert not transport._writable.ref
        loop = gevent.get_hub().loop
        before = loop.activecnt
        for ref in (False, True):
            waiting = gevent.spawn(inquiry.wait, ref)
            gevent.sleep(0)
            assert loop.activecnt - before == ref
            waiting.kill()
        transport.close()


def test_nothing_keeps_what_is_known(tmp_path, authority, responder):
    certified = authority.server(responder.url)
    responder.body = authority.response(certified)
    with Scene(tmp_path, authority, certified) as scene:
        client = scene.client()
        client.db.command("ping")
        reference = weakref.ref(client._topology.settings.connection.tls.revocation)
        client.close()
        del client
        eventually(lambda: gc.collect() >= 0 and reference() is None)
