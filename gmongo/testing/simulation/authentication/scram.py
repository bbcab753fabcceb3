"""The server side of SCRAM (RFC 5802, RFC 7677)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gmongo import _random
from gmongo.auth.scram import saslprep
from gmongo.testing.command import CommandError, error

if TYPE_CHECKING:
    from gmongo.testing.simulation.users import User

Scram = Literal["SCRAM-SHA-1", "SCRAM-SHA-256"]

# The lowest iteration count that clients accept. With this count, the derivation of keys blocks the
# event loop only for some milliseconds.
_ITERATION_COUNT = 4096
_DIGESTS = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256"}
_SALT_SIZES = {"SCRAM-SHA-1": 16, "SCRAM-SHA-256": 28}


@dataclass(frozen=True)
class Credentials:
    """The data that replaces a password on a server: a hash name, a salt and two keys (RFC 5802)."""

    digest: str
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @staticmethod
    def derive(mechanism: Scram, name: str, password: str) -> Credentials:
        """Create a salt, and derive the keys from the password and the salt."""
        digest, salt = _DIGESTS[mechanism], _random.urandom(_SALT_SIZES[mechanism])
        if mechanism == "SCRAM-SHA-1":
            secret = hashlib.md5(f"{name}:mongo:{password}".encode(), usedforsecurity=False).hexdigest()
        else:
            secret = saslprep(password)
        salted_password = hashlib.pbkdf2_hmac(digest, secret.encode(), salt, _ITERATION_COUNT)
        client_key = hmac.digest(salted_password, b"Client Key", digest)
        stored_key = hashlib.new(digest, client_key).digest()
        return Credentials(digest, salt, stored_key, hmac.digest(salted_password, b"Server Key", digest))


class ScramConversation:
    """A SCRAM conversation, without the empty last exchange if `skips_empty_exchange` is True."""

    user: User | None = None
    done = False

    def __init__(self, mechanism: Scram, find_user: Callable[[str], User | None], skips_empty_exchange: bool) -> None:
        self._mechanism = mechanism
        self._find_user = find_user
        self._skips_empty_exchange = skips_empty_exchange
        self._steps = [self._process_first, self._process_final, self._process_empty]

    def step(self, payload: bytes) -> bytes:
        """Process the next message of the client, and return the payload of the reply."""
        try:
            return self._steps.pop(0)(payload)
        except (ValueError, KeyError, IndexError) as problem:
            raise _create_failure() from problem

    def _process_first(self, payload: bytes) -> bytes:
        message = payload.decode()
        if not message.startswith("n,"):
            raise _create_failure()
        self._client_first = message.split(",", 2)[2]
        fields = _parse_fields(self._client_first)
        name = fields["n"].replace("=2C", ",").replace("=3D", "=")
        user = self._find_user(name)
        if user is None or user.password is None or self._mechanism not in user.mechanisms:
            raise _create_failure()
        self._candidate_user = user
        self._credentials = user.credentials(self._mechanism)
        self._nonce = fields["r"] + base64.b64encode(_random.urandom(24)).decode()
        salt = base64.b64encode(self._credentials.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={_ITERATION_COUNT}"
        return self._server_first.encode()

    def _process_final(self, payload: bytes) -> bytes:
        message = payload.decode()
        fields = _parse_fields(message)
        proof = base64.b64decode(fields["p"])
        auth_message = f"{self._client_first},{self._server_first},{message[: message.index(',p=')]}".encode()
        credentials = self._credentials
        signature = hmac.digest(credentials.stored_key, auth_message, credentials.digest)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(credentials.digest, client_key).digest()
        if fields["r"] != self._nonce or not hmac.compare_digest(stored_key, credentials.stored_key):
            raise _create_failure()
        self._verified_user = self._candidate_user
        self._finish(self._skips_empty_exchange)
        server_signature = hmac.digest(credentials.server_key, auth_message, credentials.digest)
        return b"v=" + base64.b64encode(server_signature)

    def _process_empty(self, payload: bytes) -> bytes:
        if payload or self.done:
            raise _create_failure()
        self._finish(True)
        return b""

    def _finish(self, done: bool) -> None:
        self.done = done
        self.user = self._verified_user if done else None


def _parse_fields(message: str) -> dict[str, str]:
    return {field_text[0]: field_text[2:] for field_text in message.split(",")}


def _create_failure() -> CommandError:
    return error(18, "Authentication failed.")
