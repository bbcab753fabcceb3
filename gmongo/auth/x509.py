"""MONGODB-X509: the client certificate of the TLS handshake identifies the user."""

from __future__ import annotations

from gmongo.auth.conversation import Command, Conversation, Reply


class X509Conversation(Conversation):
    """One X.509 conversation. Without a username, the server reads the subject from the certificate."""

    def __init__(self, database: str, username: str | None) -> None:
        super().__init__(database)
        self._username = username

    def first(self) -> Command:
        command: Command = {"authenticate": 1, "mechanism": "MONGODB-X509"}
        if self._username is not None:
            command["user"] = self._username
        return command

    def next(self, reply: Reply) -> Command | None:
        return None
