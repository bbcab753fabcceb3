"""Conversations: the commands and replies of one authentication, without the connection they travel on."""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from gmongo._documents import Document, DocumentDict
from gmongo.errors import ProtocolError

Command = DocumentDict
Reply = Document
# Sends a command to a database and returns the reply; raises OperationFailure if the server says no.
Run = Callable[[str, Command], Reply]


class Conversation(ABC):
    """One authentication.

    :param database: that the commands are sent to.
    """

    can_be_speculative: ClassVar[bool] = True
    """Whether its first command may be sent within the hello."""

    def __init__(self, database: str) -> None:
        self.database = database

    @abstractmethod
    def first(self) -> Command:
        """The command that begins it."""

    @abstractmethod
    def next(self, reply: Reply) -> Command | None:
        """The command that follows a reply, or None if the client is authenticated.

        :raises OperationFailure: the server could not prove itself.
        :raises ProtocolError: the reply makes no sense.
        """


def converse(run: Run, conversation: Conversation, speculated: Reply | None = None) -> None:
    """Hold a conversation from its beginning to its end.

    :param speculated: the reply to its first command, if that has been sent within the hello.
    """
    reply = run(conversation.database, conversation.first()) if speculated is None else speculated
    while (command := conversation.next(reply)) is not None:
        reply = run(conversation.database, command)


class SaslConversation(Conversation):
    """A conversation of ``saslStart`` and ``saslContinue``."""

    mechanism: str
    options: ClassVar[Document] = {}
    """Further fields of ``saslStart``."""

    def first(self) -> Command:
        return {"saslStart": 1, "mechanism": self.mechanism, "payload": self.begin(), **self.options}

    def next(self, reply: Reply) -> Command | None:
        done = bool(reply.get("done"))
        answer = self.step(_payload(reply), done)
        if done:
            return None
        identifier = reply.get("conversationId")
        return {"saslContinue": 1, "conversationId": identifier, "payload": answer}

    @abstractmethod
    def begin(self) -> bytes:
        """The payload to begin with."""

    @abstractmethod
    def step(self, payload: bytes, done: bool) -> bytes:
        """The payload that answers one of the server's.

        :param done: whether the server needs no answer. If that is too early, this raises.
        """

    def too_early(self) -> ProtocolError:
        """The error for a server that ends the conversation before it is complete."""
        return ProtocolError(f"{self.mechanism}: the server ended the conversation too early")

    def too_long(self) -> ProtocolError:
        """The error for a server that does not end it."""
        return ProtocolError(f"{self.mechanism}: the server goes on after the end of the conversation")


def _payload(reply: Reply) -> bytes:
    payload = reply.get("payload", b"")
    if isinstance(payload, bytes):
        return payload
    try:
        return base64.b64decode(payload, validate=True)
    except (TypeError, binascii.Error, ValueError):
        raise ProtocolError("the reply to a SASL command has no payload of bytes") from None
