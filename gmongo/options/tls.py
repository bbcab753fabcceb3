"""The TLS context of a client. Certificates are read here, once, so that a wrong file is an error at construction.

The standard library's ``ssl`` checks revocation against ``tlsCRLFile`` only. It neither asks for stapled OCSP responses
nor shows them; :mod:`gmongo.wire.openssl` does.
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
    """The key is encrypted, and there is no password."""


def tls_context(options: Document) -> ssl.SSLContext | None:
    """How connections are encrypted, or None if they are not.

    :param options: of the client, by their names in lower case.
    :raises ConfigurationError: a file cannot be read or is not what it should be; the message names the option.
    """
    if not tls_enabled(options):
        return None
    context: ssl.SSLContext = SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # gevent's is safe with and without monkey-patching
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # nor may a server make the client begin again, and again
    context.hostname_checks_common_name = False  # only subject alternative names, as RFC 6125 has it
    insecure = bool(options.get("tlsinsecure"))
    if insecure or options.get("tlsallowinvalidcertificates") or options.get("tlsallowinvalidhostnames"):
        context.check_hostname = False
    if insecure or options.get("tlsallowinvalidcertificates"):
        context.verify_mode = ssl.CERT_NONE
    if options.get("tlscertificatekeyfile"):
        _load_own(context, options["tlscertificatekeyfile"], options.get("tlscertificatekeyfilepassword"))
    if options.get("tlscafile"):
        _load("tlsCAFile", options["tlscafile"], context.load_verify_locations)
    elif context.verify_mode != ssl.CERT_NONE:
        context.load_default_certs()
    if options.get("tlscrlfile") and not options.get("tlsdisablecertificaterevocationcheck"):
        _load("tlsCRLFile", options["tlscrlfile"], context.load_verify_locations)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def _load(option: str, path: str, load: Callable[[str], None]) -> None:
    try:
        load(path)
    except ssl.SSLError as error:
        why = f" ({error.reason})" if error.reason else ""
        raise ConfigurationError(f"{option}: {path!r} must be a PEM file with {_CONTENT[option]}{why}") from error
    except OSError as error:
        raise ConfigurationError(f"{option}: cannot read {path!r}: {error.strerror or error}") from error


def _load_own(context: ssl.SSLContext, path: str, password: str | None) -> None:
    asked = False

    def give_password() -> str:  # without it, OpenSSL would ask on the terminal
        nonlocal asked
        asked = True
        if password is None:
            raise _NoPassword
        return password

    option = "tlsCertificateKeyFile"
    try:
        _load(option, path, lambda file: context.load_cert_chain(file, password=give_password))
    except _NoPassword:
        raise ConfigurationError(f"{option}: the key in {path!r} needs tlsCertificateKeyFilePassword") from None
    except ConfigurationError as error:
        if asked:
            raise ConfigurationError(f"tlsCertificateKeyFilePassword does not open the key in {path!r}") from error
        raise
