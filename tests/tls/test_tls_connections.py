"""Clients connect with TLS, verify certificates, and explain rejected connections."""

from __future__ import annotations

import os
import ssl
from contextlib import contextmanager
from pathlib import Path

import gevent
import gevent.socket
import pytest
from gevent.server import StreamServer

import gmongo
from gmongo._tls import tls_of
from gmongo.errors import AutoReconnect, ConfigurationError
from tests.support.cases import with_cases
from tests.support.pools import checked_out
from tests.support.proxies import ProxyServer, relay
from tests.support.refused_connections import selection_error
from tests.support.server import cursor_reply
from tests.support.tls import PASSWORD, TlsServer, server_context


def connect_client(server, host="localhost", **options):
    options = {"tls": True, **options}
    return gmongo.MongoClient(host, server.port, **options)


def find_one(client):
    return client.db.c.find_one({"_id": 1})


def server_selection_error(server, host="localhost", **options):
    return selection_error(
        lambda timeout_ms: connect_client(server, host, **{"serverSelectionTimeoutMS": timeout_ms, **options})
    )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_valid_certificate_is_accepted(server, files, host):
    with connect_client(server, host, tlsCAFile=files.ca) as client:
        assert find_one(client) == {"_id": 1}


def test_tls_request_larger_than_socket_buffers_arrives_complete(server, files, start_greenlet):
    server.replies["insert"] = {"ok": 1, "n": 1}
    with connect_client(server, tlsCAFile=files.ca) as client:
        client.db.command("ping")
        server.reading.clear()
        document = {"_id": 1, "b": os.urandom(12_000_000)}
        insert_greenlet = start_greenlet(client.db.c.insert_one, document)
        gevent.sleep(0.05)
        assert not insert_greenlet.ready()
        server.reading.set()
        assert insert_greenlet.get(timeout=20).inserted_id == 1
    assert server.commands("insert")[-1]["documents"] == [document]


# Tests of server certificates, and of servers without TLS


def test_unknown_certificate_authority_fails_server_selection_with_reason(server, files):
    reason = server_selection_error(server, tlsCAFile=files.other_ca)
    assert f"localhost:{server.port}: TLS handshake failed: the server's certificate was not accepted" in reason
    assert "unable to get local issuer certificate" in reason


def test_server_certificate_is_verified_by_default(server):
    assert "certificate was not accepted" in server_selection_error(server)


def test_expired_certificate_is_rejected(files):
    with TlsServer(server_context(files.expired)) as server:
        assert "certificate has expired" in server_selection_error(server, tlsCAFile=files.ca)


def test_host_name_matches_certificate_regardless_of_case(files):
    with TlsServer(server_context(files.wildcard)) as server, connect_client(server, tlsCAFile=files.ca) as client:
        find_one(client)
        assert "IP address mismatch" in server_selection_error(server, "127.0.0.1", tlsCAFile=files.ca)


def test_certificate_of_other_host_is_rejected(files):
    with TlsServer(server_context(files.elsewhere)) as server:
        reason = server_selection_error(server, tlsCAFile=files.ca)
        assert "Hostname mismatch, certificate is not valid for 'localhost'" in reason
        assert "IP address mismatch" in server_selection_error(server, "127.0.0.1", tlsCAFile=files.ca)


@with_cases
def test_option_disables_check_of_hostname_or_certificate(files, certificate, option, is_accepted):
    with TlsServer(server_context(getattr(files, certificate))) as server:
        options = {option: True, "tlsCAFile": files.ca}
        if is_accepted:
            with connect_client(server, **options) as client:
                assert find_one(client) == {"_id": 1}
        else:
            assert "expired" in server_selection_error(server, **options)


def test_certificate_in_revocation_list_is_rejected_unless_check_is_disabled(server, files):
    with connect_client(server, tlsCAFile=files.ca, tlsCRLFile=files.crl) as client:
        find_one(client)
    revocation_options = {"tlsCAFile": files.ca, "tlsCRLFile": files.crl_with_server}
    assert "certificate revoked" in server_selection_error(server, **revocation_options)
    with connect_client(server, **revocation_options, tlsDisableCertificateRevocationCheck=True) as client:
        find_one(client)


@contextmanager
def server_without_tls(serve):
    server = StreamServer(("127.0.0.1", 0), lambda sock, _address: serve(sock))
    server.start()
    server.port = server.server_port
    yield server
    server.stop(timeout=0)


