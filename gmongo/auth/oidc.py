"""MONGODB-OIDC: access tokens of an identity provider, which a callback of the application's or a service gives out."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import bson
from bson.errors import BSONError
from gevent import sleep
from gevent.lock import BoundedSemaphore

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo._server_facts import codes
from gmongo.auth.conversation import Command, Reply, Run, SaslConversation, converse
from gmongo.auth.credential import Credential
from gmongo.auth.login import Login, speculated, speculation
from gmongo.auth.oidc_environments import callback_of
from gmongo.auth_oidc import OIDCCallback, OIDCCallbackContext, OIDCCallbackResult, OIDCIdPInfo
from gmongo.errors import ConfigurationError, OperationFailure, ProtocolError

_VERSION = 1
_PAUSE = 0.1  # seconds between two calls of the callback, at least
_FOR_A_HUMAN = 300.0  # seconds
_FOR_A_MACHINE = 60.0  # seconds


class OidcTokens:
    """The tokens of one client, and the callback they come from, which is called by one greenlet at a time."""

    def __init__(self, credential: Credential) -> None:
        self.credential = credential
        self.human = credential.properties.get("OIDC_HUMAN_CALLBACK") is not None
        self.access: str | None = None
        self.refresh: str | None = None
        self.provider: OIDCIdPInfo | None = None
        self._callback: OIDCCallback = callback_of(credential)
        self._turn = BoundedSemaphore()
        self._last_call = 0.0

    def __repr__(self) -> str:
        return f"<OidcTokens {'with' if self.access else 'without'} a token>"

    def get(self, seconds: float | None, provider: OIDCIdPInfo | None = None) -> tuple[str, bool]:
        """The access token, and whether it was there already.

        :param seconds: that are left for the operation, if they are limited.
        :param provider: for a human's callback; if it is given, the call begins without a refresh token.
        """
        with self._turn:
            if self.access is not None:
                return self.access, True
            sleep_for = self._last_call + _PAUSE - _clock.monotonic()
            if sleep_for > 0:
                sleep(sleep_for)
            self._last_call = _clock.monotonic()
            result = self._fetch(seconds, provider)
            if provider is not None:
                self.provider = provider
            self.access, self.refresh = result.access_token, result.refresh_token
            return result.access_token, False

    def _fetch(self, seconds: float | None, provider: OIDCIdPInfo | None) -> OIDCCallbackResult:
        context = OIDCCallbackContext(
            _FOR_A_HUMAN if self.human else min(_FOR_A_MACHINE, seconds or _FOR_A_MACHINE),
            self.credential.username or "",
            _VERSION,
            None if provider is not None else self.refresh,
            provider or self.provider,
        )
        result = self._callback.fetch(context)
        if not isinstance(result, OIDCCallbackResult) or not isinstance(result.access_token, str):
            raise ValueError(
                f"an OIDC callback must return an OIDCCallbackResult with an access token, not {type(result).__name__}"
            )
        lifetime = result.expires_in_seconds
        if lifetime is not None and lifetime < 0:
            raise ValueError(f"an OIDC callback must not return a negative lifetime, was {lifetime}")
        return result

    def invalidate(self, token: str | None) -> None:
        """Forget an access token, unless there is a newer one by now."""
        if token is not None and self.access == token:
            self.access = None


class TokenConversation(SaslConversation):
    """One step: here is the token."""

    mechanism = "MONGODB-OIDC"

    def __init__(self, database: str, token: str) -> None:
        super().__init__(database)
        self._token = token

    def begin(self) -> bytes:
        return bson.encode({"jwt": self._token})

    def step(self, payload: bytes, done: bool) -> bytes:
        if not done:
            raise self.too_long()
        return b""


class PrincipalConversation(SaslConversation):
    """Two steps: the server names the identity provider, then here is the token.

    :param get_token: called with the provider.
    """

    mechanism = "MONGODB-OIDC"

    def __init__(self, database: str, username: str | None, get_token: Callable[[OIDCIdPInfo], str]) -> None:
        super().__init__(database)
        self._username = username
        self._get_token = get_token
        self._answered = False

    def begin(self) -> bytes:
        return bson.encode({} if self._username is None else {"n": self._username})

    def step(self, payload: bytes, done: bool) -> bytes:
        if self._answered:
            if not done:
                raise self.too_long()
            return b""
        if done:
            raise self.too_early()
        self._answered = True
        return bson.encode({"jwt": self._get_token(_read_provider(payload))})


class OidcLogin(Login):
    """MONGODB-OIDC for a machine.

    :param tokens: the client's.
    """

    patience: ClassVar[float] = _FOR_A_MACHINE

    def __init__(self, tokens: OidcTokens) -> None:
        self._tokens = tokens
        self._source = tokens.credential.source
        self._token: str | None = None  # with which the connection has authenticated

    def hello_fields(self) -> Command:
        self._token = self._tokens.access
        return {} if self._token is None else speculation(TokenConversation(self._source, self._token))

    def authenticate(self, run: Run, hello: Reply, seconds: float | None) -> None:
        begun = speculated(hello)
        if self._token is not None and begun is not None and begun.get("done"):
            return
        self._token = None
        self._authenticate(run, seconds)

    def authenticate_again(self, run: Run, seconds: float | None) -> None:
        self._tokens.invalidate(self._token)
        self._token = None
        self._authenticate(run, seconds)

    def _authenticate(self, run: Run, seconds: float | None) -> None:
        token, kept = self._tokens.get(seconds)
        if not (kept and self._try(run, token)):
            self._use(run, self._tokens.get(seconds)[0] if kept else token)

    def _try(self, run: Run, token: str) -> bool:
        """Use a token that may be too old; False if it is. What else may be wrong says nothing of the token."""
        try:
            self._use(run, token)
        except OperationFailure as error:
            if error.code != codes.AUTHENTICATION_FAILED:
                raise
            self._tokens.invalidate(token)
            return False
        return True

    def _use(self, run: Run, token: str) -> None:
        self._token = token
        converse(run, TokenConversation(self._source, token))


class HumanOidcLogin(OidcLogin):
    """MONGODB-OIDC with a callback that asks a human.

    :param host: that the connection leads to.
    :raises ConfigurationError: ALLOWED_HOSTS does not allow it.
    """

    patience: ClassVar[float] = _FOR_A_HUMAN

    def __init__(self, tokens: OidcTokens, host: str) -> None:
        super().__init__(tokens)
        patterns = tokens.credential.properties["ALLOWED_HOSTS"]
        if not is_allowed(host, patterns):
            raise ConfigurationError(
                f"MONGODB-OIDC: tokens must not be sent to {host!r}, as ALLOWED_HOSTS has only {', '.join(patterns)}"
            )

    def _authenticate(self, run: Run, seconds: float | None) -> None:
        tokens = self._tokens
        if tokens.access is not None and self._try(run, tokens.access):
            return
        if tokens.refresh is not None and self._refresh(run, seconds):
            return
        username = tokens.credential.username
        converse(run, PrincipalConversation(self._source, username, self._ask))

    def _refresh(self, run: Run, seconds: float | None) -> bool:
        """Get a token without the human; False if the server does not take it."""
        token, _ = self._tokens.get(seconds)
        if self._try(run, token):
            return True
        self._tokens.refresh = None
        return False

    def _ask(self, provider: OIDCIdPInfo) -> str:
        self._token, _ = self._tokens.get(_FOR_A_HUMAN, provider)
        return self._token


def is_allowed(host: str, patterns: list[str]) -> bool:
    """Whether a host is in a list of names, of which ``*.example.com`` stands for all below example.com."""
    host = host.lower()
    return any(
        host.endswith(pattern[1:].lower()) if pattern.startswith("*.") else host == pattern.lower()
        for pattern in patterns
    )


def _read_provider(payload: bytes) -> OIDCIdPInfo:
    try:
        fields: DocumentDict = bson.decode(payload)
        return OIDCIdPInfo(fields["issuer"], fields.get("clientId"), fields.get("requestScopes"))
    except (BSONError, KeyError, TypeError, ValueError):
        raise ProtocolError("MONGODB-OIDC: the server does not name an identity provider") from None
