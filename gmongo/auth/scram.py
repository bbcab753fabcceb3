"""SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, 7677): client and server prove that they know a password.

The slow derivation of keys runs in a native thread, and the client caches the keys.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import stringprep
import unicodedata
from collections.abc import Callable
from typing import ClassVar

import gevent
from gevent import GreenletExit
from gevent.threadpool import ThreadPool

from gmongo import _random
from gmongo._documents import Document
from gmongo.auth.conversation import SaslConversation
from gmongo.errors import ConfigurationError, OperationFailure, ProtocolError

DIGESTS = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256"}
_MIN_ITERATIONS = 4096
# Maximum number of iterations, which take about one second. Servers use 10,000 or 15,000 iterations
# by default. A malicious server could demand a larger number.
_MAX_ITERATIONS = 1_000_000
_NO_CHANNEL_BINDING = "n,,"
# Server messages. RFC 5802, section 7 defines the order of the fields. Optional extensions may follow
# the fields. The client rejects mandatory extensions (m=), which would precede the fields.
_EXTENSIONS_REGEX = r"(?:,[A-Za-z]=[^,]+)*"
_ITERATIONS_REGEX = r",i=(?P<iterations>[1-9][0-9]{0,9})"
_SERVER_FIRST_PATTERN = re.compile(rf"r=(?P<nonce>[!-+\--~]+),s=(?P<salt>[^,]+){_ITERATIONS_REGEX}{_EXTENSIONS_REGEX}")
_SERVER_FINAL_PATTERN = re.compile(rf"(?:e=(?P<error>[^,]+)|v=(?P<verifier>[^,]*)){_EXTENSIONS_REGEX}")
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
        self._username, self._password = username, password
        self._keys = keys
        escaped_username = username.replace("=", "=3D").replace(",", "=2C")
        self._nonce = make_nonce() if make_nonce else base64.b64encode(_random.urandom(_NONCE_SIZE)).decode()
        self._first_bare = f"n={escaped_username},r={self._nonce}"
        self._server_signature: bytes | None = None  # expected signature of the server

    def first_payload(self) -> bytes:
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def step(self, payload: bytes, done: bool) -> bytes:
        if self._server_signature is None or self.has_sent_last:
            return super().step(payload, done)
        self._verify(payload)
        return b""

    def respond(self, server_first: bytes) -> bytes:
        nonce, salt, iterations = self._parse_first(server_first)
        channel = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={channel},r={nonce}"
        # The constructor does not prepare the password. By default, the client begins with
        # SCRAM-SHA-256, but SASLprep may prohibit a password that SCRAM-SHA-1 permits.
        prepared = prepared_password(self.mechanism, self._username, self._password)
        client_key, server_key = self._keys.derive(self._digest, prepared, salt, iterations)
        auth_message = ",".join((self._first_bare, server_first.decode(), without_proof)).encode()
        stored_key = hashlib.new(self._digest, client_key).digest()
        signature = hmac.digest(stored_key, auth_message, self._digest)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._server_signature = hmac.digest(server_key, auth_message, self._digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _parse_first(self, server_first: bytes) -> tuple[str, bytes, int]:
        match = _SERVER_FIRST_PATTERN.fullmatch(self._decode(server_first))
        try:
            if match is None:
                raise ValueError
            nonce, iterations = match["nonce"], int(match["iterations"])
            salt = base64.b64decode(match["salt"], validate=True)
        except ValueError:
            raise ProtocolError(f"{self.mechanism}: the server's first message is not well formed") from None
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise OperationFailure(f"{self.mechanism}: the server nonce does not extend the client nonce")
        if iterations < _MIN_ITERATIONS:
            raise OperationFailure(
                f"{self.mechanism}: the server asks for {iterations} iterations, fewer than the {_MIN_ITERATIONS} "
                "that are safe"
            )
        if iterations > _MAX_ITERATIONS:
            raise OperationFailure(
                f"{self.mechanism}: the server asks for {iterations} iterations, more than {_MAX_ITERATIONS}"
            )
        return nonce, salt, iterations

    def _verify(self, server_final: bytes) -> None:
        match = _SERVER_FINAL_PATTERN.fullmatch(self._decode(server_final))
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

    def _decode(self, message: bytes) -> str:
        try:
            return message.decode()
        except UnicodeDecodeError:
            raise ProtocolError(f"{self.mechanism}: the server's message is not UTF-8") from None


def prepared_password(mechanism: str, username: str, password: str) -> bytes:
    """Return the input of the key derivation: the password digest, or the password after SASLprep."""
    if mechanism == "SCRAM-SHA-1":
        # SCRAM-SHA-1 uses the password digest of the older mechanism MONGODB-CR
        return hashlib.md5(f"{username}:mongo:{password}".encode(), usedforsecurity=False).hexdigest().encode()
    try:
        return saslprep(password).encode()
    except ValueError as error:
        raise ConfigurationError(f"the password cannot be used with {mechanism}: {error}") from None


# Predicates and descriptions of prohibited characters except spaces (RFC 4013, sections 2.3 and 2.5).
_PROHIBITED_CHARACTERS: tuple[tuple[Callable[[str], bool], str], ...] = (
    (stringprep.in_table_c21_c22, "a control character"),
    (stringprep.in_table_c3, "a character for private use"),
    (stringprep.in_table_c4, "a code point that is not a character"),
    (stringprep.in_table_c5, "a surrogate"),
    (stringprep.in_table_c6, "a character that is not for plain text"),
    (stringprep.in_table_c7, "a character that is not for canonical representation"),
    (stringprep.in_table_c8, "a character that changes the display"),
    (stringprep.in_table_c9, "a tagging character"),
    (stringprep.in_table_a1, "a character that is not assigned in Unicode 3.2"),
)


def saslprep(text: str) -> str:
    """Apply SASLprep (RFC 4013) to a password, or raise a ValueError that quotes no part of the password."""
    if text.isascii() and text.isprintable():
        return text
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in text
        if not stringprep.in_table_b1(character)
    )
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for is_prohibited, description in _PROHIBITED_CHARACTERS:
        if any(map(is_prohibited, prepared)):
            raise ValueError(f"{description} is prohibited")
    _check_directions(prepared)
    return prepared


def _check_directions(text: str) -> None:
    """Raise ValueError if right-to-left characters break the rules of RFC 3454, section 6."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    if any(map(stringprep.in_table_d2, text)):
        raise ValueError("a mix of left-to-right and right-to-left characters is prohibited")
    if not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])):
        raise ValueError("right-to-left text must begin and end with a right-to-left character")


