"""Authenticator of one client, with the caches that all connections of the client share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gmongo.auth.aws_credentials import AwsCredentialsCache
from gmongo.auth.credential import Credential
from gmongo.auth.gssapi import GssapiConversation
from gmongo.auth.login import AwsLogin, Login, PlainConversation, ScramLogin, SimpleLogin, X509Conversation
from gmongo.auth.oidc import HumanOidcLogin, OidcLogin, OidcTokens
from gmongo.auth.scram import ScramKeys, prepared_password

_MakeLogin = Callable[[str], Login]


class Authenticator:
    """Authenticator of one client. `login(host)` returns the :class:`Login` of a new connection to `host`."""

    def __init__(self, credential: Credential) -> None:
        self.credential = credential
        self.login = _login_maker(credential)


def _login_maker(credential: Credential) -> _MakeLogin:
    source, username, password = credential.source, credential.username, credential.password
    match credential.mechanism:
        case "PLAIN":
            return lambda host: SimpleLogin(partial(PlainConversation, source, username or "", password or ""))
        case "MONGODB-X509":
            return lambda host: SimpleLogin(partial(X509Conversation, source, username))
        case "MONGODB-AWS":
            aws_cache = AwsCredentialsCache()
            return lambda host: AwsLogin(credential, aws_cache)
        case "MONGODB-OIDC":
            tokens = OidcTokens(credential)
            return lambda host: HumanOidcLogin(tokens, host) if tokens.is_human else OidcLogin(tokens)
        case "GSSAPI":
            return lambda host: SimpleLogin(partial(GssapiConversation, credential, host))
    if credential.mechanism == "SCRAM-SHA-256":
        prepared_password("SCRAM-SHA-256", username or "", password or "")  # raises an error for an invalid password
    keys = ScramKeys()
    return lambda host: ScramLogin(credential, keys)
