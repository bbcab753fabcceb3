"""TLS settings for key management services. TLS is mandatory, and options cannot weaken TLS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gmongo._documents import Document
from gmongo._tls import tls_of
from gmongo._truncated_repr import short
from gmongo.errors import ConfigurationError
from gmongo.options.rules import TLS_DETAIL_OPTIONS, validate_keyword_options
from gmongo.wire.tls import Tls

TIMEOUT = 10.0  # time limits of the connection attempt and of the response, each in seconds
_INSECURE_OPTIONS = frozenset(
    {"tlsInsecure", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames", "tlsDisableCertificateRevocationCheck"}
)
_ALLOWED = {name.lower(): name for name in TLS_DETAIL_OPTIONS if name not in _INSECURE_OPTIONS}


class KmsTls:
    """TLS settings of KMS providers. `options` maps providers to options such as ``tlsCAFile``."""

    def __init__(self, options: Document | None, providers: Iterable[str]) -> None:
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"kms_tls_options must be a dict, not {short(options)}")
        self._tls_by_provider = {name: _provider_tls(name, each) for name, each in (options or {}).items()}
        remote_providers = {name for name in providers if name.partition(":")[0] != "local"}
        # Loading certificate authorities takes milliseconds, so create the default only if necessary.
        self._default = None if remote_providers <= set(self._tls_by_provider) else tls_of({"tls": True}, TIMEOUT)

    def for_provider(self, provider: str) -> Tls:
        tls = self._tls_by_provider.get(provider, self._default)
        assert tls is not None
        return tls


def _provider_tls(provider: str, options: object) -> Tls | None:
    option = f'kms_tls_options["{provider}"]'
    if not isinstance(options, Mapping):
        raise TypeError(f"{option} must be a dict, not {short(options)}")
    checked_options = validate_keyword_options(
        {"tls": True} | {name: value for name, value in options.items() if name not in ("tls", "ssl")}
    )
    for name in ("tls", "ssl"):
        if options.get(name, True) is not True:
            raise ConfigurationError(f"{option}: TLS is required for KMS providers, so {name} must not be false")
    for name in _INSECURE_OPTIONS:
        if name.lower() in checked_options:
            raise ConfigurationError(f"{option}: Insecure TLS options prohibited: {name}")
    for name in checked_options:
        if name != "tls" and name not in _ALLOWED:
            raise ConfigurationError(f"{option}: {name} is not a TLS option. Options: {', '.join(_ALLOWED.values())}")
    return tls_of(checked_options, TIMEOUT)
