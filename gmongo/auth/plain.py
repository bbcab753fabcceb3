"""PLAIN (RFC 4616): LDAP authentication with an unencrypted password. Without TLS, the client warns."""

from __future__ import annotations

from typing import ClassVar

from gmongo.auth.conversation import SaslConversation


class PlainConversation(SaslConversation):
    """One PLAIN conversation."""

    mechanism = "PLAIN"
    can_be_speculative: ClassVar[bool] = False

    def __init__(self, database: str, username: str, password: str) -> None:
        super().__init__(database)
        self._username = username
        self._password = password

    def begin(self) -> bytes:
        return f"\0{self._username}\0{self._password}".encode()

    def step(self, payload: bytes, done: bool) -> bytes:
        if not done:
            raise self.too_long_error()
        return b""