_MAX_CACHED_KEYS = 8  # maximum number of entries. Each mechanism and password change needs one entry

Keys = tuple[bytes, bytes]
_KeyInput = tuple[str, bytes, bytes, int]


class ScramKeys:
    """Key cache of one client. Concurrent greenlets that need the same keys share one derivation."""

    def __init__(self) -> None:
        self._cached: dict[_KeyInput, Keys] = {}
        self._derivations: dict[_KeyInput, gevent.Greenlet[..., Keys]] = {}
        self._process_id = os.getpid()

    def derive(self, digest: str, password: bytes, salt: bytes, iterations: int) -> Keys:
        """Return ClientKey and ServerKey (RFC 5802), from the cache or from a new derivation."""
        key_input = digest, password, salt, iterations
        cached = self._cached.get(key_input)
        if cached is not None:
            return cached
        if self._process_id != os.getpid():  # derivations of the parent process never end in a forked child
            self._derivations, self._process_id = {}, os.getpid()
        derivation = self._derivations.get(key_input)
        if derivation is None or derivation.ready():  # a ready derivation was killed before its start
            # The derivation has its own greenlet, so that a kill of a waiting greenlet does not end
            # the derivation.
            derivation = self._derivations[key_input] = gevent.spawn(self._derive, key_input)
        keys = derivation.get()
        # If the derivation was killed, `get` returns GreenletExit.
        return self.derive(*key_input) if isinstance(keys, GreenletExit) else keys

    def _derive(self, key_input: _KeyInput) -> Keys:
        # In the thread pool of the hub, the derivation would delay DNS lookups.
        pool = ThreadPool(1)
        try:
            keys: Keys = pool.apply(derive_keys, key_input)
        finally:
            self._derivations.pop(key_input, None)
            pool.kill()
        if len(self._cached) >= _MAX_CACHED_KEYS:
            self._cached.clear()
        self._cached[key_input] = keys
        return keys


def derive_keys(digest: str, password: bytes, salt: bytes, iterations: int) -> Keys:
    """Derive ClientKey and ServerKey in the calling thread."""
    salted_password = hashlib.pbkdf2_hmac(digest, password, salt, iterations)
    return hmac.digest(salted_password, b"Client Key", digest), hmac.digest(salted_password, b"Server Key", digest)
