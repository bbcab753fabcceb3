"""Sources of AWS credentials: environment variables, web identity, ECS and EC2, in this order.

The client uses these sources only if its options contain no credentials. As in the AWS SDKs,
environment variables replace default endpoints: ``AWS_ENDPOINT_URL_STS``,
``AWS_CONTAINER_CREDENTIALS_FULL_URI`` and ``AWS_EC2_METADATA_SERVICE_ENDPOINT``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote, urlencode

from gmongo import _random
from gmongo._documents import Document
from gmongo.auth.http import request, request_json, text_fields
from gmongo.errors import ConfigurationError, OperationFailure

_TIMEOUT = 10.0  # seconds
_TOKEN_LIFETIME = "30"  # seconds
_MIN_VALIDITY = timedelta(minutes=5)  # minimum remaining validity of cached credentials
_ECS_URL = "http://169.254.170.2"
_EC2_URL = "http://169.254.169.254"
_STS_URL = "https://sts.amazonaws.com"
_ROLES_PATH = "/latest/meta-data/iam/security-credentials/"


@dataclass(frozen=True)
class AwsCredentials:
    """AWS credentials. Only temporary credentials have a session token and an expiration time."""

    key_id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    expires: datetime | None = None


class AwsCredentialsCache:
    """Source of AWS credentials for one client, with a cache of the credentials from a service."""

    def __init__(self) -> None:
        self._cached: AwsCredentials | None = None

    def find(self) -> AwsCredentials:
        """Return cached credentials that remain valid for more than five minutes, or find new credentials."""
        cached = self._cached
        if cached is not None and cached.expires and cached.expires - datetime.now(timezone.utc) > _MIN_VALIDITY:
            return cached
        credentials = _read_environment(os.environ)
        if credentials is None:
            self._cached = credentials = _fetch(os.environ)
        return credentials

    def clear(self) -> None:
        self._cached = None


def _read_environment(variables: Mapping[str, str]) -> AwsCredentials | None:
    key_id, secret = variables.get("AWS_ACCESS_KEY_ID"), variables.get("AWS_SECRET_ACCESS_KEY")
    token = variables.get("AWS_SESSION_TOKEN") or None
    if not key_id and not secret and not token:
        return None
    if not key_id or not secret:
        raise ConfigurationError(
            "authMechanism MONGODB-AWS: the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be "
            "set together, and AWS_SESSION_TOKEN needs both variables"
        )
    return AwsCredentials(key_id, secret, token)


def _fetch(variables: Mapping[str, str]) -> AwsCredentials:
    if variables.get("AWS_WEB_IDENTITY_TOKEN_FILE") and variables.get("AWS_ROLE_ARN"):
        return _assume_role(variables)
    relative_uri, full_uri = (variables.get(f"AWS_CONTAINER_CREDENTIALS_{kind}_URI") for kind in ("RELATIVE", "FULL"))
    if relative_uri or full_uri:
        return _fetch_from_ecs(variables, full_uri or f"{_ECS_URL}/{(relative_uri or '').lstrip('/')}")
    return _fetch_from_ec2(variables)


def _assume_role(variables: Mapping[str, str]) -> AwsCredentials:
    service = "the AWS security token service"
    fields = {
        "Action": "AssumeRoleWithWebIdentity",
        "RoleSessionName": variables.get("AWS_ROLE_SESSION_NAME") or f"gmongo-{_random.uuid4().hex}",
        "RoleArn": variables["AWS_ROLE_ARN"],
        "WebIdentityToken": read_token("AWS_WEB_IDENTITY_TOKEN_FILE", variables),
        "Version": "2011-06-15",
    }
    url = variables.get("AWS_ENDPOINT_URL_STS") or _STS_URL
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    reply: Any = request_json(service, "POST", url, headers, _TIMEOUT, urlencode(fields))
    for wrapper in ("AssumeRoleWithWebIdentityResponse", "AssumeRoleWithWebIdentityResult"):
        reply = reply.get(wrapper, reply)
    return _parse_credentials(service, reply.get("Credentials") or {}, "SessionToken")


def _fetch_from_ecs(variables: Mapping[str, str], url: str) -> AwsCredentials:
    service = "the ECS credentials endpoint"
    authorization = variables.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    headers = {"Authorization": authorization} if authorization else {}
    return _parse_credentials(service, request_json(service, "GET", url, headers, _TIMEOUT), "Token")


def _fetch_from_ec2(variables: Mapping[str, str]) -> AwsCredentials:
    service = "the EC2 metadata service"
    base = (variables.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _EC2_URL).rstrip("/")
    lifetime_header = {"X-aws-ec2-metadata-token-ttl-seconds": _TOKEN_LIFETIME}
    token = request(service, "PUT", f"{base}/latest/api/token", lifetime_header, _TIMEOUT).strip()
    headers = {"X-aws-ec2-metadata-token": token}
    role = request(service, "GET", base + _ROLES_PATH, headers, _TIMEOUT).strip().split("\n")[0]
    reply = request_json(service, "GET", base + _ROLES_PATH + quote(role), headers, _TIMEOUT)
    return _parse_credentials(service, reply, "Token")


def _parse_credentials(service: str, reply: Document, token_field: str) -> AwsCredentials:
    key_id, secret, session_token = text_fields(service, reply, "AccessKeyId", "SecretAccessKey", token_field)
    return AwsCredentials(key_id, secret, session_token, _parse_expiration_time(reply.get("Expiration")))


def _parse_expiration_time(value: object) -> datetime | None:
    """Convert an ISO 8601 text or a POSIX timestamp to a datetime, and an invalid value to None."""
    try:
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, timezone.utc)
        moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def read_token(variable: str, variables: Mapping[str, str]) -> str:
    """Read the token from the file that the environment variable `variable` names."""
    path = variables.get(variable)
    if not path:
        raise ConfigurationError(f"the environment variable {variable} must be the path of the file with the token")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError as error:
        raise OperationFailure(f"{variable}: cannot read {path!r}: {error.strerror}") from error
