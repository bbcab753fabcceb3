"""Options of client-side encryption, which refuse."""

from __future__ import annotations

from gmongo._stand_in.refused import Refused

__all__ = [
    "AsyncHTTPProxyKMSConnect",
    "AutoEncryptionOpts",
    "HTTPProxyKMSConnect",
    "KMSConnectContext",
    "PrefixOpts",
    "RangeOpts",
    "StringOpts",
    "SubstringOpts",
    "SuffixOpts",
]


class Encryption(Refused):
    """What has to do with client-side encryption."""

    why = "it has no client-side encryption"


class AutoEncryptionOpts(Encryption):
    """Refuses."""


class RangeOpts(Encryption):
    """Refuses."""


class StringOpts(Encryption):
    """Refuses."""


class PrefixOpts(Encryption):
    """Refuses."""


class SuffixOpts(Encryption):
    """Refuses."""


class SubstringOpts(Encryption):
    """Refuses."""


class KMSConnectContext(Encryption):
    """Refuses."""


class HTTPProxyKMSConnect(Encryption):
    """Refuses."""


class AsyncHTTPProxyKMSConnect(Encryption):
    """Refuses."""
