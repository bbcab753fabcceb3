"""Clients and servers over TLS: what is accepted, what is refused, and whether the reason is told."""

from __future__ import annotations

import gc
import os
import ssl
from pathlib import Path

import gevent
import gevent.socket
import pytest
from gevent.server import StreamServer

import gmongo
from gmongo._tls import tls_of
from gmongo.errors import AutoReconnect, ConfigurationError
from tests.support.middlemen import Middleman
from tests.support.pools import checked_out
from tests.support.refusal import why_refused
from tests.support.server import cursor_reply
from tests.support.streams import open_stream
from tests.support.tls import PASSWORD, TlsServer, server_context
from tests.support.wait import eventually


def client_of(server, host="localhost", **options):
    options = {"tls": True, **options}
    return gmongo.MongoClient(host, server.port, **options)


def find(client):
    return client.db.c.find_one({"_id": 1})


def refusal(server, host="localhost", **options):
    """Why a client cannot connect."""
    return why_refused(lambda patience: client_of(server, host, **{"serverSelectionTimeoutMS": patience, **options}))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_good_certificate(server, files, host):
    with client_of(server, host, tlsCAFile=files.ca) as client:
        assert find(client) == {"_id": 1}


def test_any_tls_option_turns_it_on(server, files):
    with client_of(server, tlsCAFile=files.ca, tls=True) as client:
        find(client)
    uri = f"mongodb://localhost:{server.port}/?tlsCAFile={files.ca}"
    with gmongo.MongoClient(uri) as client:
        assert find(client) == {"_id": 1}


def test_a_request_that_does_not_fit_the_buffers_arrives_whole(server, files, go):
    """While the server does not read, the socket takes a part of what TLS has made of the request, and then nothing."""
    server.replies["insert"] = {"ok": 1, "n": 1}
    with client_of(server, tlsCAFile=files.ca) as client:
        client.db.command("ping")
        server.reading.clear()
        document = {"_id": 1, "b": os.urandom(12_000_000)}
        inserting = go(client.db.c.insert_one, document)
        gevent.sleep(0.05)
        assert not inserting.ready()
        server.reading.set()
        assert inserting.get(timeout=20).inserted_id == 1
    assert server.commands("insert")[-1]["documents"] == [document]


def test_large_messages(server, files):
    documents = [{"_id": number, "text": "x" * 1000} for number in range(3000)]
    server.replies["find"] = cursor_reply(documents)
    with client_of(server, tlsCAFile=files.ca) as client:
        assert list(client.db.c.find()) == documents
        client.db.c.insert_many(documents)
    assert server.commands("insert")[0]["documents"] == documents


def test_many_greenlets(server, files):
    with client_of(server, tlsCAFile=files.ca, maxConnecting=5) as client:
        jobs = [gevent.spawn(client.db.c.find_one, {"_id": number}) for number in range(50)]
        gevent.joinall(jobs, raise_error=True)
        assert [job.value["_id"] for job in jobs] == list(range(50))


# Refusals of the client's


def test_an_unknown_authority(server, files):
    reason = refusal(server, tlsCAFile=files.other_ca)
    assert f"localhost:{server.port}: TLS handshake failed: the server's certificate was not accepted" in reason
    assert "unable to get local issuer certificate" in reason


def test_an_unknown_authority_by_default(server):
    assert "certificate was not accepted" in refusal(server)


def test_an_expired_certificate(files):
    with TlsServer(server_context(files.expired)) as server:
        assert "certificate has expired" in refusal(server, tlsCAFile=files.ca)


def test_a_host_of_one_label_beside_a_wildcard(files):
    """A wildcard stands for a label of several, and the name itself is not a matter of case."""
    with TlsServer(server_context(files.wildcard)) as server, client_of(server, tlsCAFile=files.ca) as client:
        find(client)
        assert "IP address mismatch" in refusal(server, "127.0.0.1", tlsCAFile=files.ca)


def test_the_certificate_of_another_host(files):
    with TlsServer(server_context(files.elsewhere)) as server:
        reason = refusal(server, tlsCAFile=files.ca)
        assert "Hostname mismatch, certificate is not valid for 'localhost'" in reason
        assert "IP address mismatch" in refusal(server, "127.0.0.1", tlsCAFile=files.ca)


