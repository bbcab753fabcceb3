"""Certificates for tests, and scripted servers that require TLS."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from gevent.server import StreamServer
from gevent.ssl import SSLContext

from tests.support.server import ScriptedServer

PASSWORD = "opens-the-key"
KEY_SERVICE_HOSTS = (
    "kms.us-east-1.amazonaws.com",
    "login.microsoftonline.com",
    "a.vault.azure.net",
    "cloudkms.googleapis.com",
)


class TlsServer(ScriptedServer):
    """Scripted server that requires TLS."""

    def __init__(self, context: ssl.SSLContext, **options: Any) -> None:
        super().__init__(**options)
        self.context = context
        self.resumed: list[bool] = []

    def start(self) -> None:
        super().start()
        assert self._listener is not None
        self._listener.stop(timeout=0)
        self._listener = StreamServer(("127.0.0.1", self.port), self._accept_tls)
        self._listener.start()

    def _accept_tls(self, sock: Any, address: Any) -> None:
        try:
            wrapped = self.context.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            return
        self.resumed.append(bool(wrapped.session_reused))
        self._accept(wrapped, address)


def write_certificates(folder: Path) -> SimpleNamespace:
    """Write new certificates as PEM files to a folder. Return a namespace of their paths."""
    authority, other_authority = trustme.CA(), trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1")
    client = authority.issue_cert("ann@example.com", common_name="ann")
    now = datetime.datetime.now(datetime.timezone.utc)
    expired = authority.issue_cert("localhost", "127.0.0.1", not_after=now - datetime.timedelta(days=1))
    other_host = authority.issue_cert("elsewhere.example.com")
    wildcard = authority.issue_cert("*.example.net", "LocalHost")
    key_services = authority.issue_cert(*KEY_SERVICE_HOSTS)

    def write(name: str, content: bytes) -> str:
        path = folder / name
        path.write_bytes(content)
        return str(path)

    def write_bundle(name: str, certificate: Any) -> str:
        return write(name, certificate.private_key_and_cert_chain_pem.bytes())

    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    locked_key = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    chain = b"".join(each.bytes() for each in client.cert_chain_pems)
    return SimpleNamespace(
        folder=folder,
        ca=write("ca.pem", authority.cert_pem.bytes()),
        other_ca=write("other_ca.pem", other_authority.cert_pem.bytes()),
        server=write_bundle("server.pem", server),
        client=write_bundle("client.pem", client),
        strange_client=write_bundle("strange_client.pem", other_authority.issue_cert("bob@example.com")),
        locked_client=write("locked_client.pem", locked_key + chain),
        expired=write_bundle("expired.pem", expired),
        elsewhere=write_bundle("elsewhere.pem", other_host),
        wildcard=write_bundle("wildcard.pem", wildcard),
        key_services=write_bundle("key_services.pem", key_services),
        only_certificate=write("only_certificate.pem", chain),
        junk=write("junk.pem", b"this is no certificate"),
        missing=str(folder / "missing.pem"),
        crl=write("crl.pem", _revocation_list(authority, [])),
        crl_with_server=write("crl_with_server.pem", _revocation_list(authority, [_serial(server)])),
    )


def _serial(certificate: trustme.LeafCert) -> int:
    return x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes()).serial_number


def _revocation_list(authority: trustme.CA, serials: list[int]) -> bytes:
    last_update = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=1)
    issuer = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    key = serialization.load_pem_private_key(authority.private_key_pem.bytes(), None)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.subject)
        .last_update(last_update)
        .next_update(last_update + datetime.timedelta(days=1))
    )
    for serial in serials:
        revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(last_update).build()
        builder = builder.add_revoked_certificate(revoked)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)  # type: ignore[arg-type]


def server_context(certificate_path: str, client_ca: str | None = None) -> ssl.SSLContext:
    """Return a TLS context for a server."""
    context: ssl.SSLContext = SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_path)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
