"""OCSP requests and responses, and the OCSP extensions of certificates (RFC 6960)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from math import inf
from typing import NamedTuple, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID

from gmongo import _clock
from gmongo._safe_log import safely
from gmongo.wire.tls import ocsp_log

MAX_RESPONSE_SIZE = 64 * 1024  # Maximum size of a response in bytes. The usual size is 2,000 bytes.
ExtensionType = TypeVar("ExtensionType", bound=x509.ExtensionType)
_WEAK_HASHES = (hashes.MD5, hashes.SHA1)


class CertificateId(NamedTuple):
    """ID of a certificate (CertID of RFC 6960): hashes of the issuer, and the serial number."""

    issuer_name_hash: bytes
    issuer_key_hash: bytes
    serial_number: int


class Request:
    """OCSP request about a certificate. The request uses SHA-1, which all responders support."""

    def __init__(self, certificate: x509.Certificate, issuer: x509.Certificate) -> None:
        self._certificate = certificate
        self._extensions = _get_extensions(certificate)
        self.issuer = issuer
        request = self._build_request(hashes.SHA1())
        self.id = _get_id(request)
        self.encoded = request.public_bytes(Encoding.DER)

    def id_with_hash(self, algorithm: hashes.HashAlgorithm) -> CertificateId:
        """Return the certificate ID, computed with `algorithm` (the hash algorithm of a response)."""
        return _get_id(self._build_request(algorithm))

    def _build_request(self, algorithm: hashes.HashAlgorithm) -> ocsp.OCSPRequest:
        return ocsp.OCSPRequestBuilder().add_certificate(self._certificate, self.issuer, algorithm).build()

    @property
    def must_be_stapled(self) -> bool:
        """True if the certificate requires a stapled OCSP response (Must-Staple, RFC 7633)."""
        features = _find_extension(self._extensions, x509.TLSFeature)
        return features is not None and x509.TLSFeatureType.status_request in features

    @property
    def responders(self) -> list[str]:
        """HTTP URLs of the OCSP responders that the certificate names."""
        # OCSP responses are signed, so HTTPS is not necessary. HTTPS would require an OCSP query about the responder.
        access = _find_extension(self._extensions, x509.AuthorityInformationAccess) or ()
        places = [each.access_location for each in access if each.access_method == AuthorityInformationAccessOID.OCSP]
        return [str(each.value) for each in places if str(each.value).lower().startswith("http://")]


def _get_extensions(certificate: x509.Certificate) -> x509.Extensions:
    """Return the extensions of a certificate, or no extensions after a parse error."""
    try:
        return certificate.extensions
    except Exception as error:
        text = "OCSP: an extension of the server's certificate cannot be parsed, so the client queries no responder: %r"
        safely(ocsp_log.warning, text, error)
        return x509.Extensions([])


def _find_extension(extensions: x509.Extensions, kind: type[ExtensionType]) -> ExtensionType | None:
    try:
        return extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _get_id(request: ocsp.OCSPRequest) -> CertificateId:
    return CertificateId(request.issuer_name_hash, request.issuer_key_hash, request.serial_number)


class NoResponse(Exception):
    """Error: the OCSP response is missing, is invalid, or does not match the request."""


@dataclass(frozen=True)
class Response:
    """Revocation status that an OCSP response reports for a certificate."""

    revoked: bool | None  # None if the certificate is unknown to the responder.
    valid_until: float  # Seconds since 1970. Negative infinity forbids caching.

    @property
    def is_conclusive(self) -> bool:
        """True if the responder knows the certificate."""
        return self.revoked is not None

    @property
    def is_valid(self) -> bool:
        """True if the status is still valid."""
        return _clock.time() < self.valid_until


def parse_response(request: Request, data: bytes) -> Response:
    """Verify an OCSP response, and return the status of the certificate in the request."""
    if len(data) > MAX_RESPONSE_SIZE:
        raise NoResponse(f"the OCSP response is longer than {MAX_RESPONSE_SIZE} bytes")
    try:
        response = ocsp.load_der_ocsp_response(data)
        if response.response_status != ocsp.OCSPResponseStatus.SUCCESSFUL:
            raise NoResponse(f"the OCSP responder reports {response.response_status.name}")
        _check_signature(response, _find_signer(response, request.issuer))
        return _combine_statuses([each for each in response.responses if _is_about(each, request)])
    except NoResponse:
        raise
    except Exception as error:  # the package cryptography raises various exceptions, such as KeyError
        raise NoResponse(f"the OCSP response cannot be read: {error}") from error


def _is_about(single_response: ocsp.OCSPSingleResponse, request: Request) -> bool:
    certificate_id = single_response.issuer_name_hash, single_response.issuer_key_hash, single_response.serial_number
    return certificate_id == request.id_with_hash(single_response.hash_algorithm)


def _combine_statuses(responses: list[ocsp.OCSPSingleResponse]) -> Response:
    """Combine the statuses of single responses. One "revoked" response makes the result "revoked"."""
    if not responses:
        raise NoResponse("the OCSP response is not about the server's certificate")
    now = datetime.fromtimestamp(_clock.time(), timezone.utc)
    valid_until = inf
    for each in responses:
        if each.this_update_utc > now:
            raise NoResponse("the OCSP response is not valid yet")
        if each.next_update_utc is None:
            valid_until = -inf  # the responder may have a newer status at any time
        elif each.next_update_utc <= now:
            raise NoResponse("the OCSP response has expired")
        else:
            valid_until = min(valid_until, each.next_update_utc.timestamp())
    statuses = {each.certificate_status for each in responses}
    if ocsp.OCSPCertStatus.REVOKED in statuses:
        return Response(True, valid_until)
    return Response(False if statuses == {ocsp.OCSPCertStatus.GOOD} else None, valid_until)


def _find_signer(response: ocsp.OCSPResponse, issuer: x509.Certificate) -> x509.Certificate:
    """Return the certificate of the signer: the issuer, or a delegate of the issuer."""
    if _is_responder(response, issuer):
        return issuer
    delegate = next((each for each in response.certificates if _is_responder(response, each)), None)
    if delegate is None:
        raise NoResponse("the OCSP response is not signed by the issuer of the certificate")
    try:
        delegate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise NoResponse("the issuer did not issue the certificate that signed the OCSP response") from error
    now = datetime.fromtimestamp(_clock.time(), timezone.utc)
    if not delegate.not_valid_before_utc <= now <= delegate.not_valid_after_utc:
        raise NoResponse("the certificate of the OCSP responder has expired or is not valid yet")
    if not _may_sign(delegate):
        raise NoResponse("the certificate of the OCSP responder is not for signing OCSP responses")
    return delegate


def _is_responder(response: ocsp.OCSPResponse, candidate: x509.Certificate) -> bool:
    if response.responder_name is not None:
        return response.responder_name == candidate.subject
    return response.responder_key_hash == x509.SubjectKeyIdentifier.from_public_key(candidate.public_key()).digest


def _may_sign(certificate: x509.Certificate) -> bool:
    """Return True if the certificate permits signing OCSP responses (RFC 6960, section 4.2.2.2)."""
    purposes = _find_extension(certificate.extensions, x509.ExtendedKeyUsage) or ()
    usage = _find_extension(certificate.extensions, x509.KeyUsage)
    return ExtendedKeyUsageOID.OCSP_SIGNING in purposes and (usage is None or usage.digital_signature)


def _check_signature(response: ocsp.OCSPResponse, signer: x509.Certificate) -> None:
    key, algorithm = signer.public_key(), response.signature_hash_algorithm
    signature, data = response.signature, response.tbs_response_bytes
    if isinstance(algorithm, _WEAK_HASHES):
        raise NoResponse(f"the OCSP response is signed with {algorithm.name}, which is too weak")
    try:
        if isinstance(key, rsa.RSAPublicKey) and algorithm is not None:
            key.verify(signature, data, padding.PKCS1v15(), algorithm)
        elif isinstance(key, ec.EllipticCurvePublicKey) and algorithm is not None:
            key.verify(signature, data, ec.ECDSA(algorithm))
        elif isinstance(key, (ed25519.Ed25519PublicKey, ed448.Ed448PublicKey)):
            key.verify(signature, data)
        else:
            raise NoResponse(f"the OCSP response is signed with a key of an unknown kind ({type(key).__name__})")
    except InvalidSignature as error:
        raise NoResponse("the signature of the OCSP response is wrong") from error
