"""Long encryption and decryption run in the thread pool of the hub, do not stall the event loop, and
can be interrupted.
"""

from __future__ import annotations

import threading

import gevent
import pytest
from bson import Binary
from gevent import get_hub

from gmongo._encryption import context, hooks
from gmongo._encryption.library import contexts
from gmongo.encryption import Algorithm, ClientEncryption, RangeOpts
from gmongo.errors import EncryptionError, InvalidOperation
from tests.encryption.conftest import CODEC_OPTIONS, KMS_PROVIDERS, VAULT
from tests.support.wait import WAIT_LIMIT, eventually

RANDOMIZED = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random
LARGE_TEXT = "x" * 8_000_000


@pytest.fixture
def key(encryption):
    get_hub().threadpool.apply(int)
    return encryption.create_data_key("local")


@pytest.fixture
def open_contexts(monkeypatch):
    """Return a set that always contains the `id()` of each open libmongocrypt context."""
    open_ids = set()
    original_init, original_close = (contexts.MongoCryptContext.__init__, contexts.MongoCryptContext._close)

    def record_open(self, *arguments):
        original_init(self, *arguments)
        assert id(self) not in open_ids
        open_ids.add(id(self))

    def record_close(self):
        open_ids.discard(id(self))
        original_close(self)

    monkeypatch.setattr(contexts.MongoCryptContext, "__init__", record_open)
    monkeypatch.setattr(contexts.MongoCryptContext, "_close", record_close)
    return open_ids


class EventLoopTurns:
    """Counter of turns of the event loop. :meth:`wait` replaces the sleep of worker threads.

    In each sleep, the worker thread waits until the event loop has run once.

    :ivar count: the number of sleeps in which the event loop ran.
    """

    def __init__(self):
        self.count = 0
        self._turned = threading.Event()
        self._timeout = WAIT_LIMIT
        self._ticker = gevent.spawn(self._tick)

    def _tick(self):
        while True:
            gevent.sleep(0.0002)
            self._turned.set()

    def wait(self, _seconds):
        """Block the worker thread until the event loop has run, or until a timeout."""
        self._turned.clear()
        if self._turned.wait(self._timeout):
            self.count += 1
        else:
            self._timeout = 0

    def stop(self):
        self._ticker.kill()


@pytest.fixture
def event_loop_turns(monkeypatch):
    event_loop_turns = EventLoopTurns()
    monkeypatch.setattr(hooks, "_WORK_TIME", -1.0)
    monkeypatch.setattr(hooks, "_native_sleep", event_loop_turns.wait)
    yield event_loop_turns
    event_loop_turns.stop()


def test_event_loop_runs_between_pieces_of_cryptography(encryption, key, event_loop_turns):
    secret = encryption.encrypt(LARGE_TEXT, RANDOMIZED, key)
    assert event_loop_turns.count > 2 * len(LARGE_TEXT) / hooks._CHUNK_SIZE
    event_loop_turns.count = 0
    assert encryption.decrypt(secret) == LARGE_TEXT
    assert event_loop_turns.count > 2 * len(LARGE_TEXT) / hooks._CHUNK_SIZE


RANGE_OPTIONS = {"contention_factor": 0, "range_opts": RangeOpts(min=0, max=10, sparsity=1)}


@pytest.mark.parametrize(
    ("algorithm", "options", "is_slow"),
    [
        (RANDOMIZED, {}, False),
        (Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic, {}, False),
        (Algorithm.UNINDEXED, {}, False),
        (Algorithm.INDEXED, {"contention_factor": 0}, False),
        (Algorithm.RANGE, RANGE_OPTIONS, True),
    ],
)
def test_thread_encrypts_small_value_only_with_slow_algorithm(
    encryption, key, monkeypatch, algorithm, options, is_slow
):
    runs = []
    original = context.Context._run_in_pool
    monkeypatch.setattr(context.Context, "_run_in_pool", lambda *each: runs.append(each) or original(*each))
    encryption.encrypt(5, algorithm, key, **options)
    assert bool(runs) is is_slow


def test_event_loop_runs_while_many_small_values_are_decrypted(client, deployment, encryption, key, event_loop_turns):
    from gmongo import MongoClient
    from gmongo.encryption_options import AutoEncryptionOpts

    secret = encryption.encrypt("x", RANDOMIZED, key)
    client.shop.many.drop()
    client.shop.many.insert_one({"_id": 1, "secrets": [Binary(secret, 6)] * 500})
    options = AutoEncryptionOpts(KMS_PROVIDERS, VAULT, bypass_auto_encryption=True)
    with MongoClient(deployment.uri, auto_encryption_opts=options) as automatic:
        assert automatic.shop.many.find_one()["secrets"] == ["x"] * 500
        assert event_loop_turns.count >= 500


@pytest.mark.parametrize("seconds", [0, 0.001, 0.003, 0.01, 0.03])
def test_libmongocrypt_context_of_killed_greenlet_is_closed(encryption, key, open_contexts, seconds):
    for _ in range(5):
        greenlet = gevent.spawn(encryption.encrypt, LARGE_TEXT, RANDOMIZED, key)
        gevent.sleep(seconds)
        greenlet.kill()
    eventually(lambda: not open_contexts)
    assert encryption.decrypt(encryption.encrypt("x", RANDOMIZED, key)) == "x"
    assert not open_contexts


def test_contexts_of_greenlets_killed_in_full_thread_pool_are_closed(encryption, key, open_contexts):
    greenlets = [gevent.spawn(encryption.encrypt, LARGE_TEXT, RANDOMIZED, key) for _ in range(30)]
    gevent.sleep(0.02)
    gevent.killall(greenlets)
    eventually(lambda: not open_contexts)
    get_hub().threadpool.apply(int)


def test_close_of_client_encryption_lets_running_encryption_finish(client, key, open_contexts):
    encryption = ClientEncryption(KMS_PROVIDERS, VAULT, client, CODEC_OPTIONS)
    encrypting = [gevent.spawn(encryption.encrypt, LARGE_TEXT, RANDOMIZED, key) for _ in range(4)]
    gevent.sleep(0.005)
    encryption.close()
    gevent.joinall(encrypting, raise_error=True)
    assert all(len(each.value) > len(LARGE_TEXT) for each in encrypting)
    with pytest.raises(InvalidOperation, match="closed"):
        encryption.encrypt("x", RANDOMIZED, key)
    assert not open_contexts


def test_libmongocrypt_context_is_closed_after_error(encryption, key, open_contexts):
    damaged = bytearray(encryption.encrypt("x", RANDOMIZED, key))
    damaged[-1] ^= 1
    with pytest.raises(EncryptionError, match="not all keys requested were satisfied"):
        encryption.encrypt("x", RANDOMIZED, Binary(bytes(16), 4))
    with pytest.raises(EncryptionError, match="HMAC"):
        encryption.decrypt(Binary(bytes(damaged), 6))
    assert not open_contexts
