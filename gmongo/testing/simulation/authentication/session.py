"""The authenticated users of a connection, and the current SASL conversation of the connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from gmongo.testing.command import CommandError
from gmongo.testing.simulation.authentication.oidc import OidcConversation
from gmongo.testing.simulation.authentication.plain import PlainConversation
from gmongo.testing.simulation.authentication.scram import Hash, ScramConversation
from gmongo.testing.simulation.authentication.x509 import subject_of
from gmongo.testing.simulation.error_codes import error
from gmongo.testing.simulation.users import EXTERNAL, User, Users

_CONVERSATION_ID = 1


class Conversation(Protocol):
    """The server side of a SASL conversation.

    :ivar user: the authenticated user; None before the success.
    :ivar done: True after the last message.
    """

    user: User | None
    done: bool

    def step(self, payload: bytes) -> bytes:
        """Process the next message of the client, and return the reply."""


class Authentication:
    """The state of the authentication on one connection.

    :param users: the users of the deployment.
    :param peer_certificate: the verified certificate of the client; None if the client sent no certificate.
    :ivar users: the authenticated users.
    """

    def __init__(self, users: Users, peer_certificate: Mapping[str, Any] | None) -> None:
        self.users: list[User] = []
        self._known = users
        self._certificate = peer_certificate
        self._conversation: Conversation | None = None

    def sasl_start(self, database: str, body: Mapping[str, Any], allowed: list[str]) -> dict[str, Any]:
        """Execute ``saslStart``: start a conversation.

        :param allowed: the mechanisms that the server accepts.
        :raises CommandError: the mechanism is not allowed, or the first message of the client is wrong.
        """
        mechanism = str(body.get("mechanism"))
        begin = _MECHANISMS.get(mechanism)
        if begin is None or mechanism not in allowed:
            raise error(334, f"Received authentication for mechanism {mechanism} which is unknown or not enabled")
        self._conversation = begin(self._known, database, body)
        return self._step(body)

    def sasl_continue(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Execute ``saslContinue``: continue the current conversation.

        :raises CommandError: there is no conversation, or the message or the proof of the client is wrong.
        """
        if self._conversation is None or body.get("conversationId") != _CONVERSATION_ID:
            raise error(17, "No SASL session state found")
        return self._step(body)

    def _step(self, body: Mapping[str, Any]) -> dict[str, Any]:
        conversation = cast(Conversation, self._conversation)
        client_payload = body.get("payload") or b""
        if not isinstance(client_payload, bytes):
            raise error(10270 if isinstance(client_payload, str) else 2, "the payload must be binary data")
        try:
            payload = conversation.step(bytes(client_payload))
        except CommandError:
            self._conversation = None
            raise
        if conversation.done and conversation.user is not None:
            self.log_in(conversation.user)
            self._conversation = None
        return {"conversationId": _CONVERSATION_ID, "done": conversation.done, "payload": payload}

    def authenticate(self, database: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Execute ``authenticate``: authenticate the client with its certificate.

        :raises CommandError: the client sent no certificate, or the subject of the certificate is not a user.
        """
        if body.get("mechanism") != "MONGODB-X509":
            raise error(2, f"authenticate knows the mechanism MONGODB-X509, not {body.get('mechanism')!r}")
        if self._certificate is None:
            raise error(18, "Authentication failed: no verified subject name available from client")
        name = subject_of(self._certificate)
        user = self._known.find(EXTERNAL, name)
        if user is None or body.get("user", name) != name or database != EXTERNAL:
            raise error(18, f"Authentication failed: {name!r} is not a user of {EXTERNAL}")
        self.log_in(user)
        return {"dbname": EXTERNAL, "user": name}

    def log_in(self, user: User) -> None:
        """Add an authenticated user. If another user of this database is authenticated, remove the other user."""
        self.users = [each for each in self.users if each.database != user.database] + [user]

    def log_out(self, database: str) -> None:
        """Remove the authenticated user of a database."""
        self.users = [user for user in self.users if user.database != database]


def _scram(users: Users, database: str, body: Mapping[str, Any]) -> Conversation:
    options = body.get("options") or {}
    if not isinstance(options, Mapping):
        raise error(14, f"BSON field 'saslStart.options' is {options!r}, which is not an object")
    skips_empty_exchange = bool(options.get("skipEmptyExchange"))
    mechanism = cast(Hash, body["mechanism"])
    return ScramConversation(mechanism, lambda name: users.find(database, name), skips_empty_exchange)


def _plain(users: Users, database: str, body: Mapping[str, Any]) -> Conversation:
    return PlainConversation(users, database)


def _oidc(users: Users, database: str, body: Mapping[str, Any]) -> Conversation:
    return OidcConversation(users.oidc_tokens)


_MECHANISMS: dict[str, Callable[[Users, str, Mapping[str, Any]], Conversation]] = {
    "SCRAM-SHA-1": _scram,
    "SCRAM-SHA-256": _scram,
    "PLAIN": _plain,
    "MONGODB-OIDC": _oidc,
}
