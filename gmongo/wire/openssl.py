"""Adapter from pyOpenSSL to the interface of the module ``ssl``, which does not support stapled OCSP responses.

:class:`~gmongo.wire.tls.TlsTransport` works with the contexts of ``ssl`` and of this module. The
extra ``gmongo[ocsp]`` installs the required packages.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import SimpleNamespace
from typing import TypeAlias, TypeVar, cast

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL, crypto
from service_identity import CertificateError, VerificationError
from service_identity.cryptography import verify_certificate_hostname

from gmongo import _clock
from gmongo.errors import ConfigurationError

T = TypeVar("T")
Key: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey

_READ_SIZE = 64 * 1024
# Number of a certificate error in pyOpenSSL -> message of OpenSSL.
_CERTIFICATE_ERRORS = {
    3: "unable to get certificate CRL",
    7: "certificate signature failure",
    9: "certificate is not yet valid",
    10: "certificate has expired",
    12: "CRL has expired",
    18: "self-signed certificate",
    19: "self-signed certificate in certificate chain",
    20: "unable to get local issuer certificate",
    21: "unable to verify the first certificate",
    23: "certificate revoked",
    26: "unsuitable certificate purpose",
    79: "invalid CA certificate",
}
# Name of a TLS alert -> prefix of this name in the module ``ssl``. Other alerts get the prefix SSLV3.
_ALERT_PREFIXES = {"PROTOCOL_VERSION": "TLSV1", "UNKNOWN_CA": "TLSV1", "CERTIFICATE_REQUIRED": "TLSV13"}
_EXTENSIONS_TAG, _OCTETS_TAG, _DNS_NAME_TAG, _IP_ADDRESS_TAG = 0xA3, 0x04, 0x82, 0x87  # DER tags of certificate fields.
_ALTERNATIVE_NAMES_OID = b"\x06\x03\x55\x1d\x11"  # Object identifier of subjectAltName in DER.


@dataclass(frozen=True)
class Trust:
    """Certificate settings. All files are PEM files that the client has already read successfully."""

    ciphers: str  # Ciphers of TLS 1.2, in the syntax of OpenSSL.
    ca_file: str | None = None  # None means the certificate authorities of the system.
    crl_file: str | None = None
    key_file: str | None = None  # file with the client certificate and its key
    password: str | None = None
    check_name: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Session:
    """TLS session that shortens the next handshake, in which the server sends no certificate."""

    raw: SSL.Session
    # Expiry of the certificate status, in seconds since 1970. None requires a full handshake.
    valid_until: float | None

    @property
    def has_ticket(self) -> bool:
        """True if the next handshake may use the session. The name is from ``ssl.SSLSession``."""
        return self.valid_until is not None


class OpenSslContext:
    """TLS context of a client."""

    verify_mode = ssl.CERT_REQUIRED

    def __init__(self, trust: Trust) -> None:
        self.check_hostname = trust.check_name
        context = self._context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_min_proto_version(SSL.TLS1_2_VERSION)
        context.set_cipher_list(trust.ciphers.encode("ascii"))
        context.set_options(ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION)
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)  # `Tls` caches sessions by host
        context.set_verify(SSL.VERIFY_PEER, _verify_certificate)
        context.set_ocsp_client_callback(_store_staple)
        if trust.key_file is not None:
            _load_client_certificate(context, trust.key_file, trust.password)
        _load_authorities(context, trust.ca_file)
        if trust.crl_file is not None:
            context.load_verify_locations(trust.crl_file)
            store = context.get_cert_store()
            assert store is not None
            store.set_flags(crypto.X509StoreFlags.CRL_CHECK)

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_hostname: str, session: Session | None = None
    ) -> OpenSslObject:
        """Return the TLS object of one connection, like ``SSLContext.wrap_bio``."""
        peer = Peer(server_hostname.encode("idna").decode("ascii"), self.check_hostname)
        connection = SSL.Connection(self._context, None)
        connection.set_app_data(peer)
        connection.set_connect_state()
        connection.request_ocsp()
        if parse_ip_address(peer.name) is None:
            connection.set_tlsext_host_name(peer.name.encode("ascii"))
        if session is not None and session.valid_until is not None and _clock.time() < session.valid_until:
            connection.set_session(session.raw)
            peer.valid_until = session.valid_until
        return OpenSslObject(connection, peer, incoming, outgoing)


@dataclass(eq=False)
class Peer:
    """Server in a TLS handshake: its expected name, and the results of the handshake."""

    name: str
    check_name: bool
    sent_certificate: bool = False  # False after the resumption of a session.
    staple: bytes = b""  # Stapled OCSP response.
    refusal: str = ""  # Reason to reject the certificate, or empty.
    valid_until: float | None = None  # As in `Session`.


class OpenSslObject:
    """TLS object with the methods and exceptions of ``ssl.SSLObject`` that a transport uses."""

    def __init__(
        self, connection: SSL.Connection, peer: Peer, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        self._connection = connection
        self._incoming = incoming
        self._outgoing = outgoing
        self._may_have_more = False  # True if the incoming bytes may contain an unread TLS record
        self.peer = peer

    def do_handshake(self) -> None:
        self._run_step(self._connection.do_handshake)

    def write(self, data: bytes | memoryview) -> int:
        return self._run_step(self._connection.sendall, data) or 0

    def read(self, size: int, into: memoryview | None = None) -> bytes | int:
        if into is None:
            return self._run_step(self._connection.recv, size) or b""
        return self._run_step(self._connection.recv_into, into, size) or 0

    def pending(self) -> int:
        return self._may_have_more or self._connection.pending()

    @property
    def session(self) -> Session | None:
        raw = self._connection.get_session()
        return None if raw is None else Session(raw, self.peer.valid_until)

    def verified_chain(self) -> list[x509.Certificate]:
        """Return the verified chain, first the server certificate. A resumed session has no chain."""
        if not self.peer.sent_certificate:
            return []
        return [each.to_cryptography() for each in self._connection.get_verified_chain() or ()]

    def _run_step(self, step: Callable[..., T], *arguments: object) -> T | None:
        data = self._incoming.read()
        if data:
            self._connection.bio_write(data)
            self._may_have_more = True
        try:
            return step(*arguments)
        except SSL.WantReadError:
            self._may_have_more = False
            raise ssl.SSLWantReadError from None
        except SSL.ZeroReturnError:  # the server ended TLS with a close_notify alert
            return None
        except SSL.Error as error:
            raise _convert_ssl_error(error, self.peer.refusal) from None
        finally:
            self._move_output()

    def _move_output(self) -> None:
        try:
            while True:
                self._outgoing.write(self._connection.bio_read(_READ_SIZE))
        except SSL.WantReadError:
            pass


def _verify_certificate(
    connection: SSL.Connection, certificate: crypto.X509, error_number: int, depth: int, ok: int
) -> bool:
    """Accept or reject a certificate. OpenSSL verifies the server certificate (depth 0) last."""
    peer: Peer = connection.get_app_data()
    if ok and depth == 0:
        peer.sent_certificate = True
        if peer.check_name:
            peer.refusal = _describe_name_mismatch(peer.name, certificate)
    elif not ok:
        peer.refusal = _CERTIFICATE_ERRORS.get(error_number, f"error {error_number} of OpenSSL's verification")
    return not peer.refusal


def _store_staple(connection: SSL.Connection, response: bytes, _data: object) -> bool:
    connection.get_app_data().staple = response
    return True


def _describe_name_mismatch(name: str, certificate: crypto.X509) -> str:
    """Return the reason why a certificate does not match a server name, or an empty text."""
    if certificate_matches(crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate), name):
        return ""
    kind = "Hostname" if parse_ip_address(name) is None else "IP address"
    return f"{kind} mismatch, certificate is not valid for {name!r}"


def _convert_ssl_error(error: SSL.Error, refusal: str) -> ssl.SSLError:
    """Convert a pyOpenSSL error or a certificate refusal to an error of the module ``ssl``."""
    if refusal:
        verification_error = ssl.SSLCertVerificationError(1, refusal)
        verification_error.verify_message = refusal
        return verification_error
    error_queue = error.args[0] if error.args and isinstance(error.args[0], list) else []
    reason = str(error_queue[0][2]) if error_queue else str(error) or type(error).__name__
    converted = ssl.SSLError(1, reason)
    # The text of an OpenSSL error is its name in lower case. The prefix before "alert" depends on the OpenSSL version.
    name = reason.replace(" ", "_").upper()
    _, separator, alert = name.partition("_ALERT_")
    converted.reason = f"{_ALERT_PREFIXES.get(alert, 'SSLV3')}_ALERT_{alert}" if separator else name
    return converted


def _load_client_certificate(context: SSL.Context, path: str, password: str | None) -> None:
    try:
        context.use_certificate_chain_file(path)
        context.use_privatekey(_load_client_key(path, password))
        context.check_privatekey()
    except (SSL.Error, TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(f"tlsCertificateKeyFile: pyOpenSSL cannot use {path!r}: {error}") from error


def _load_client_key(path: str, password: str | None) -> Key:
    with open(path, "rb") as file:
        data = file.read()
    try:
        key = load_pem_private_key(data, None if password is None else password.encode())
    except TypeError:  # pass no password, because the key is not encrypted
        key = load_pem_private_key(data, None)
    return cast(Key, key)


def _load_authorities(context: SSL.Context, path: str | None) -> None:
    """Load the certificate authorities of a file, or the default authorities of ``ssl``."""
    default_paths = ssl.get_default_verify_paths()  # the default paths of pyOpenSSL may differ from these paths
    locations: Mapping[str, str | None] = {"cafile": default_paths.cafile, "capath": default_paths.capath}
    locations = locations if path is None else {"cafile": path}
    if any(locations.values()):
        context.load_verify_locations(**locations)
    else:
        context.set_default_verify_paths()


def certificate_matches(certificate: bytes, server: str) -> bool:
    """Return True if a name in a DER certificate matches the host name or IP address `server`."""
    # Parse only the names, because `cryptography` rejects some malformed extensions that OpenSSL has accepted.
    address = parse_ip_address(server)
    for tag, value in _parse_names(certificate):
        if tag == _IP_ADDRESS_TAG and address is not None and value == address.packed:
            return True
        if tag == _DNS_NAME_TAG and address is None and _name_matches(value.decode("latin-1"), server):
            return True
    return False


def parse_ip_address(server: str) -> IPv4Address | IPv6Address | None:
    """Return `server` as an IP address, or None for a host name."""
    try:
        return ip_address(server)
    except ValueError:
        return None


def _name_matches(name: str, server: str) -> bool:
    if "." not in server:  # service-identity 24 raises ValueError if `name` has a wildcard
        return name.lower() == server.lower()
    try:
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        extensions = x509.Extensions([x509.Extension(names.oid, False, names)])
        # `verify_certificate_hostname` reads only the attribute `extensions` of a certificate
        verify_certificate_hostname(cast(x509.Certificate, SimpleNamespace(extensions=extensions)), server)
    except (VerificationError, CertificateError, ValueError):
        return False
    return True


def _parse_names(certificate: bytes) -> Iterator[tuple[int, bytes]]:
    (_, certificate_content), *_rest = _parse_elements(certificate)
    (_, tbs_certificate), *_rest = _parse_elements(certificate_content)
    for tag, content in _parse_elements(tbs_certificate):
        if tag == _EXTENSIONS_TAG:
            for _, extensions in _parse_elements(content):
                for _, extension in _parse_elements(extensions):
                    if extension.startswith(_ALTERNATIVE_NAMES_OID):
                        value = next(value for tag, value in _parse_elements(extension) if tag == _OCTETS_TAG)
                        for _, names in _parse_elements(value):
                            yield from _parse_elements(names)


def _parse_elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and the content of each DER element."""
    position = 0
    while position + 1 < len(data):
        tag, length = data[position], data[position + 1]
        position += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[position : position + size], "big")
            position += size
        yield tag, data[position : position + length]
        position += length
