"""Sources of access tokens for MONGODB-OIDC. The property ``ENVIRONMENT`` selects the source."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

from gmongo.auth.aws_credentials import read_token
from gmongo.auth.credential import Credential
from gmongo.auth.http import request, request_json, text_fields
from gmongo.auth_oidc import OIDCCallback, OIDCCallbackContext, OIDCCallbackResult
from gmongo.errors import OperationFailure

_KUBERNETES_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_AZURE = "http://169.254.169.254"
_GCP = "metadata"


class FileToken(OIDCCallback):
    """Callback that reads the token from a file, which the platform, such as Kubernetes, renews.

    The path is the value of the first environment variable in `variables` that is set, otherwise `default`.
    """

    def __init__(self, variables: tuple[str, ...], default: str | None = None) -> None:
        self._variables = variables
        self._default = default

    def fetch(self, context: OIDCCallbackContext) -> OIDCCallbackResult:
        variable = next((name for name in self._variables if os.environ.get(name)), self._variables[0])
        paths = {variable: os.environ.get(variable) or self._default or ""}
        return OIDCCallbackResult(read_token(variable, paths))


class AzureToken(OIDCCallback):
    """Callback that requests the token for ``TOKEN_RESOURCE`` from the metadata service of an Azure virtual machine."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    def fetch(self, context: OIDCCallbackContext) -> OIDCCallbackResult:
        service = "the Azure metadata service"
        base = (os.environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST") or _AZURE).rstrip("/")
        query = f"resource={quote(self._resource, safe='')}&api-version=2018-02-01"
        if context.username:
            query += f"&client_id={quote(context.username, safe='')}"
        url = f"{base}/metadata/identity/oauth2/token?{query}"
        headers = {"Metadata": "true", "Accept": "application/json"}
        reply = request_json(service, "GET", url, headers, context.timeout_seconds)
        [token] = text_fields(service, reply, "access_token")
        return OIDCCallbackResult(token, _seconds(reply.get("expires_in")))


class GcpToken(OIDCCallback):
    """Callback that requests the token for ``TOKEN_RESOURCE`` from the Google Cloud metadata service."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    def fetch(self, context: OIDCCallbackContext) -> OIDCCallbackResult:
        service = "the Google Cloud metadata service"
        host = os.environ.get("GCE_METADATA_HOST") or _GCP
        path = "/computeMetadata/v1/instance/service-accounts/default/identity"
        url = f"http://{host}{path}?audience={quote(self._resource, safe='')}"
        token = request(service, "GET", url, {"Metadata-Flavor": "Google"}, context.timeout_seconds).strip()
        if not token:
            raise OperationFailure(f"{service} returned no token")
        return OIDCCallbackResult(token)


def callback_of(credential: Credential) -> OIDCCallback:
    """Return the callback for a credential: the callback of the application, or the callback for ``ENVIRONMENT``."""
    properties = credential.properties
    callback: OIDCCallback | None = properties.get("OIDC_CALLBACK") or properties.get("OIDC_HUMAN_CALLBACK")
    if callback is not None:
        return callback
    environment, resource = properties["ENVIRONMENT"], properties.get("TOKEN_RESOURCE", "")
    if environment == "azure":
        return AzureToken(resource)
    if environment == "gcp":
        return GcpToken(resource)
    if environment == "k8s":
        return FileToken(("AZURE_FEDERATED_TOKEN_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"), _KUBERNETES_FILE)
    return FileToken(("OIDC_TOKEN_FILE",))


def _seconds(value: Any) -> float | None:
    """Convert a lifetime in seconds to a number. Azure sends a string. Return None for an invalid value."""
    try:
        return max(float(value), 0.0)
    except (TypeError, ValueError):
        return None
