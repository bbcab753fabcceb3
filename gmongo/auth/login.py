"""Login: the authentication of one connection, with any mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from gmongo._documents import Document, DocumentDict
from gmongo.auth.aws import AwsConversation
from gmongo.auth.aws_credentials import AwsCredentials, AwsCredentialsCache
from gmongo.auth.conversation import Conversation, Run, SaslConversation, run_conversation
from gmongo.auth.credential import DEFAULT, Credential
from gmongo.auth.scram import ScramConversation, ScramKeys


class Login(ABC):
    """Authentication of one connection."""

    extra_login_seconds: ClassVar[float] = 0.0
    """Number of seconds by which the authentication extends ``connectTimeoutMS``."""
    extends_deadline: ClassVar[bool] = False
    """True if the authentication also extends the time limit of the operation."""

    def hello_fields(self) -> DocumentDict:
        return {}

    def authenticate(self, run: Run, hello: Document, seconds: float | None) -> None:
        """Authenticate the connection after the hello. `seconds` is the remaining time of the operation."""
        self.authenticate_again(run, seconds)

    @abstractmethod
    def authenticate_again(self, run: Run, seconds: float | None) -> None:
        """Authenticate the connection, for the first time by default, and if the server requires reauthentication."""


class PlainConversation(SaslConversation):
    """PLAIN (RFC 4616): LDAP authentication with an unencrypted password."""

    mechanism = "PLAIN"
    can_be_speculative: ClassVar[bool] = False
    has_sent_last = True

    def __init__(self, database: str, username: str, password: str) -> None:
        super().__init__(database)
        self._username = username
        self._password = password

    def first_payload(self) -> bytes:
        return f"\0{self._username}\0{self._password}".encode()


class X509Conversation(Conversation):
    """MONGODB-X509: the client certificate of the TLS handshake identifies the user. The username is optional."""

    def __init__(self, database: str, username: str | None) -> None:
        super().__init__(database)
        self._username = username

    def first_command(self) -> DocumentDict:
        user = {} if self._username is None else {"user": self._username}
        return {"authenticate": 1, "mechanism": "MONGODB-X509", **user}

    def next_command(self, reply: Document) -> DocumentDict | None:
        return None


class SimpleLogin(Login):
    """Login with one conversation, which may begin in the hello (speculative authentication)."""

    def __init__(self, make_conversation: Callable[[], Conversation]) -> None:
        self._make_conversation = make_conversation
        self._conversation = make_conversation()

    def hello_fields(self) -> DocumentDict:
        return speculative_fields(self._conversation) if self._conversation.can_be_speculative else {}

    def authenticate(self, run: Run, hello: Document, seconds: float | None) -> None:
        run_conversation(run, self._conversation, speculative_reply(hello))

    def authenticate_again(self, run: Run, seconds: float | None) -> None:
        run_conversation(run, self._make_conversation())


class ScramLogin(SimpleLogin):
    """Login with SCRAM. By default, the client uses the strongest mechanism in the hello reply."""

    def __init__(self, credential: Credential, keys: ScramKeys) -> None:
        self._credential = credential
        self._keys = keys
        self._negotiates = credential.mechanism == DEFAULT
        self._mechanism = "SCRAM-SHA-256" if self._negotiates else credential.mechanism
        super().__init__(self._make_scram_conversation)

    def _make_scram_conversation(self) -> ScramConversation:
        credential = self._credential
        return ScramConversation(
            credential.source, self._mechanism, credential.username or "", credential.password or "", self._keys
        )

    def hello_fields(self) -> DocumentDict:
        fields = super().hello_fields()
        if self._negotiates:
            fields["saslSupportedMechs"] = f"{self._credential.source}.{self._credential.username}"
        return fields

    def authenticate(self, run: Run, hello: Document, seconds: float | None) -> None:
        if self._negotiates and speculative_reply(hello) is None:
            mechanisms = hello.get("saslSupportedMechs")
            has_sha_256 = isinstance(mechanisms, list) and "SCRAM-SHA-256" in mechanisms
            self._mechanism = "SCRAM-SHA-256" if has_sha_256 else "SCRAM-SHA-1"
            self._conversation = self._make_conversation()
        super().authenticate(run, hello, seconds)


class AwsLogin(Login):
    """Login with MONGODB-AWS."""

    def __init__(self, credential: Credential, cache: AwsCredentialsCache) -> None:
        self._credential = credential
        self._cache = cache

    def _find_credentials(self) -> AwsCredentials:
        credential = self._credential
        if credential.username is None:
            return self._cache.find()
        token = credential.properties.get("AWS_SESSION_TOKEN")
        return AwsCredentials(credential.username, credential.password or "", token)

    def authenticate_again(self, run: Run, seconds: float | None) -> None:
        try:
            run_conversation(run, AwsConversation(self._credential.source, self._find_credentials))
        except Exception:
            self._cache.clear()
            raise


def speculative_fields(conversation: Conversation) -> DocumentDict:
    """Return the hello field with a conversation's first command (speculative authentication)."""
    return {"speculativeAuthenticate": {**conversation.first_command(), "db": conversation.database}}


def speculative_reply(hello: Document) -> Document | None:
    """Return the reply to speculative authentication, or None if the server sent no such reply."""
    reply: object = hello.get("speculativeAuthenticate")
    return reply if isinstance(reply, dict) else None
