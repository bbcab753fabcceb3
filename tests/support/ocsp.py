"""Certificate authorities, OCSP responses, OCSP responders, and servers that staple an OCSP
response.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID
from gevent.server import StreamServer
from OpenSSL import SSL

from tests.support.server import ScriptedServer

DAY = datetime.timedelta(days=1)
MINUTE = datetime.timedelta(minutes=1)
GOOD, REVOKED, UNKNOWN = ocsp.OCSPCertStatus.GOOD, ocsp.OCSPCertStatus.REVOKED, ocsp.OCSPCertStatus.UNKNOWN


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


@dataclass(frozen=True)
class CertificateWithKey:
    """A certificate and the private key of its subject."""

    certificate: x509.Certificate
    key: Any

    def write(self, path: Path, *chain: CertificateWithKey) -> str:
        """Write the key, the certificate and the certificates of `chain` to one PEM file.

        Return the path of the file.
        """
        key = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        certificates = (each.certificate.public_bytes(serialization.Encoding.PEM) for each in (self, *chain))
        path.write_bytes(key + b"".join(certificates))
        return str(path)


def new_key(kind: str) -> Any:
    """Create a private key of the kind ``"rsa"``, ``"ecdsa"``, ``"ed25519"`` or ``"ed448"``."""
    makers: dict[str, Callable[[], Any]] = {
        "rsa": lambda: rsa.generate_private_key(65537, 2048),
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "ed448": ed448.Ed448PrivateKey.generate,
    }
    return makers[kind]()


def hash_for(key: Any) -> hashes.SHA256 | None:
    """Return the hash algorithm for signatures of `key`.

    Return None for Ed25519 and Ed448 keys, whose signatures need no hash algorithm.
    """
    return None if isinstance(key, (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)) else hashes.SHA256()


class Authority:
    """Certificate authority.

    The keys of the authority and of all issued certificates have the same kind, such as ``"rsa"``.
    """

    def __init__(self, kind: str = "ecdsa", name: str = "authority") -> None:
        self.kind = kind
        self.key = new_key(kind)
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = (x509.BasicConstraints(ca=True, path_length=None), True)
        self.certificate = self._sign_certificate(self.subject, self.key, [constraints], DAY)
        self.own = CertificateWithKey(self.certificate, self.key)

    def issue_intermediate(self) -> Authority:
        """Return an intermediate authority whose certificate this authority has signed."""
        intermediate = Authority(self.kind, "subordinate")
        constraints = (x509.BasicConstraints(ca=True, path_length=None), True)
        intermediate.certificate = self._sign_certificate(intermediate.subject, intermediate.key, [constraints], DAY)
        intermediate.own = CertificateWithKey(intermediate.certificate, intermediate.key)
        return intermediate

    def issue_server(self, *responder_urls: str, must_staple: bool = False) -> CertificateWithKey:
        """Issue a server certificate for ``localhost`` and 127.0.0.1."""
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        extensions: list[tuple[Any, bool]] = [(x509.SubjectAlternativeName(names), False)]
        if responder_urls:
            access_descriptions = [
                x509.AccessDescription(AuthorityInformationAccessOID.OCSP, x509.UniformResourceIdentifier(url))
                for url in responder_urls
            ]
            extensions.append((x509.AuthorityInformationAccess(access_descriptions), False))
        if must_staple:
            extensions.append((x509.TLSFeature([x509.TLSFeatureType.status_request]), False))
        return self.issue("server", extensions)

    def issue_delegate(self, *purposes: Any, signs: bool | None = None, days: int = 1) -> CertificateWithKey:
        """Issue the certificate of a delegate: a signer of OCSP responses in place of the
        authority.
        """
        extensions: list[tuple[Any, bool]] = []
        if purposes:
            extensions.append((x509.ExtendedKeyUsage(purposes), False))
        if signs is not None:
            usage = [signs, not signs, *[False] * 7]
            extensions.append((x509.KeyUsage(*usage), True))
        return self.issue("delegate", extensions, days * DAY)

    def issue(
        self, name: str, extensions: list[tuple[Any, bool]], validity: datetime.timedelta = DAY
    ) -> CertificateWithKey:
        """Issue a certificate. `extensions` are pairs: an extension, and True if critical."""
        key = new_key(self.kind)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return CertificateWithKey(self._sign_certificate(subject, key, extensions, validity), key)

    def _sign_certificate(
        self, subject: x509.Name, key: Any, extensions: list[tuple[Any, bool]], validity: datetime.timedelta
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now() - 10 * DAY)
            .not_valid_after(now() + validity)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self.key, hash_for(self.key))

    def respond(
        self,
        certified: CertificateWithKey,
        status: ocsp.OCSPCertStatus = GOOD,
        *,
        signer: CertificateWithKey | None = None,
        this_update_offset: datetime.timedelta = -MINUTE,
        next_update_offset: datetime.timedelta | None = DAY,
        certificate_id_hash: hashes.HashAlgorithm | None = None,
        signature_hash: Any = None,
        identifies_signer_by_name: bool = False,
    ) -> bytes:
        """Return a signed OCSP response about the status of the certificate `certified`."""
        signer = signer or self.own
        revoked = status is REVOKED
        builder = ocsp.OCSPResponseBuilder().add_response(
            cert=certified.certificate,
            issuer=self.certificate,
            algorithm=certificate_id_hash or hashes.SHA1(),
            cert_status=status,
            this_update=now() + this_update_offset,
            next_update=None if next_update_offset is None else now() + next_update_offset,
            revocation_time=now() - DAY if revoked else None,
            revocation_reason=x509.ReasonFlags.key_compromise if revoked else None,
        )
        encoding = ocsp.OCSPResponderEncoding.NAME if identifies_signer_by_name else ocsp.OCSPResponderEncoding.HASH
        builder = builder.responder_id(encoding, signer.certificate)
        if signer is not self.own:
            builder = builder.certificates([signer.certificate])
        return builder.sign(signer.key, signature_hash or hash_for(signer.key)).public_bytes(serialization.Encoding.DER)

    def revocation_list(self, *revoked: CertificateWithKey) -> bytes:
        """Return a PEM certificate revocation list of the `revoked` certificates."""
        builder = x509.CertificateRevocationListBuilder(self.subject, now() - MINUTE, now() + DAY)
        for each in revoked:
            entry = x509.RevokedCertificateBuilder(each.certificate.serial_number, now() - MINUTE).build()
            builder = builder.add_revoked_certificate(entry)
        return builder.sign(self.key, hash_for(self.key)).public_bytes(serialization.Encoding.PEM)


OCSP_SIGNING = ExtendedKeyUsageOID.OCSP_SIGNING
SERVER_AUTH_PURPOSE = ExtendedKeyUsageOID.SERVER_AUTH


def http_response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """Return an encoded HTTP response with the content type of OCSP responses."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: application/ocsp-response", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Responder:
    """Context manager of an OCSP responder: an HTTP server on the loopback interface."""

    def __init__(self, answer: Callable[[Any], None] | None = None) -> None:
        self.body = b""
        self.requests: list[bytes] = []
        self.answer = answer or (lambda sock: sock.sendall(http_response(self.body)))
        self._server = StreamServer(("127.0.0.1", 0), self._serve)

    def __enter__(self) -> Responder:
        self._server.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/status"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(timeout=0)

    def _serve(self, sock: Any, _address: Any) -> None:
        try:
            data = b""
            while b"\r\n\r\n" not in data:
                data += sock.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = next(int(each[15:]) for each in head.split(b"\r\n") if each.lower().startswith(b"content-length:"))
            while len(body) < length:
                body += sock.recv(65536)
            self.requests.append(body)
            self.answer(sock)
        except OSError:
            pass
        finally:
            sock.close()


