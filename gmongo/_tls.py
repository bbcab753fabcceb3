"""TLS settings of connections. OCSP checks use pyOpenSSL (the extra ``gmongo[ocsp]``), not the standard library."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import cast

from gevent.ssl import SSLContext

from gmongo._documents import Document
from gmongo._safe_log import safely
from gmongo.errors import ConfigurationError
from gmongo.options.client_values import tls_enabled
from gmongo.wire.tls import Tls

_log = logging.getLogger("gmongo.connection")
_FILE_OPTIONS = ("tlscafile", "tlscertificatekeyfile", "tlscrlfile")
_OCSP_PACKAGES = ("cryptography", "OpenSSL", "service_identity")
_MAX_OCSP_QUERY_TIME = 5.0  # seconds
_PEM_PARTS = {
    "tlsCAFile": "certificates",
    "tlsCRLFile": "a certificate revocation list",
    "tlsCertificateKeyFile": "a certificate and its private key",
}


def tls_of(options: Document, connect_timeout: float | None) -> Tls | None:
    """Return the TLS settings of connections, or None if the connections do not use TLS.

    :param options: the options of a client or a key management service, by lower-case name.
    :param connect_timeout: the connect timeout in seconds, or None. The time limit of an OCSP query
        is half of the connect timeout, and at most 5 seconds.
    """
    renewal = _Renewal([options[name] for name in _FILE_OPTIONS if options.get(name)], partial(_make_context, options))
    context = tls_context(options)
    if context is None:
        return None
    tls_without_ocsp = Tls(context, renewal)
    if context.verify_mode == ssl.CERT_NONE or options.get("tlsdisablecertificaterevocationcheck"):
        return tls_without_ocsp
    if all(map(find_spec, _OCSP_PACKAGES)):
        return _make_tls_with_ocsp(options, context, connect_timeout, renewal)
    if options.get("tlsdisableocspendpointcheck") is False:
        raise ConfigurationError("tlsDisableOCSPEndpointCheck=false needs the packages of gmongo[ocsp]")
    return tls_without_ocsp


class _Renewal:
    """Callable that returns a new TLS context after a certificate file changes, and otherwise None.

    While a changed file is invalid, the driver uses the last valid context, because tools may
    replace the files one by one.
    """

    def __init__(self, files: Sequence[str], make: Callable[[], ssl.SSLContext]) -> None:
        self._files = files
        self.make = make
        self._loaded_versions = self._read_file_versions()

    def __call__(self) -> ssl.SSLContext | None:
        versions = self._read_file_versions()
        if versions == self._loaded_versions:
            return None
        self._loaded_versions = versions  # if a file is invalid, read the files again only after the next change
        try:
            return self.make()
        except Exception as error:  # gmongo, the standard library or pyOpenSSL raised the error
            safely(_log.warning, "TLS: the certificate files have changed, and the old content stays in use: %s", error)
            return None

    def _read_file_versions(self) -> list[tuple[int, int, int] | None]:
        """Return each file's modification time, size and inode, or None for an inaccessible file."""
        versions: list[tuple[int, int, int] | None] = []
        for path in self._files:
            try:
                status = os.stat(path)
                versions.append((status.st_mtime_ns, status.st_size, status.st_ino))
            except OSError:
                versions.append(None)
        return versions


def _make_context(options: Document) -> ssl.SSLContext:
    context = tls_context(options)
    assert context is not None
    return context


def _make_tls_with_ocsp(
    options: Document, context: ssl.SSLContext, connect_timeout: float | None, renewal: _Renewal
) -> Tls:
    from gmongo.wire.ocsp.verifier import CheckedTls, Verifier

    # A revocation list replaces OCSP queries: OpenSSL rejects a certificate if the list of its issuer is missing.
    queries_responders = options.get("tlscrlfile") is None and not options.get("tlsdisableocspendpointcheck")
    seconds = _MAX_OCSP_QUERY_TIME if connect_timeout is None else min(_MAX_OCSP_QUERY_TIME, connect_timeout / 2)
    renewal.make = lambda: _make_openssl_context(options, _make_context(options))
    revocation = Verifier(queries_responders, seconds)
    return CheckedTls(_make_openssl_context(options, context), renewal, revocation=revocation)


def _make_openssl_context(options: Document, context: ssl.SSLContext) -> ssl.SSLContext:
    """Return a pyOpenSSL context with the settings of `context` and the files of `options`."""
    from gmongo.wire.openssl import OpenSslContext, Trust

    get = options.get
    cipher_names = [each["name"] for each in context.get_ciphers()]
    trust = Trust(
        ciphers=":".join((f"@SECLEVEL={context.security_level}", *cipher_names)),
        ca_file=get("tlscafile"),
        crl_file=get("tlscrlfile"),
        key_file=get("tlscertificatekeyfile"),
        password=get("tlscertificatekeyfilepassword"),
        check_name=context.check_hostname,
    )
    return cast(ssl.SSLContext, OpenSslContext(trust))


class _NoPassword(Exception):
    """A key is encrypted, but the application has not set a password."""


def tls_context(options: Document) -> ssl.SSLContext | None:
    """Return the TLS context, or None if the client does not use TLS."""
    if not tls_enabled(options):
        return None
    # The SSLContext of gevent works with and without monkey-patching.
    context: ssl.SSLContext = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # no server can make the client renegotiate repeatedly
    # As RFC 9525 requires, only the subject alternative names of a certificate are valid host names.
    context.hostname_checks_common_name = False
    insecure = bool(options.get("tlsinsecure"))
    if insecure or options.get("tlsallowinvalidcertificates") or options.get("tlsallowinvalidhostnames"):
        context.check_hostname = False
    if insecure or options.get("tlsallowinvalidcertificates"):
        context.verify_mode = ssl.CERT_NONE
    if options.get("tlscertificatekeyfile"):
        _load_client_certificate(
            context, options["tlscertificatekeyfile"], options.get("tlscertificatekeyfilepassword")
        )
    if options.get("tlscafile"):
        _load_file("tlsCAFile", options["tlscafile"], context.load_verify_locations)
    elif context.verify_mode != ssl.CERT_NONE:
        context.load_default_certs()
    if options.get("tlscrlfile") and not options.get("tlsdisablecertificaterevocationcheck"):
        _load_file("tlsCRLFile", options["tlscrlfile"], context.load_verify_locations)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def _load_file(option: str, path: str, load_path: Callable[[str], None]) -> None:
    try:
        load_path(path)
    except ssl.SSLError as error:
        reason = f" ({error.reason})" if error.reason else ""
        raise ConfigurationError(f"{option}: {path!r} must be a PEM file with {_PEM_PARTS[option]}{reason}") from error
    except OSError as error:
        raise ConfigurationError(f"{option}: cannot read {path!r}: {error.strerror or error}") from error


def _load_client_certificate(context: ssl.SSLContext, path: str, password: str | None) -> None:
    is_encrypted = False

    def password_callback() -> str:  # without this callback, OpenSSL would read the password from the terminal
        nonlocal is_encrypted
        is_encrypted = True
        if password is None:
            raise _NoPassword
        return password

    option = "tlsCertificateKeyFile"
    try:
        _load_file(option, path, lambda file: context.load_cert_chain(file, password=password_callback))
    except _NoPassword:
        raise ConfigurationError(f"{option}: the key in {path!r} needs tlsCertificateKeyFilePassword") from None
    except ConfigurationError as error:
        if is_encrypted:
            raise ConfigurationError(f"tlsCertificateKeyFilePassword does not open the key in {path!r}") from error
        raise
