"""Derivation and cache of SCRAM keys. The slow derivation runs once for each client, in a native thread."""

from __future__ import annotations

import hashlib
import hmac
import os

import gevent
from gevent import GreenletExit
from gevent.threadpool import ThreadPool

_MOST_CACHED = 8  # entries. A client needs one entry for each mechanism, and a new entry after a password change

Keys = tuple[bytes, bytes]
_KeyInput = tuple[str, bytes, bytes, int]


class ScramKeys:
    """Key cache of one client. Concurrent greenlets that need the same keys share one derivation."""

    def __init__(self) -> None:
        self._cached: dict[_KeyInput, Keys] = {}
        self._derivations: dict[_KeyInput, gevent.Greenlet[..., Keys]] = {}
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"<ScramKeys {len(self._cached)} cached>"

    def derive(self, digest: str, password: bytes, salt: bytes, iterations: int) -> Keys:
        """Return ClientKey and ServerKey (RFC 5802), from the cache or from a new derivation."""
        key_input = digest, password, salt, iterations
        cached = self._cached.get(key_input)
        if cached is not None:
            return cached
        if self._process != os.getpid():  # derivations of the parent process never end in a forked child
            self._derivations, self._process = {}, os.getpid()
        derivation = self._derivations.get(key_input)
        if derivation is None or derivation.ready():  # a ready derivation was killed before its start
            # The derivation has its own greenlet, so that a kill of a waiting greenlet does not end the derivation.
            derivation = self._derivations[key_input] = gevent.spawn(self._derive, key_input)
        keys = derivation.get()
        # If the derivation was killed, `get` returns GreenletExit.
        return self.derive(*key_input) if isinstance(keys, GreenletExit) else keys

    def _derive(self, key_input: _KeyInput) -> Keys:
        # DNS lookups in the thread pool of the hub must not wait for the derivation.
        pool = ThreadPool(1)
        try:
            keys: Keys = pool.apply(derive_keys, key_input)
        finally:
            self._derivations.pop(key_input, None)
            pool.kill()
        if len(self._cached) >= _MOST_CACHED:
            self._cached.clear()
        self._cached[key_input] = keys
        return keys


def derive_keys(digest: str, password: bytes, salt: bytes, iterations: int) -> Keys:
    """Derive ClientKey and ServerKey in the calling thread."""
    salted = hashlib.pbkdf2_hmac(digest, password, salt, iterations)
    return hmac.digest(salted, b"Client Key", digest), hmac.digest(salted, b"Server Key", digest)
