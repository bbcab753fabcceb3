"""TLS context of a client.

The module ``ssl`` of the standard library checks the revocation of certificates only with ``tlsCRLFile``. For stapled
OCSP responses, see :mod:`gmongo.wire.openssl`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

from gevent.ssl import SSLContext

from gmongo._documents import Document
from gmongo.errors import ConfigurationError
from gmongo.options.client_values import tls_enabled

_CONTENT = {
    "tlsCAFile": "certificates",
    "tlsCRLFile": "a certificate revocation list",
    "tlsCertificateKeyFile": "a certificate and its private key",
}


class _NoPassword(Exception):
    """A key is encrypted, but the application has not set a password."""


def tls_context(options: Document) -> ssl.SSLContext | None:
    """Return the TLS context, or None if the client does not use TLS."""
    if not tls_enabled(options):
        return None
    # The SSLContext of gevent works with and without monkey-patching.
    context: ssl.SSLContext = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # a server must not make the client renegotiate repeatedly
    # As RFC 6125 requires, only the subject alternative names of a certificate are valid host names.
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
        raise ConfigurationError(f"{option}: {path!r} must be a PEM file with {_CONTENT[option]}{reason}") from error
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
