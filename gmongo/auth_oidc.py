"""Callbacks for the mechanism MONGODB-OIDC: how an application gets its access tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

__all__ = ["OIDCCallback", "OIDCCallbackContext", "OIDCCallbackResult", "OIDCIdPInfo"]


@dataclass
class OIDCIdPInfo:
    """The identity provider that the server names to a human's callback.

    :param issuer: URL of the authorization server.
    :param clientId: of this client there.
    :param requestScopes: further scopes to ask for.
    """

    issuer: str
    clientId: str | None = None
    requestScopes: list[str] | None = None


@dataclass
class OIDCCallbackContext:
    """What a callback is given.

    :param timeout_seconds: how long it may take.
    :param username: of the credential, if it has one.
    :param version: of the callback interface; 1.
    :param refresh_token: that an earlier call returned, if there is one; for a human's callback.
    :param idp_info: the identity provider; for a human's callback.
    """

    timeout_seconds: float
    username: str
    version: int
    refresh_token: str | None = field(default=None, repr=False)
    idp_info: OIDCIdPInfo | None = None


@dataclass
class OIDCCallbackResult:
    """What a callback returns.

    :param access_token: sent to the server as it is.
    :param expires_in_seconds: how long the token is valid; None or 0 if that is not known.
    :param refresh_token: given to the next call.
    """

    access_token: str = field(repr=False)
    expires_in_seconds: float | None = None
    refresh_token: str | None = field(default=None, repr=False)


class OIDCCallback(ABC):
    """Base class of callbacks, given as ``authMechanismProperties={"OIDC_CALLBACK": ...}`` (for machines) or
    ``{"OIDC_HUMAN_CALLBACK": ...}``.
    """

    @abstractmethod
    def fetch(self, context: OIDCCallbackContext) -> OIDCCallbackResult:
        """Get an access token. It is never called twice at a time, and waits as gevent wants it to.

        Specification: Authentication, "MONGODB-OIDC".

        :param context: what there is to know.
        :returns: the token, and how long it is valid.
        """
