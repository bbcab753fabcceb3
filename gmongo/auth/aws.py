"""MONGODB-AWS: the client signs a request, which the server sends to the AWS security token service (STS).

The reply of STS proves the identity of the client.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime, timezone
from typing import ClassVar

import bson
from bson.errors import BSONError

from gmongo import _random
from gmongo.auth.aws_credentials import AwsCredentials
from gmongo.auth.conversation import SaslConversation
from gmongo.errors import OperationFailure, ProtocolError

_NONCE_SIZE = 32
_MAX_HOST_LENGTH = 255
_BODY = "Action=GetCallerIdentity&Version=2011-06-15"
_ALGORITHM = "AWS4-HMAC-SHA256"
_NO_CHANNEL_BINDING = ord("n")


class AwsConversation(SaslConversation):
    """One MONGODB-AWS conversation. `find_credentials` runs after the first reply of the server."""

    mechanism = "MONGODB-AWS"
    can_be_speculative: ClassVar[bool] = False

    def __init__(self, database: str, find_credentials: Callable[[], AwsCredentials]) -> None:
        super().__init__(database)
        self._find_credentials = find_credentials
        self._nonce = _random.urandom(_NONCE_SIZE)

    def first_payload(self) -> bytes:
        return bson.encode({"r": self._nonce, "p": _NO_CHANNEL_BINDING})

    def respond(self, payload: bytes) -> bytes:
        self.has_sent_last = True
        nonce, host = self._parse_first(payload)
        credentials = self._find_credentials()
        date = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        fields = {"a": authorization(credentials, nonce, host, date), "d": date}
        if credentials.token:
            fields["t"] = credentials.token
        return bson.encode(fields)

    def _parse_first(self, payload: bytes) -> tuple[bytes, str]:
        try:
            reply = bson.decode(payload)
            nonce, host = bytes(reply["s"]), reply["h"]
        except (BSONError, KeyError, TypeError, ValueError):
            raise ProtocolError("MONGODB-AWS: the server's first message is not well formed") from None
        if len(nonce) != 2 * _NONCE_SIZE or not nonce.startswith(self._nonce):
            raise OperationFailure("MONGODB-AWS: the server nonce does not extend the client nonce")
        return nonce, host


def region_of(host: str) -> str:
    """Return the AWS region of an STS host, or raise OperationFailure for an invalid host name."""
    labels = host.split(".") if isinstance(host, str) else []
    if not labels or not all(labels) or len(host.encode()) > _MAX_HOST_LENGTH:
        raise OperationFailure(f"MONGODB-AWS: the server sent an invalid STS host name: {str(host)[:300]!r}")
    return "us-east-1" if host == "sts.amazonaws.com" or len(labels) == 1 else labels[1]


def authorization(credentials: AwsCredentials, server_nonce: bytes, host: str, date: str) -> str:
    """Return the Authorization header (AWS Signature Version 4) of the request that the server sends to STS.

    `date` is the time of the request in UTC, such as ``20150830T123600Z``.
    """
    headers = {
        "content-length": str(len(_BODY)),
        "content-type": "application/x-www-form-urlencoded",
        "host": host,
        "x-amz-date": date,
        "x-mongodb-gs2-cb-flag": "n",
        "x-mongodb-server-nonce": base64.b64encode(server_nonce).decode(),
    }
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(headers))
    canonical_headers = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join(("POST", "/", "", canonical_headers, names, hashlib.sha256(_BODY.encode()).hexdigest()))
    region = region_of(host)
    scope = f"{date[:8]}/{region}/sts/aws4_request"
    string_to_sign = "\n".join((_ALGORITHM, date, scope, hashlib.sha256(request.encode()).hexdigest()))
    signature = sign(credentials.secret, date[:8], region, "sts", string_to_sign)
    return f"{_ALGORITHM} Credential={credentials.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"


def sign(secret: str, day: str, region: str, service: str, text: str) -> str:
    """Return the signature of `text`, with a key derived from the secret, the day, the region and the service."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
