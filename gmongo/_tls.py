"""How connections are encrypted: by the standard library, or by pyOpenSSL where OCSP is to be checked, which takes the
extra ``gmongo[ocsp]``.
"""

from __future__ import annotations

import ssl
from importlib.util import find_spec
from typing import cast

from gmongo._documents import Document
from gmongo.errors import ConfigurationError
from gmongo.options import tls_context
from gmongo.wire.tls import Tls

_PACKAGES = ("cryptography", "OpenSSL", "service_identity")
_LONGEST_INQUIRY = 5.0  # seconds


def tls_of(options: Document, connect_timeout: float | None) -> Tls | None:
    """How connections are encrypted, or None if they are not.

    :param options: of a client or a key management service, by their names in lower case.
    :param connect_timeout: how long connecting may take, in seconds; None is without limit. Responders have half of it,
        so that one that does not answer makes no connection fail.
    :raises ConfigurationError: a file cannot be read; or OCSP is asked for, and the extra is missing.
    """
    context = tls_context(options)
    if context is None:
        return None
    if context.verify_mode == ssl.CERT_NONE or options.get("tlsdisablecertificaterevocationcheck"):
        return Tls(context)
    if all(map(find_spec, _PACKAGES)):
        return _checked(options, context, connect_timeout)
    if options.get("tlsdisableocspendpointcheck") is False:
        raise ConfigurationError("tlsDisableOCSPEndpointCheck=false needs the packages of gmongo[ocsp]")
    return Tls(context)


def _checked(options: Document, context: ssl.SSLContext, connect_timeout: float | None) -> Tls:
    from gmongo.wire.ocsp.revocation import Revocation
    from gmongo.wire.ocsp.transport import CheckedTls
    from gmongo.wire.openssl import OpenSslContext, Trust

    get = options.get
    crl_file = get("tlscrlfile")
    names = [each["name"] for each in context.get_ciphers()]
    trust = Trust(
        ciphers=":".join((f"@SECLEVEL={context.security_level}", *names)),
        ca_file=get("tlscafile"),
        crl_file=crl_file,
        key_file=get("tlscertificatekeyfile"),
        password=get("tlscertificatekeyfilepassword"),
        check_name=context.check_hostname,
    )
    # What is checked against a list needs no responder; OpenSSL refuses a certificate whose issuer has none.
    asks = crl_file is None and not get("tlsdisableocspendpointcheck")
    seconds = _LONGEST_INQUIRY if connect_timeout is None else min(_LONGEST_INQUIRY, connect_timeout / 2)
    return CheckedTls(cast(ssl.SSLContext, OpenSslContext(trust)), revocation=Revocation(asks, seconds))