def test_server_without_tls_fails_server_selection_with_hint(files):
    # A real server without TLS reads the TLS handshake as a message of invalid length, and closes the
    # connection.
    with server_without_tls(lambda sock: (sock.recv(16), sock.close())) as server:
        reason = server_selection_error(server, tlsCAFile=files.ca)
    assert "TLS handshake failed: connection" in reason or "reset" in reason
    assert "(perhaps the server does not use TLS)" in reason


def test_http_server_fails_server_selection(files):
    with server_without_tls(lambda sock: sock.sendall(b"HTTP/1.1 400 Bad\r\n" * 20)) as server:
        assert "the server does not speak TLS" in server_selection_error(server, tlsCAFile=files.ca)


# Tests of client certificates, TLS versions and ciphers


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_server_requires_trusted_client_certificate(files, version):
    context = server_context(files.server, client_ca=files.ca)
    context.minimum_version = context.maximum_version = version
    with TlsServer(context) as server:
        with connect_client(server, tlsCAFile=files.ca, tlsCertificateKeyFile=files.client) as client:
            find_one(client)
        options = {"tlsCertificateKeyFile": files.locked_client, "tlsCertificateKeyFilePassword": PASSWORD}
        with connect_client(server, tlsCAFile=files.ca, **options) as client:
            find_one(client)
        reason = server_selection_error(server, tlsCAFile=files.ca)
        assert "client certificate" in reason, reason
        reason = server_selection_error(server, tlsCAFile=files.ca, tlsCertificateKeyFile=files.strange_client)
        assert "client certificate" in reason, reason


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@with_cases
def test_new_connection_reads_changed_certificate_file(
    files, tmp_path, caplog, version, option, invalid_file, valid_file
):
    def write_certificate_file(name):
        path.write_bytes(Path(getattr(files, name)).read_bytes())

    def find_with_new_connection():
        with checked_out(client._topology.pools()[0]):
            find_one(client)

    path = tmp_path / "changes.pem"
    context = server_context(files.server, client_ca=files.ca)
    context.minimum_version = context.maximum_version = version
    write_certificate_file(invalid_file)
    options = {"tlsCAFile": files.ca, "tlsCertificateKeyFile": files.client, option: str(path)}
    with TlsServer(context) as server, connect_client(server, heartbeatFrequencyMS=500, **options) as client:
        with pytest.raises(AutoReconnect), gmongo.timeout(0.7):
            find_one(client)
        write_certificate_file(valid_file)
        find_one(client)
        find_with_new_connection()
        write_certificate_file("junk")
        with checked_out(client._topology.pools()[0]):
            find_with_new_connection()
        assert caplog.text.count(f"the old content stays in use: {option}: '{path}' must be a PEM file") == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_server_with_tls_1_1_is_rejected(files):
    context = server_context(files.server)
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.minimum_version = ssl.TLSVersion.TLSv1
    with TlsServer(context) as server:
        assert "TLS handshake failed" in server_selection_error(server, tlsCAFile=files.ca)


def test_server_with_weak_ciphers_is_rejected(files):
    context = server_context(files.server)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    default_ciphers = {each["name"] for each in ssl.create_default_context().get_ciphers()}
    context.set_ciphers("DEFAULT")
    unsupported_ciphers = [each["name"] for each in context.get_ciphers() if each["name"] not in default_ciphers]
    weak_cipher = next((name for name in unsupported_ciphers if name.startswith("ECDHE-ECDSA")), None)
    if weak_cipher is None:
        pytest.skip("this Python accepts all ciphers that OpenSSL accepts, like Debian's Python")
    context.set_ciphers(weak_cipher)
    with TlsServer(context) as server:
        assert "TLS handshake failed" in server_selection_error(server, tlsCAFile=files.ca)
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with TlsServer(context) as server, connect_client(server, tlsCAFile=files.ca) as client:
        find_one(client)


# Tests of host names and TLS sessions


def test_sni_contains_host_name_but_no_ip_address(server, files):
    sni_names = []
    server.context.sni_callback = lambda _socket, name, _context: sni_names.append(name)
    with connect_client(server, tlsCAFile=files.ca) as client:
        find_one(client)
    with connect_client(server, "127.0.0.1", tlsCAFile=files.ca) as client:
        find_one(client)
    assert set(sni_names) == {"localhost", None}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_second_connection_resumes_tls_session(server, files, version):
    server.context.maximum_version = version
    with connect_client(server, tlsCAFile=files.ca) as client:
        find_one(client)
        pool = client._topology.pools()[0]
        with checked_out(pool), checked_out(pool):
            pass
    assert server.resumed[0] is False
    assert server.resumed[-1] is True


