"""The server side of MONGODB-OIDC. The server accepts the tokens in the settings of the deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bson

from gmongo.testing.simulation.error_codes import error
from gmongo.testing.simulation.users import EXTERNAL, User

_PROVIDER = {"issuer": "https://issuer.test/", "clientId": "gmongo-testing", "requestScopes": ["openid"]}


class OidcConversation:
    """A SASL conversation of MONGODB-OIDC.

    :param tokens: the user names by token.
    :ivar user: the authenticated user; None until the authentication succeeds.
    :ivar done: True after the last message.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = tokens
        self.user: User | None = None
        self.done = False

    def step(self, payload: bytes) -> bytes:
        """Process a message of the client. If the message has no token, return the data of the identity provider.

        :raises CommandError: the token is unknown, or the message is not a BSON document.
        """
        try:
            message: dict[str, Any] = bson.decode(payload)
        except bson.InvalidBSON as problem:
            raise error(17, f"the payload is no document: {problem}") from problem
        if "jwt" not in message:
            return bson.encode(_PROVIDER)
        name = self._tokens.get(message["jwt"])
        if name is None:
            raise error(18, "Authentication failed.")
        self.user, self.done = User(name, EXTERNAL), True
        return b""
