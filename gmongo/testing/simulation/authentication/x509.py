"""The server side of MONGODB-X509. The user name is the subject of the client certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHORT_NAMES = {
    "commonName": "CN", "countryName": "C", "domainComponent": "DC", "localityName": "L",
    "organizationName": "O", "organizationalUnitName": "OU", "stateOrProvinceName": "ST",
    "streetAddress": "STREET", "userId": "UID"
}  # fmt: skip
_ESCAPED = ',+"\\<>;'


def subject_of(certificate: Mapping[str, Any]) -> str:
    """Return the subject of a certificate as text of RFC 2253: the last attribute of the subject is first."""
    parts = [
        "+".join(f"{_SHORT_NAMES.get(kind, kind)}={_escape(value)}" for kind, value in names)
        for names in certificate.get("subject", ())
    ]
    return ",".join(reversed(parts))


def _escape(value: str) -> str:
    return "".join(f"\\{char}" if char in _ESCAPED else char for char in value)
