"""The keys that SCRAM derives from a password: slow on purpose, so derived once for a client, and never on the loop."""

from __future__ import annotations

import hashlib
import hmac
import os

import gevent
from gevent import GreenletExit
from gevent.threadpool import ThreadPool

# One password has one salt per mechanism, unless it is changed on the server.
_MOST_KEPT = 8

Keys = tuple[bytes, bytes]
_Question = tuple[str, bytes, bytes, int]


class ScramKeys:
    """The cache of one client. Greenlets that ask for the same keys at a time wait for one derivation."""

    def __init__(self) -> None:
        self._kept: dict[_Question, Keys] = {}
        self._under_way: dict[_Question, gevent.Greenlet[..., Keys]] = {}
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"<ScramKeys {len(self._kept)} kept>"

    def derive(self, digest: str, password: bytes, salt: bytes, iterations: int) -> Keys:
        """ClientKey and ServerKey of RFC 5802."""
        question = digest, password, salt, iterations
        kept = self._kept.get(question)
        if kept is not None:
            return kept
        if self._process != os.getpid():  # what the parent had under way does not end here
            self._under_way, self._process = {}, os.getpid()
        derivation = self._under_way.get(question)
        if derivation is None or derivation.ready():  # it may have been killed before it began
            # A greenlet of its own, so that a greenlet that waits for it may be killed.
            derivation = self._under_way[question] = gevent.spawn(self._derive, question)
        keys = derivation.get()
        # A greenlet that is killed returns the exception.
        return self.derive(*question) if isinstance(keys, GreenletExit) else keys

    def _derive(self, question: _Question) -> Keys:
        # A thread for this alone: in the hub's pool, look-ups of names would wait for it.
        pool = ThreadPool(1)
        try:
            keys: Keys = pool.apply(derive_keys, question)
        finally:
            self._under_way.pop(question, None)
            pool.kill()
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[question] = keys
        return keys


def derive_keys(digest: str, password: bytes, salt: bytes, iterations: int) -> Keys:
    """ClientKey and ServerKey, computed now."""
    salted = hashlib.pbkdf2_hmac(digest, password, salt, iterations)
    return hmac.digest(salted, b"Client Key", digest), hmac.digest(salted, b"Server Key", digest)
