"""Conversations: the commands and replies of one authentication, independent of connections."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from gmongo._documents import Document, DocumentDict
from gmongo.errors import ProtocolError

# Function that sends a command to a database, and returns the reply, or raises OperationFailure.
Run = Callable[[str, DocumentDict], Document]


class Conversation(ABC):
    """Commands and replies of one authentication. The client sends the commands to `database`."""

    can_be_speculative: ClassVar[bool] = True
    """True if the client may send the first command in the hello (speculative authentication)."""

    def __init__(self, database: str) -> None:
        self.database = database

    @abstractmethod
    def first_command(self) -> DocumentDict: ...

    @abstractmethod
    def next_command(self, reply: Document) -> DocumentDict | None:
        """Return the next command, or None if `reply` completes the authentication."""


def run_conversation(run: Run, conversation: Conversation, first_reply: Document | None = None) -> None:
    """Run a complete conversation. If `first_reply` is not None, the hello already contained the first command."""
    reply = run(conversation.database, conversation.first_command()) if first_reply is None else first_reply
    while (command := conversation.next_command(reply)) is not None:
        reply = run(conversation.database, command)


class SaslConversation(Conversation):
    """Conversation that consists of the commands ``saslStart`` and ``saslContinue``."""

    mechanism: str
    options: ClassVar[Document] = {}
    """Additional fields of the command ``saslStart``."""
    has_sent_last: bool = False
    """True if the client has sent its last payload. The next reply of the server must end the conversation."""

    def first_command(self) -> DocumentDict:
        return {"saslStart": 1, "mechanism": self.mechanism, "payload": self.first_payload(), **self.options}

    def next_command(self, reply: Document) -> DocumentDict | None:
        done = bool(reply.get("done"))
        payload = self.step(_decode_payload(reply), done)
        if done:
            return None
        return {"saslContinue": 1, "conversationId": reply.get("conversationId"), "payload": payload}

    @abstractmethod
    def first_payload(self) -> bytes: ...

    def step(self, payload: bytes, done: bool) -> bytes:
        """Check a payload from the server, and return the payload of the next command.

        `done` is True if the server has ended the conversation. Raise ProtocolError if the server
        ends the conversation too early or too late.
        """
        if not self.has_sent_last:
            if done:
                raise ProtocolError(f"{self.mechanism}: the server ended the conversation too early")
            return self.respond(payload)
        if not done:
            raise ProtocolError(f"{self.mechanism}: the server continues after the end of the conversation")
        return b""

    def respond(self, payload: bytes) -> bytes:
        """Return the next payload of the client. Set `has_sent_last` for the last payload."""
        raise NotImplementedError


def _decode_payload(reply: Document) -> bytes:
    payload = reply.get("payload", b"")
    if isinstance(payload, bytes):
        return payload
    try:
        return base64.b64decode(payload, validate=True)
    except (TypeError, ValueError):
        raise ProtocolError("the payload in the reply to a SASL command is not binary") from None
