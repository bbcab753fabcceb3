"""Authenticator of one client, with the caches that all connections of the client share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gmongo.auth.aws_credentials import AwsCredentialsCache
from gmongo.auth.credential import Credential
from gmongo.auth.gssapi import GssapiConversation
from gmongo.auth.login import AwsLogin, Login, ScramLogin, SimpleLogin
from gmongo.auth.oidc import HumanOidcLogin, OidcLogin, OidcTokens
from gmongo.auth.plain import PlainConversation
from gmongo.auth.scram import prepared_password
from gmongo.auth.scram_keys import ScramKeys
from gmongo.auth.x509 import X509Conversation

_MakeLogin = Callable[[str], Login]


class Authenticator:
    """Authenticates the connections of one client with its credential."""

    def __init__(self, credential: Credential) -> None:
        self.credential = credential
        self._login: _MakeLogin = _MAKERS.get(credential.mechanism, _scram)(credential)

    def __repr__(self) -> str:
        return f"<Authenticator {self.credential}>"

    def login(self, host: str) -> Login:
        """Return the login for one new connection to `host`, or raise ConfigurationError for a forbidden host."""
        return self._login(host)


def _scram(credential: Credential) -> _MakeLogin:
    mechanism = "SCRAM-SHA-1" if credential.mechanism == "SCRAM-SHA-1" else "SCRAM-SHA-256"
    prepared_password(mechanism, credential.username or "", credential.password or "")
    keys = ScramKeys()
    return lambda host: ScramLogin(credential, keys)


def _plain(credential: Credential) -> _MakeLogin:
    username, password = credential.username or "", credential.password or ""
    return lambda host: SimpleLogin(partial(PlainConversation, credential.source, username, password))


def _x509(credential: Credential) -> _MakeLogin:
    return lambda host: SimpleLogin(partial(X509Conversation, credential.source, credential.username))


def _aws(credential: Credential) -> _MakeLogin:
    cache = AwsCredentialsCache()
    return lambda host: AwsLogin(credential, cache)


def _oidc(credential: Credential) -> _MakeLogin:
    tokens = OidcTokens(credential)
    if tokens.human:
        return lambda host: HumanOidcLogin(tokens, host)
    return lambda host: OidcLogin(tokens)


def _gssapi(credential: Credential) -> _MakeLogin:
    return lambda host: SimpleLogin(partial(GssapiConversation, credential, host))


_MAKERS: dict[str, Callable[[Credential], _MakeLogin]] = {
    "PLAIN": _plain,
    "MONGODB-X509": _x509,
    "MONGODB-AWS": _aws,
    "MONGODB-OIDC": _oidc,
    "GSSAPI": _gssapi,
}
