"""Base class, arguments and results of the callbacks that return access tokens for MONGODB-OIDC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

__all__ = ["OIDCCallback", "OIDCCallbackContext", "OIDCCallbackResult", "OIDCIdPInfo"]


@dataclass
class OIDCIdPInfo:
    """Information from the MongoDB server about the identity provider, for a human callback.

    :param issuer: the URL of the authorization server.
    :param clientId: the client ID at the authorization server; None (the default) if MongoDB sent no client ID.
    :param requestScopes: additional scopes of the access token; None (the default) if MongoDB sent no scopes.
    """

    issuer: str
    clientId: str | None = None
    requestScopes: list[str] | None = None


@dataclass
class OIDCCallbackContext:
    """Argument of an OIDC callback.

    :param timeout_seconds: the time limit of the callback, in seconds.
    :param username: the user name of the credential. The user name may be empty.
    :param version: the version of the callback interface, which is 1.
    :param refresh_token: the refresh token that the previous call of the callback returned; None by default.
    :param idp_info: the data about the identity provider, for a human callback; None by default.
    """

    timeout_seconds: float
    username: str
    version: int
    refresh_token: str | None = field(default=None, repr=False)
    idp_info: OIDCIdPInfo | None = None


@dataclass
class OIDCCallbackResult:
    """Result of an OIDC callback.

    :param access_token: the access token. The driver sends the token to the server unchanged.
    :param expires_in_seconds: the lifetime of the token, in seconds; None (the default) or 0 means an unknown lifetime.
    :param refresh_token: the refresh token for the next call of the callback; None by default.
    """

    access_token: str = field(repr=False)
    expires_in_seconds: float | None = None
    refresh_token: str | None = field(default=None, repr=False)


class OIDCCallback(ABC):
    """Base class of OIDC callbacks, for the mechanism properties ``OIDC_CALLBACK`` and ``OIDC_HUMAN_CALLBACK``."""

    @abstractmethod
    def fetch(self, context: OIDCCallbackContext) -> OIDCCallbackResult:
        """Return an access token. Each wait in this method must let other greenlets run.

        A client never runs two calls of this method concurrently. Specification: Authentication, "MONGODB-OIDC".

        :param context: the input of the callback, such as the time limit and the user name.
        :returns: the access token, and optionally its lifetime and a refresh token.
        """
