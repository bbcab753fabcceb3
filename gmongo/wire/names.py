"""Comparison of the names in a certificate with a server name."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import SimpleNamespace
from typing import cast

from cryptography import x509
from service_identity import CertificateError, VerificationError
from service_identity.cryptography import verify_certificate_hostname

_EXTENSIONS, _OCTETS, _DNS_NAME, _IP_ADDRESS = 0xA3, 0x04, 0x82, 0x87  # DER tags
_ALTERNATIVE_NAMES = b"\x06\x03\x55\x1d\x11"  # object identifier of the extension subjectAltName in DER


def certificate_matches(certificate: bytes, server: str) -> bool:
    """Return True if a name in a DER certificate matches the host name or IP address `server`."""
    # Parse only the names, because `cryptography` rejects some malformed extensions that OpenSSL has accepted.
    address = ip_of(server)
    for tag, value in _names(certificate):
        if tag == _IP_ADDRESS and address is not None and value == address.packed:
            return True
        if tag == _DNS_NAME and address is None and _name_matches(value.decode("latin-1"), server):
            return True
    return False


def ip_of(server: str) -> IPv4Address | IPv6Address | None:
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
        only = x509.Extensions([x509.Extension(names.oid, False, names)])
        # `verify_certificate_hostname` reads only the attribute `extensions` of a certificate
        verify_certificate_hostname(cast(x509.Certificate, SimpleNamespace(extensions=only)), server)
    except (VerificationError, CertificateError, ValueError):
        return False
    return True


def _names(certificate: bytes) -> Iterator[tuple[int, bytes]]:
    (_, whole), *_rest = _elements(certificate)
    (_, signed), *_rest = _elements(whole)
    for tag, content in _elements(signed):
        if tag == _EXTENSIONS:
            for _, extensions in _elements(content):
                for _, extension in _elements(extensions):
                    if extension.startswith(_ALTERNATIVE_NAMES):
                        value = next(value for tag, value in _elements(extension) if tag == _OCTETS)
                        for _, names in _elements(value):
                            yield from _elements(names)


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
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