class StaplingServer(ScriptedServer):
    """Scripted server with TLS that staples an OCSP response to its certificate."""

    def __init__(self, certificate_path: str, staple: bytes = b"", version: int = SSL.TLS1_3_VERSION) -> None:
        super().__init__()
        self.staple = staple
        self.handshake_count = 0
        context = self._context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.use_certificate_chain_file(certificate_path)
        context.use_privatekey_file(certificate_path)
        context.set_max_proto_version(version)
        context.set_session_id(b"tests")
        context.set_ocsp_server_callback(lambda _connection, _data: self._count_and_staple())

    def _count_and_staple(self) -> bytes:
        self.handshake_count += 1
        return self.staple

    def _accept(self, sock: Any, address: Any) -> None:
        tls_socket = _TlsSocket(SSL.Connection(self._context, None), sock)
        try:
            tls_socket.shake_hands()
        except (OSError, SSL.Error):
            sock.close()
            return
        super()._accept(tls_socket, address)


class _TlsSocket:
    """Socket that encrypts with an OpenSSL connection in memory, and sends and receives with a gevent
    socket.
    """

    def __init__(self, connection: SSL.Connection, sock: Any) -> None:
        self._connection = connection
        self._sock = sock
        connection.set_accept_state()

    def shake_hands(self) -> None:
        self._perform(self._connection.do_handshake)

    def setsockopt(self, *option: int) -> None:
        self._sock.setsockopt(*option)

    def recv(self, size: int) -> bytes:
        try:
            return bytes(self._perform(self._connection.recv, size))
        except SSL.Error:
            raise ConnectionResetError from None

    def sendall(self, data: bytes) -> None:
        self._perform(self._connection.sendall, data)

    def close(self) -> None:
        self._sock.close()

    def _perform(self, step: Callable[..., Any], *arguments: Any) -> Any:
        while True:
            try:
                return step(*arguments)
            except SSL.WantReadError:
                self._flush()
                data = self._sock.recv(65536)
                if not data:
                    raise ConnectionResetError from None
                self._connection.bio_write(data)
            finally:
                self._flush()

    def _flush(self) -> None:
        try:
            while True:
                self._sock.sendall(self._connection.bio_read(65536))
        except SSL.WantReadError:
            pass