@pytest.mark.parametrize(
    ("certificate", "option", "accepted"),
    [
        ("elsewhere", "tlsAllowInvalidHostnames", True),
        ("elsewhere", "tlsAllowInvalidCertificates", True),
        ("elsewhere", "tlsInsecure", True),
        ("expired", "tlsAllowInvalidHostnames", False),
        ("expired", "tlsAllowInvalidCertificates", True),
        ("expired", "tlsInsecure", True),
    ],
)
def test_what_may_be_overlooked(files, certificate, option, accepted):
    with TlsServer(server_context(getattr(files, certificate))) as server:
        options = {option: True, "tlsCAFile": files.ca}
        if accepted:
            with client_of(server, **options) as client:
                assert find(client) == {"_id": 1}
        else:
            assert "expired" in refusal(server, **options)


def test_a_revoked_certificate(server, files):
    with client_of(server, tlsCAFile=files.ca, tlsCRLFile=files.crl) as client:
        find(client)
    revoked = {"tlsCAFile": files.ca, "tlsCRLFile": files.crl_with_server}
    assert "certificate revoked" in refusal(server, **revoked)
    with client_of(server, **revoked, tlsDisableCertificateRevocationCheck=True) as client:
        find(client)


def test_a_server_without_tls(files):
    """It takes the beginning of TLS for the length of a message, and closes the connection."""
    server = StreamServer(("127.0.0.1", 0), lambda sock, _address: (sock.recv(16), sock.close()))
    server.start()
    server.port = server.server_port
    try:
        assert (
            "TLS handshake failed: connection" in (reason := refusal(server, tlsCAFile=files.ca)) or "reset" in reason
        )
        assert "(perhaps the server does not use TLS)" in reason
    finally:
        server.stop()


def test_a_server_that_speaks_something_else(files):
    server = StreamServer(("127.0.0.1", 0), lambda sock, _address: sock.sendall(b"HTTP/1.1 400 Bad\r\n" * 20))
    server.start()
    server.port = server.server_port
    try:
        assert "the server does not speak TLS" in refusal(server, tlsCAFile=files.ca)
    finally:
        server.stop()


def test_a_client_without_tls(server):
    reason = refusal(server, tls=False)
    assert "closed" in reason or "reset" in reason


# Refusals of the server's


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate(files, version):
    context = server_context(files.server, client_ca=files.ca)
    context.minimum_version = context.maximum_version = version
    with TlsServer(context) as server:
        with client_of(server, tlsCAFile=files.ca, tlsCertificateKeyFile=files.client) as client:
            find(client)
        with client_of(
            server,
            tlsCAFile=files.ca,
            tlsCertificateKeyFile=files.locked_client,
            tlsCertificateKeyFilePassword=PASSWORD,
        ) as client:
            find(client)
        reason = refusal(server, tlsCAFile=files.ca)
        assert "client certificate" in reason, reason
        reason = refusal(server, tlsCAFile=files.ca, tlsCertificateKeyFile=files.strange_client)
        assert "client certificate" in reason, reason


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("option", "wrong", "right"),
    [
        ("tlsCertificateKeyFile", "strange_client", "client"),
        ("tlsCAFile", "other_ca", "ca"),
        ("tlsCRLFile", "crl_with_server", "crl"),
    ],
)
def test_certificate_files_that_change_are_read_again(files, tmp_path, caplog, version, option, wrong, right):
    def write(name):
        path.write_bytes(Path(getattr(files, name)).read_bytes())

    def connect_anew():
        with checked_out(client._topology.pools()[0]):
            find(client)

    path = tmp_path / "changes.pem"
    context = server_context(files.server, client_ca=files.ca)
    context.minimum_version = context.maximum_version = version
    write(wrong)
    options = {"tlsCAFile": files.ca, "tlsCertificateKeyFile": files.client, option: str(path)}
    with TlsServer(context) as server, client_of(server, heartbeatFrequencyMS=500, **options) as client:
        with pytest.raises(AutoReconnect), gmongo.timeout(0.7):
            find(client)
        write(right)
        find(client)
        connect_anew()
        write("junk")
        with checked_out(client._topology.pools()[0]):
            connect_anew()
        assert f"the old content stays in use: {option}: '{path}' must be a PEM file" in caplog.text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_old_server(files):
    context = server_context(files.server)
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.minimum_version = ssl.TLSVersion.TLSv1
    with TlsServer(context) as server:
        assert "TLS handshake failed" in refusal(server, tlsCAFile=files.ca)


def test_a_server_whose_ciphers_are_too_weak(files):
    """They are those of the standard library on either transport."""
    context = server_context(files.server)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    taken = {each["name"] for each in ssl.create_default_context().get_ciphers()}
    context.set_ciphers("DEFAULT")
    refused = [each["name"] for each in context.get_ciphers() if each["name"] not in taken]
    weak = next((name for name in refused if name.startswith("ECDHE-ECDSA")), None)
    if weak is None:
        pytest.skip("this Python takes all ciphers that OpenSSL takes, as those of Debian do")
    context.set_ciphers(weak)
    with TlsServer(context) as server:
        assert "TLS handshake failed" in refusal(server, tlsCAFile=files.ca)
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with TlsServer(context) as server, client_of(server, tlsCAFile=files.ca) as client:
        find(client)