# Tests of certificate files


@with_cases
def test_unusable_certificate_file_raises_configuration_error(files, options, message):
    options = {name: getattr(files, file) for name, file in options.items()}
    with pytest.raises(ConfigurationError, match=rf"{message}(?!\w)"):
        gmongo.MongoClient("localhost", connect=False, **options)


def test_wrong_key_password_raises_configuration_error_without_password(files):
    with pytest.raises(ConfigurationError, match="tlsCertificateKeyFilePassword does not open the key") as caught:
        options = {"tlsCertificateKeyFile": files.locked_client, "tlsCertificateKeyFilePassword": "a wrong secret"}
        gmongo.MongoClient("localhost", connect=False, **options)
    assert "secret" not in str(caught.value)


def test_ca_certificates_stay_in_use_after_file_is_deleted(server, files, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_bytes(Path(files.ca).read_bytes())
    with connect_client(server, tlsCAFile=path) as client:
        path.unlink()
        assert find_one(client) == {"_id": 1}


# Tests of timeouts, monkey patching, fragments and missing packages


@pytest.fixture
def silent_server():
    with server_without_tls(lambda _: gevent.sleep(60)) as server:
        yield server


def test_handshake_with_silent_server_times_out(silent_server, files):
    assert "timed out" in server_selection_error(
        silent_server, tlsCAFile=files.ca, connectTimeoutMS=100, serverSelectionTimeoutMS=500
    )


def test_tls_connection_succeeds_in_monkey_patched_process(files, tmp_path):
    # Run the program in a process in which gevent's monkey patching has replaced the classes of
    # `ssl`.
    import subprocess
    import sys

    program = tmp_path / "program.py"
    program.write_text(
        "from gevent import monkey; monkey.patch_all()\n"
        "import sys, gmongo, gmongo._tls\n"
        "gmongo._tls._OCSP_PACKAGES = sys.argv[4:]\n"
        "from tests.support.tls import TlsServer, server_context\n"
        "with TlsServer(server_context(sys.argv[1])) as server:\n"
        "    with gmongo.MongoClient('localhost', server.port, tlsCAFile=sys.argv[2], "
        "tlsCertificateKeyFile=sys.argv[3]) as client:\n"
        "        print(client.db.c.find_one({'_id': 5}))\n"
    )
    done = subprocess.run(
        [sys.executable, str(program), files.server, files.ca, files.client, *gmongo._tls._OCSP_PACKAGES],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": ".", "PATH": ""},
    )
    assert done.stdout.strip() == "{'_id': 5}", done.stderr


class FragmentingRelay(ProxyServer):
    """Relay that forwards bytes in both directions in pieces of at most `size` bytes."""

    def __init__(self, server, size):
        super().__init__()
        self.server, self.size = server, size

    def serve(self, sock):
        with gevent.socket.create_connection(self.server.address) as server_socket:
            relay(sock, server_socket, self.copy_fragments)

    def copy_fragments(self, source, target):
        target.setsockopt(gevent.socket.IPPROTO_TCP, gevent.socket.TCP_NODELAY, 1)
        try:
            while data := source.recv(65536):
                for start in range(0, len(data), self.size):
                    target.sendall(data[start : start + self.size])
                    gevent.sleep(0)
        except OSError:
            pass


@pytest.mark.parametrize("size", [1, 5, 100, 4097])
def test_fragmented_tls_records_are_reassembled(server, files, size):
    documents = [{"_id": number, "text": "x" * 500} for number in range(4 if size < 100 else 200)]
    server.replies["find"] = cursor_reply(documents)
    with FragmentingRelay(server, size) as proxy, connect_client(proxy, tlsCAFile=files.ca) as client:
        for _ in range(2):
            assert list(client.db.c.find()) == documents
        client.db.c.insert_many(documents)


def test_required_ocsp_without_packages_raises_configuration_error(monkeypatch, files):
    monkeypatch.setattr(gmongo._tls, "_OCSP_PACKAGES", ("no_package_of_this_name",))
    options = {"tls": True, "tlscafile": files.ca}
    with pytest.raises(ConfigurationError) as caught:
        tls_of({**options, "tlsdisableocspendpointcheck": False}, 5.0)
    assert str(caught.value) == "tlsDisableOCSPEndpointCheck=false needs the packages of gmongo[ocsp]"
    assert tls_of(options, 5.0) is not None
