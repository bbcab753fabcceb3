"""OCSP request about a certificate, and the OCSP extensions of the certificate."""

from __future__ import annotations

from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID

from gmongo._safe_log import safely
from gmongo.wire.tls import ocsp_log


class CertificateId(NamedTuple):
    """ID of a certificate (CertID of RFC 6960): hashes of the issuer, and the serial number of the certificate."""

    issuer_name_hash: bytes
    issuer_key_hash: bytes
    serial_number: int


class Request:
    """OCSP request about the status of a certificate. The request uses SHA-1, which all responders support."""

    def __init__(self, certificate: x509.Certificate, issuer: x509.Certificate) -> None:
        self._certificate = certificate
        self._extensions = _extensions_of(certificate)
        self.issuer = issuer
        request = self._request(hashes.SHA1())
        self.id = _id_of(request)
        self.encoded = request.public_bytes(Encoding.DER)

    def id_with_hash(self, algorithm: hashes.HashAlgorithm) -> CertificateId:
        """Return the ID of the certificate with the hash algorithm of a response, which may not be SHA-1."""
        return _id_of(self._request(algorithm))

    def _request(self, algorithm: hashes.HashAlgorithm) -> ocsp.OCSPRequest:
        return ocsp.OCSPRequestBuilder().add_certificate(self._certificate, self.issuer, algorithm).build()

    @property
    def must_be_stapled(self) -> bool:
        """True if the certificate requires a stapled OCSP response (Must-Staple, RFC 7633)."""
        try:
            features = self._extensions.get_extension_for_class(x509.TLSFeature).value
        except x509.ExtensionNotFound:
            return False
        return x509.TLSFeatureType.status_request in features

    @property
    def responders(self) -> list[str]:
        """HTTP URLs of the OCSP responders that the certificate names."""
        # HTTPS is not necessary, because responses are signed. Its certificate would require another OCSP query.
        try:
            access = self._extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
        except x509.ExtensionNotFound:
            return []
        places = [each.access_location for each in access if each.access_method == AuthorityInformationAccessOID.OCSP]
        return [str(each.value) for each in places if str(each.value).lower().startswith("http://")]


def _extensions_of(certificate: x509.Certificate) -> x509.Extensions:
    """Return the extensions of a certificate. Return no extensions if `cryptography` cannot parse an extension."""
    try:
        return certificate.extensions
    except Exception as error:
        text = "OCSP: an extension of the server's certificate cannot be parsed, so the client queries no responder: %r"
        safely(ocsp_log.warning, text, error)
        return x509.Extensions([])


def _id_of(request: ocsp.OCSPRequest) -> CertificateId:
    return CertificateId(request.issuer_name_hash, request.issuer_key_hash, request.serial_number)