# Names and sessions


def test_the_server_is_told_which_name_is_meant(server, files):
    names = []
    server.context.sni_callback = lambda _socket, name, _context: names.append(name)
    with client_of(server, tlsCAFile=files.ca) as client:
        find(client)
    with client_of(server, "127.0.0.1", tlsCAFile=files.ca) as client:
        find(client)
    assert set(names) == {"localhost", None}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_used_again(server, files, version):
    server.context.maximum_version = version
    with client_of(server, tlsCAFile=files.ca) as client:
        find(client)
        pool = client._topology.pools()[0]
        with checked_out(pool), checked_out(pool):
            pass
    assert server.resumed[0] is False
    assert server.resumed[-1] is True


# Files


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tlsCAFile": "missing"}, "tlsCAFile: cannot read '.*missing.pem': No such file"),
        ({"tlsCAFile": "junk"}, "tlsCAFile: '.*junk.pem' must be a PEM file with certificates"),
        ({"tlsCRLFile": "missing"}, "tlsCRLFile: cannot read"),
        ({"tlsCRLFile": "junk"}, "tlsCRLFile: .* must be a PEM file with a certificate revocation list"),
        ({"tlsCertificateKeyFile": "missing"}, "tlsCertificateKeyFile: cannot read"),
        ({"tlsCertificateKeyFile": "junk"}, "tlsCertificateKeyFile: .* certificate and its private key"),
        ({"tlsCertificateKeyFile": "only_certificate"}, "tlsCertificateKeyFile: .* certificate and its private key"),
        ({"tlsCertificateKeyFile": "locked_client"}, "needs tlsCertificateKeyFilePassword"),
    ],
)
def test_files_that_cannot_be_used(files, options, words):
    options = {name: getattr(files, file) for name, file in options.items()}
    with pytest.raises(ConfigurationError, match=words):
        gmongo.MongoClient("localhost", connect=False, **options)


def test_a_wrong_password_of_the_key(files):
    with pytest.raises(ConfigurationError, match="tlsCertificateKeyFilePassword does not open the key") as caught:
        gmongo.MongoClient(
            "localhost",
            connect=False,
            tlsCertificateKeyFile=files.locked_client,
            tlsCertificateKeyFilePassword="a wrong secret",
        )
    assert "secret" not in str(caught.value)


