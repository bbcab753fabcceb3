"""SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677): client and server prove that they know the password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import ClassVar

from gmongo import _random
from gmongo._documents import Document
from gmongo.auth.conversation import SaslConversation
from gmongo.auth.saslprep import saslprep
from gmongo.auth.scram_keys import ScramKeys
from gmongo.errors import ConfigurationError, OperationFailure, ProtocolError

DIGESTS = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256"}
_FEWEST_ITERATIONS = 4096
# Maximum number of iterations, which take about one second. Servers use 10,000 or 15,000 iterations by default. Only
# an attacker demands a larger number.
_MOST_ITERATIONS = 1_000_000
_NO_CHANNEL_BINDING = "n,,"
# Server messages. RFC 5802, section 7 defines the order of the fields. Optional extensions may follow the fields. The
# client rejects mandatory extensions (m=), which would precede the fields.
_EXTENSIONS = r"(?:,[A-Za-z]=[^,]+)*"
_FIRST = re.compile(rf"r=(?P<nonce>[!-+\--~]+),s=(?P<salt>[^,]+),i=(?P<iterations>[1-9][0-9]{{0,9}}){_EXTENSIONS}")
_FINAL = re.compile(rf"(?:e=(?P<error>[^,]+)|v=(?P<verifier>[^,]*)){_EXTENSIONS}")
_NONCE_SIZE = 24


class ScramConversation(SaslConversation):
    """One SCRAM conversation. `keys` is the key cache of the client."""

    options: ClassVar[Document] = {"options": {"skipEmptyExchange": True}}

    def __init__(
        self,
        database: str,
        mechanism: str,
        username: str,
        password: str,
        keys: ScramKeys,
        make_nonce: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(database)
        self.mechanism = mechanism
        self._digest = DIGESTS[mechanism]
        self._password = prepared_password(mechanism, username, password)
        self._keys = keys
        escaped = username.replace("=", "=3D").replace(",", "=2C")
        self._nonce = make_nonce() if make_nonce else base64.b64encode(_random.urandom(_NONCE_SIZE)).decode()
        self._first_bare = f"n={escaped},r={self._nonce}"
        self._server_signature: bytes | None = None  # expected signature of the server

    def begin(self) -> bytes:
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def step(self, payload: bytes, done: bool) -> bytes:
        if self._server_signature is None or self.has_sent_last:
            return super().step(payload, done)
        self._verify(payload)
        return b""

    def respond(self, server_first: bytes) -> bytes:
        nonce, salt, iterations = self._read(server_first)
        channel = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={channel},r={nonce}"
        client_key, server_key = self._keys.derive(self._digest, self._password, salt, iterations)
        signed = ",".join((self._first_bare, server_first.decode(), without_proof)).encode()
        stored_key = hashlib.new(self._digest, client_key).digest()
        signature = hmac.digest(stored_key, signed, self._digest)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._server_signature = hmac.digest(server_key, signed, self._digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _read(self, server_first: bytes) -> tuple[str, bytes, int]:
        match = _FIRST.fullmatch(self._text(server_first))
        try:
            if match is None:
                raise ValueError
            nonce, iterations = match["nonce"], int(match["iterations"])
            salt = base64.b64decode(match["salt"], validate=True)
        except ValueError:
            raise ProtocolError(f"{self.mechanism}: the server's first message is not well formed") from None
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise OperationFailure(f"{self.mechanism}: the server nonce does not extend the client nonce")
        if iterations < _FEWEST_ITERATIONS:
            raise OperationFailure(
                f"{self.mechanism}: the server asks for {iterations} iterations, fewer than the {_FEWEST_ITERATIONS} "
                "that are safe"
            )
        if iterations > _MOST_ITERATIONS:
            raise OperationFailure(
                f"{self.mechanism}: the server asks for {iterations} iterations, more than {_MOST_ITERATIONS}"
            )
        return nonce, salt, iterations

    def _verify(self, server_final: bytes) -> None:
        match = _FINAL.fullmatch(self._text(server_final))
        if match is not None and match["error"] is not None:
            raise OperationFailure(f"{self.mechanism}: the server reports {match['error']!r}")
        try:
            if match is None:
                raise ValueError
            signature = base64.b64decode(match["verifier"], validate=True)
        except ValueError:
            raise ProtocolError(f"{self.mechanism}: the server's last message is not well formed") from None
        if not hmac.compare_digest(signature, self._server_signature or b""):
            raise OperationFailure(f"{self.mechanism}: the server did not prove that it knows the password")
        self.has_sent_last = True

    def _text(self, message: bytes) -> str:
        try:
            return message.decode()
        except UnicodeDecodeError:
            raise ProtocolError(f"{self.mechanism}: the server's message is not UTF-8") from None


def prepared_password(mechanism: str, username: str, password: str) -> bytes:
    """Return the normalized password, from which the client derives the keys."""
    if mechanism == "SCRAM-SHA-1":
        # SCRAM-SHA-1 uses the password digest of the older mechanism MONGODB-CR
        return hashlib.md5(f"{username}:mongo:{password}".encode(), usedforsecurity=False).hexdigest().encode()
    try:
        return saslprep(password).encode()
    except ValueError as error:
        raise ConfigurationError(f"the password cannot be used with {mechanism}: {error}") from None
