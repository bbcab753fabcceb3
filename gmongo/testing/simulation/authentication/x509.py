"""MONGODB-X509: the subject of the client certificate is the user name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHORT_NAMES = {
    "commonName": "CN", "countryName": "C", "domainComponent": "DC", "localityName": "L",
    "organizationName": "O", "organizationalUnitName": "OU", "stateOrProvinceName": "ST",
    "streetAddress": "STREET", "userId": "UID",
}  # fmt: skip
_ESCAPED = ',+"\\<>;'


def subject_of(certificate: Mapping[str, Any]) -> str:
    """Return the subject in the order of RFC 2253, the reverse of the order in the certificate."""
    parts = [
        "+".join(f"{_SHORT_NAMES.get(kind, kind)}={_escape(value)}" for kind, value in names)
        for names in certificate.get("subject", ())
    ]
    return ",".join(reversed(parts))


def _escape(value: str) -> str:
    return "".join(f"\\{char}" if char in _ESCAPED else char for char in value)