def test_files_are_read_once(server, files, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_bytes(Path(files.ca).read_bytes())
    with client_of(server, tlsCAFile=path) as client:
        path.unlink()
        assert find(client) == {"_id": 1}


def test_options_of_ocsp_are_accepted(server, files):
    with client_of(server, tlsCAFile=files.ca, tlsDisableOCSPEndpointCheck=True) as client:
        assert find(client) == {"_id": 1}


# Being interrupted


@pytest.fixture
def stuck():
    """A server that accepts and says nothing."""
    server = StreamServer(("127.0.0.1", 0), lambda _sock, _address: gevent.sleep(60))
    server.start()
    server.port = server.server_port
    yield server
    server.stop(timeout=0)


def test_a_handshake_that_does_not_end(stuck, files):
    assert "timed out" in refusal(stuck, tlsCAFile=files.ca, connectTimeoutMS=100, serverSelectionTimeoutMS=500)


def test_a_handshake_that_is_killed(stuck, files):
    from gmongo.cmap.connection import Connection
    from gmongo.wire.tls import TlsTransport

    tls = tls_of({"tls": True, "tlscafile": files.ca}, 10)
    connection = Connection(("127.0.0.1", stuck.port))
    attempt = gevent.spawn(open_stream, connection, tls)
    eventually(lambda: isinstance(connection._transport, TlsTransport) and connection._transport._waiting)
    gevent.sleep(0.01)
    attempt.kill()
    assert connection._transport.closed
    connection = Connection(("127.0.0.1", stuck.port))
    attempt = gevent.spawn(open_stream, connection, tls)
    gevent.sleep(0.02)
    error = AutoReconnect("enough")
    connection.interrupt(error)
    gevent.joinall([attempt])
    assert (type(attempt.exception), str(attempt.exception)) == (AutoReconnect, str(error))
    gc.collect()


def test_an_exchange_that_is_interrupted(server, files):
    gate = gevent.event.Event()
    server.replies["find"] = lambda command: gate.wait() and cursor_reply([])
    with client_of(server, tlsCAFile=files.ca) as client:
        finding, limit = gevent.spawn(find, client), gevent.Timeout()
        server.wait_for("find")
        finding.kill(limit)
        assert finding.exception is limit
        gate.set()
        assert find(client) is None
        interrupted, new = server.connections_of("find")
        server.wait_for("killSessions")
        kept = {new, *server.connections_of("killSessions")}
        assert interrupted not in kept
        assert client.pool_stats()[0]["total"] == len(kept)


def test_a_connection_inherited_by_a_child_is_not_touched(server, files):
    with client_of(server, tlsCAFile=files.ca) as client:
        find(client)
        [pool] = client._topology.pools()
        [connection] = pool.machine.available
        error = AutoReconnect("the parent's")
        connection._transport.mark_forked(error)
        with pytest.raises(AutoReconnect) as caught:
            connection._transport.send([b"abc"])
        assert str(caught.value) == str(error)
        with pytest.raises(AutoReconnect):
            connection._transport.receive(1)


def test_a_monkey_patched_process(files, tmp_path):
    """The TLS of a process that gevent has patched, in which ssl's own classes are replaced."""
    import subprocess
    import sys

    program = tmp_path / "program.py"
    program.write_text(
        "from gevent import monkey; monkey.patch_all()\n"
        "import sys, gmongo, gmongo._tls\n"
        "gmongo._tls._PACKAGES = sys.argv[4:]\n"
        "from tests.support.tls import TlsServer, server_context\n"
        "with TlsServer(server_context(sys.argv[1])) as server:\n"
        "    with gmongo.MongoClient('localhost', server.port, tlsCAFile=sys.argv[2], "
        "tlsCertificateKeyFile=sys.argv[3]) as client:\n"
        "        print(client.db.c.find_one({'_id': 5}))\n"
    )
    done = subprocess.run(
        [sys.executable, str(program), files.server, files.ca, files.client, *gmongo._tls._PACKAGES],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": ".", "PATH": ""},
    )
    assert done.stdout.strip() == "{'_id': 5}", done.stderr


class Dribbling(Middleman):
    """Passes bytes on in small pieces, in both directions."""

    def __init__(self, server, size):
        super().__init__()
        self.server, self.size = server, size

    def serve(self, sock):
        with gevent.socket.create_connection(self.server.address) as onward:
            jobs = [gevent.spawn(self.dribble, sock, onward), gevent.spawn(self.dribble, onward, sock)]
            gevent.joinall(jobs, count=1)
            gevent.killall(jobs)

    def dribble(self, source, target):
        target.setsockopt(gevent.socket.IPPROTO_TCP, gevent.socket.TCP_NODELAY, 1)
        try:
            while data := source.recv(65536):
                for start in range(0, len(data), self.size):
                    target.sendall(data[start : start + self.size])
                    gevent.sleep(0)
        except OSError:
            pass


@pytest.mark.parametrize("size", [1, 5, 100, 4097])
def test_bytes_in_any_pieces(server, files, size):
    documents = [{"_id": number, "text": "x" * 500} for number in range(4 if size < 100 else 200)]
    server.replies["find"] = cursor_reply(documents)
    with Dribbling(server, size) as middleman, client_of(middleman, tlsCAFile=files.ca) as client:
        for _ in range(2):
            assert list(client.db.c.find()) == documents
        client.db.c.insert_many(documents)


def test_replies_that_arrive_together(server, files):
    """A monitor's stream: several replies may be in one TLS record, or one in several."""
    server.streams = True
    with client_of(server, tlsCAFile=files.ca, heartbeatFrequencyMS=500) as client:
        find(client)
        server.wait_for("hello")
        for _ in range(5):
            server.changed()
        eventually(lambda: client.topology_description.server_descriptions())
        server.hello_extra = {"tags": {"news": "yes"}}
        server.changed()
        [address] = client.topology_description.server_descriptions()
        eventually(lambda: client.topology_description.server_descriptions()[address].tags == {"news": "yes"})


def test_ocsp_that_is_asked_for_needs_its_packages(monkeypatch, files):
    monkeypatch.setattr(gmongo._tls, "_PACKAGES", ("no_package_of_this_name",))
    options = {"tls": True, "tlscafile": files.ca}
    with pytest.raises(ConfigurationError) as caught:
        tls_of({**options, "tlsdisableocspendpointcheck": False}, 5.0)
    assert str(caught.value) == "tlsDisableOCSPEndpointCheck=false needs the packages of gmongo[ocsp]"
    assert tls_of(options, 5.0) is not None
