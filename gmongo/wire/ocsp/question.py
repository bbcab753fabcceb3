"""What is asked about a certificate, and what the certificate itself says of OCSP."""

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
    """Names a certificate by its issuer and its number (CertID of RFC 6960, with SHA-1, which all responders know)."""

    issuer_name_hash: bytes
    issuer_key_hash: bytes
    serial_number: int


class Question:
    """Whether a certificate has been revoked.

    :param certificate: of a server.
    :param issuer: whose key has signed it.
    """

    __slots__ = ("_certificate", "_extensions", "id", "issuer", "request")

    def __init__(self, certificate: x509.Certificate, issuer: x509.Certificate) -> None:
        self._certificate = certificate
        self._extensions = _extensions_of(certificate)
        self.issuer = issuer
        request = self._made(hashes.SHA1())
        self.id = _id_of(request)
        self.request = request.public_bytes(Encoding.DER)

    def id_by(self, algorithm: hashes.HashAlgorithm) -> CertificateId:
        """The ID by another hash; a responder may answer with whichever it likes."""
        return _id_of(self._made(algorithm))

    def _made(self, algorithm: hashes.HashAlgorithm) -> ocsp.OCSPRequest:
        return ocsp.OCSPRequestBuilder().add_certificate(self._certificate, self.issuer, algorithm).build()

    @property
    def must_be_stapled(self) -> bool:
        """Whether a server has to staple the answer (Must-Staple, RFC 7633)."""
        try:
            features = self._extensions.get_extension_for_class(x509.TLSFeature).value
        except x509.ExtensionNotFound:
            return False
        return x509.TLSFeatureType.status_request in features

    @property
    def responders(self) -> list[str]:
        """The URLs of those that can be asked. OCSP goes over HTTP: answers are signed, and to check the certificate of
        a responder would take another responder.
        """
        try:
            access = self._extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
        except x509.ExtensionNotFound:
            return []
        places = [each.access_location for each in access if each.access_method == AuthorityInformationAccessOID.OCSP]
        return [str(each.value) for each in places if str(each.value).lower().startswith("http://")]


def _extensions_of(certificate: x509.Certificate) -> x509.Extensions:
    """The extensions of a certificate; none if `cryptography` cannot parse all of them, as OpenSSL does."""
    try:
        return certificate.extensions
    except Exception as error:
        text = "OCSP: an extension of the server's certificate cannot be parsed, so its responders are not asked: %r"
        safely(ocsp_log.warning, text, error)
        return x509.Extensions([])


def _id_of(request: ocsp.OCSPRequest) -> CertificateId:
    return CertificateId(request.issuer_name_hash, request.issuer_key_hash, request.serial_number)
