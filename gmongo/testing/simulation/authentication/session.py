"""The authenticated users of a connection, and the current SASL conversation of the connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import bson

from gmongo.testing.command import CommandError, error
from gmongo.testing.simulation.authentication.scram import Scram, ScramConversation
from gmongo.testing.simulation.users import EXTERNAL, User, Users

_SHORT_NAMES = {
    "commonName": "CN", "countryName": "C", "domainComponent": "DC", "localityName": "L",
    "organizationName": "O", "organizationalUnitName": "OU", "stateOrProvinceName": "ST",
    "streetAddress": "STREET", "userId": "UID"
}  # fmt: skip
_SPECIAL_REGEX = r'([,+"\\<>;])'
_ESCAPE = r"\\\1"
_CONVERSATION_ID = 1


def format_subject(certificate: Mapping[str, Any]) -> str:
    """Return the subject of a certificate as RFC 2253 text, which begins with the last attribute."""
    attributes = [
        "+".join(f"{_SHORT_NAMES.get(kind, kind)}={re.sub(_SPECIAL_REGEX, _ESCAPE, value)}" for kind, value in rdn)
        for rdn in certificate.get("subject", ())
    ]
    return ",".join(reversed(attributes))


class Conversation(Protocol):
    """The server side of a SASL conversation. `user` is None until the authentication succeeds."""

    user: User | None
    done: bool

    def step(self, payload: bytes) -> bytes:
        """Process the next message of the client, and return the payload of the reply."""


class PlainConversation:
    """A SASL conversation of PLAIN with a user of `database` or ``admin``."""

    user: User | None = None
    done = False

    def __init__(self, users: Users, database: str) -> None:
        self._users = users
        self._database = database

    def step(self, payload: bytes) -> bytes:
        fields = payload.split(b"\x00")
        name = fields[1].decode() if len(fields) == 3 else ""
        # In production, a directory service such as LDAP contains the users of `$external`. Here,
        # the users of `admin` also count as users of `$external`.
        user = self._users.get((self._database, name)) or self._users.get(("admin", name))
        if user is None or user.password is None or user.password.encode() != fields[2]:
            raise error(18, "Authentication failed.")
        self.user, self.done = user, True
        return b""


_IDENTITY_PROVIDER = {"issuer": "https://issuer.test/", "clientId": "gmongo-testing", "requestScopes": ["openid"]}


class OidcConversation:
    """A SASL conversation of MONGODB-OIDC. `tokens` contains the user names by token."""

    user: User | None = None
    done = False

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = tokens

    def step(self, payload: bytes) -> bytes:
        """Process a message of the client. If the message has no token, return the data of the identity provider."""
        try:
            message: dict[str, Any] = bson.decode(payload)
        except bson.InvalidBSON as problem:
            raise error(17, f"the payload is not a document: {problem}") from problem
        if "jwt" not in message:
            return bson.encode(_IDENTITY_PROVIDER)
        name = self._tokens.get(message["jwt"])
        if name is None:
            raise error(18, "Authentication failed.")
        self.user, self.done = User(name, EXTERNAL), True
        return b""


class Authentication:
    """The authentication state of a connection. `peer_certificate` is the verified client certificate, or None."""

    def __init__(self, users: Users, peer_certificate: Mapping[str, Any] | None) -> None:
        self.users: list[User] = []  # the authenticated users
        self._known_users = users
        self._certificate = peer_certificate
        self._conversation: Conversation | None = None

    def sasl_start(self, database: str, body: Mapping[str, Any], mechanisms: list[str]) -> dict[str, Any]:
        """Execute ``saslStart``: start a conversation. The server accepts the mechanisms in `mechanisms`."""
        mechanism = str(body.get("mechanism"))
        create_conversation = _CONVERSATION_FACTORIES.get(mechanism)
        if create_conversation is None or mechanism not in mechanisms:
            raise error(334, f"Received authentication for mechanism {mechanism} which is unknown or not enabled")
        self._conversation = create_conversation(self._known_users, database, body)
        return self._step(body)

    def sasl_continue(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Execute ``saslContinue``: continue the current conversation."""
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
        """Execute ``authenticate``: authenticate the client with its certificate."""
        if body.get("mechanism") != "MONGODB-X509":
            raise error(2, f"authenticate supports the mechanism MONGODB-X509, not {body.get('mechanism')!r}")
        if self._certificate is None:
            raise error(18, "Authentication failed: no verified subject name available from client")
        name = format_subject(self._certificate)
        user = self._known_users.get((EXTERNAL, name))
        if user is None:
            raise error(11, f'Could not find user "{name}" for db "{EXTERNAL}"')
        if body.get("user", name) != name or database != EXTERNAL:
            raise error(18, f"Authentication failed: {name!r} is not a user of {EXTERNAL}")
        self.log_in(user)
        return {"dbname": EXTERNAL, "user": name}

    def log_in(self, user: User) -> None:
        """Add an authenticated user, and remove the previous user of the same database."""
        self.users = [entry for entry in self.users if entry.database != user.database] + [user]

    def log_out(self, database: str) -> None:
        """Remove the authenticated user of a database."""
        self.users = [user for user in self.users if user.database != database]


def _create_scram(users: Users, database: str, body: Mapping[str, Any]) -> Conversation:
    options = body.get("options") or {}
    if not isinstance(options, Mapping):
        raise error(14, f"BSON field 'saslStart.options' is {options!r}, which is not an object")
    skips_empty_exchange = bool(options.get("skipEmptyExchange"))
    mechanism = cast(Scram, body["mechanism"])
    return ScramConversation(mechanism, lambda name: users.get((database, name)), skips_empty_exchange)


_CONVERSATION_FACTORIES: dict[str, Callable[[Users, str, Mapping[str, Any]], Conversation]] = {
    "SCRAM-SHA-1": _create_scram,
    "SCRAM-SHA-256": _create_scram,
    "PLAIN": lambda users, database, body: PlainConversation(users, database),
    "MONGODB-OIDC": lambda users, database, body: OidcConversation(users.oidc_tokens),
}
