"""Application callbacks that return access tokens for the mechanism MONGODB-OIDC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

__all__ = ["OIDCCallback", "OIDCCallbackContext", "OIDCCallbackResult", "OIDCIdPInfo"]


@dataclass
class OIDCIdPInfo:
    """Identity provider information from the server, for a human callback.

    :param issuer: the URL of the authorization server.
    :param clientId: the client ID at the authorization server; None by default.
    :param requestScopes: additional scopes to request; None by default.
    """

    issuer: str
    clientId: str | None = None
    requestScopes: list[str] | None = None


@dataclass
class OIDCCallbackContext:
    """Argument of a callback.

    :param timeout_seconds: the time limit of the callback, in seconds.
    :param username: the user name of the credential; may be empty.
    :param version: the version of the callback interface; 1.
    :param refresh_token: the refresh token of an earlier call, for a human callback; None by default.
    :param idp_info: the identity provider, for a human callback; None by default.
    """

    timeout_seconds: float
    username: str
    version: int
    refresh_token: str | None = field(default=None, repr=False)
    idp_info: OIDCIdPInfo | None = None


@dataclass
class OIDCCallbackResult:
    """Result of a callback.

    :param access_token: the access token, sent to the server unchanged.
    :param expires_in_seconds: the lifetime of the token, in seconds; None (the default) or 0 if unknown.
    :param refresh_token: the refresh token for the next call; None by default.
    """

    access_token: str = field(repr=False)
    expires_in_seconds: float | None = None
    refresh_token: str | None = field(default=None, repr=False)


class OIDCCallback(ABC):
    """Base class of callbacks.

    The authentication mechanism property ``OIDC_CALLBACK`` sets a machine callback, and ``OIDC_HUMAN_CALLBACK`` sets a
    human callback.
    """

    @abstractmethod
    def fetch(self, context: OIDCCallbackContext) -> OIDCCallbackResult:
        """Return an access token. The driver never calls it concurrently. It must wait cooperatively (with gevent).

        Specification: Authentication, "MONGODB-OIDC".

        :param context: the time limit, the user name and the identity provider.
        :returns: the token and its lifetime.
        """
