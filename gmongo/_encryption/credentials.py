"""Credentials of KMS providers that the driver fetches on demand: AWS, Azure and Google Cloud."""

from __future__ import annotations

import os

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo.auth.aws_credentials import AwsCredentialsCache
from gmongo.auth.http import request_json, text_fields
from gmongo.errors import ConfigurationError
from gmongo.wire.timeout import remaining

_TIMEOUT = 10.0  # seconds for each request
_VALID_FOR = 60.0  # seconds. The driver uses a cached token only if the remaining lifetime of the token is longer.
_AZURE = "http://169.254.169.254"
_AZURE_QUERY = "api-version=2018-02-01&resource=https%3A%2F%2Fvault.azure.net"
_GOOGLE = "metadata.google.internal"


class OnDemandCredentials:
    """Source of the credentials of KMS providers, with a cache."""

    def __init__(self, providers: tuple[str, ...]) -> None:
        self._providers = providers
        self._aws = AwsCredentialsCache()
        self._azure = "", 0.0  # the access token, and the time of its expiration

    def __repr__(self) -> str:
        return f"<OnDemandCredentials {', '.join(self._providers)}>"

    def fetch(self, deadline: float | None) -> DocumentDict:
        """Return the credentials of the providers in the format of libmongocrypt."""
        fetchers = {"aws": self._aws_credentials, "azure": self._azure_credentials, "gcp": self._google_credentials}
        return {provider: fetchers[provider](deadline) for provider in self._providers}

    def _aws_credentials(self, deadline: float | None) -> dict[str, str]:
        try:
            aws = self._aws.find()
        except ConfigurationError as error:
            raise ConfigurationError(str(error).replace("authMechanism MONGODB-AWS", 'kms_providers["aws"]')) from None
        credentials = {"accessKeyId": aws.key_id, "secretAccessKey": aws.secret}
        return credentials if aws.token is None else {**credentials, "sessionToken": aws.token}

    def _azure_credentials(self, deadline: float | None) -> dict[str, str]:
        began = _clock.monotonic()
        token, valid_until = self._azure
        if valid_until - began <= _VALID_FOR:
            service = "the Azure metadata service"
            base = (os.environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST") or _AZURE).rstrip("/")
            url = f"{base}/metadata/identity/oauth2/token?{_AZURE_QUERY}"
            headers = {"Metadata": "true", "Accept": "application/json"}
            reply = request_json(service, "GET", url, headers, _timeout_until(deadline))
            token, lifetime = text_fields(service, reply, "access_token", "expires_in")
            self._azure = token, began + (float(lifetime) if lifetime.isdecimal() else 0.0)
        return {"accessToken": token}

    def _google_credentials(self, deadline: float | None) -> dict[str, str]:
        service = "the Google Cloud metadata service"
        host = os.environ.get("GCE_METADATA_HOST") or _GOOGLE
        url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
        reply = request_json(service, "GET", url, {"Metadata-Flavor": "Google"}, _timeout_until(deadline))
        return {"accessToken": text_fields(service, reply, "access_token")[0]}


def _timeout_until(deadline: float | None) -> float:
    seconds_left = remaining(deadline)
    return _TIMEOUT if seconds_left is None else max(min(_TIMEOUT, seconds_left), 0.001)
