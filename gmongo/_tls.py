"""TLS settings of connections. OCSP checks use pyOpenSSL (the extra ``gmongo[ocsp]``), not the standard library."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import cast

from gmongo._documents import Document
from gmongo._safe_log import safely
from gmongo.errors import ConfigurationError
from gmongo.options import tls_context
from gmongo.wire.tls import Tls

_log = logging.getLogger("gmongo.connection")
_FILES = ("tlscafile", "tlscertificatekeyfile", "tlscrlfile")
_PACKAGES = ("cryptography", "OpenSSL", "service_identity")
_LONGEST_INQUIRY = 5.0  # seconds


def tls_of(options: Document, connect_timeout: float | None) -> Tls | None:
    """Return the TLS settings of connections, or None if the connections do not use TLS.

    :param options: the options of a client or a key management service, by lower-case name.
    :param connect_timeout: the connect timeout in seconds, or None. An OCSP query may take half of this time.
    """
    renewal = _Renewal([options[name] for name in _FILES if options.get(name)], partial(_standard_context, options))
    context = tls_context(options)
    if context is None:
        return None
    plain = Tls(context, renewal)
    if context.verify_mode == ssl.CERT_NONE or options.get("tlsdisablecertificaterevocationcheck"):
        return plain
    if all(map(find_spec, _PACKAGES)):
        return _tls_with_ocsp(options, context, connect_timeout, renewal)
    if options.get("tlsdisableocspendpointcheck") is False:
        raise ConfigurationError("tlsDisableOCSPEndpointCheck=false needs the packages of gmongo[ocsp]")
    return plain


class _Renewal:
    """Function that returns a new TLS context after a change of a certificate file, and otherwise None.

    While a changed file is invalid, the last context stays in use, because tools may replace the files one by one.
    """

    def __init__(self, files: Sequence[str], make: Callable[[], ssl.SSLContext]) -> None:
        self._files = files
        self.make = make
        self._loaded_versions = self._file_versions()

    def __call__(self) -> ssl.SSLContext | None:
        versions = self._file_versions()
        if versions == self._loaded_versions:
            return None
        self._loaded_versions = versions  # if a file is invalid, read the files again only after another change
        try:
            return self.make()
        except Exception as error:  # the standard library or pyOpenSSL raised the error
            safely(_log.warning, "TLS: the certificate files have changed, and the old content stays in use: %s", error)
            return None

    def _file_versions(self) -> list[tuple[int, int, int] | None]:
        """Return the modification time, size and inode of each file, or None for a missing file."""
        versions: list[tuple[int, int, int] | None] = []
        for path in self._files:
            try:
                status = os.stat(path)
                versions.append((status.st_mtime_ns, status.st_size, status.st_ino))
            except OSError:
                versions.append(None)
        return versions


def _standard_context(options: Document) -> ssl.SSLContext:
    context = tls_context(options)
    assert context is not None
    return context


def _tls_with_ocsp(options: Document, context: ssl.SSLContext, connect_timeout: float | None, renewal: _Renewal) -> Tls:
    from gmongo.wire.ocsp.verifier import CheckedTls, Verifier

    # A revocation list replaces OCSP queries. OpenSSL rejects a certificate without the revocation list of its issuer.
    queries_responders = options.get("tlscrlfile") is None and not options.get("tlsdisableocspendpointcheck")
    seconds = _LONGEST_INQUIRY if connect_timeout is None else min(_LONGEST_INQUIRY, connect_timeout / 2)
    renewal.make = lambda: _openssl_context(options, _standard_context(options))
    return CheckedTls(_openssl_context(options, context), renewal, revocation=Verifier(queries_responders, seconds))


def _openssl_context(options: Document, context: ssl.SSLContext) -> ssl.SSLContext:
    """Return a pyOpenSSL context with the settings and files of `context`."""
    from gmongo.wire.openssl import OpenSslContext, Trust

    get = options.get
    names = [each["name"] for each in context.get_ciphers()]
    trust = Trust(
        ciphers=":".join((f"@SECLEVEL={context.security_level}", *names)),
        ca_file=get("tlscafile"),
        crl_file=get("tlscrlfile"),
        key_file=get("tlscertificatekeyfile"),
        password=get("tlscertificatekeyfilepassword"),
        check_name=context.check_hostname,
    )
    return cast(ssl.SSLContext, OpenSslContext(trust))
