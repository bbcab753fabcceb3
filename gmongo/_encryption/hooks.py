"""Cryptography functions for a libmongocrypt that was built without cryptography functions.

The ciphers and HMAC functions process large data in pieces. Between pieces, a worker thread releases
the GIL at intervals, so that the event loop of the main thread can run.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gevent.monkey import get_original

from gmongo import _clock
from gmongo._encryption.library import Native, ffi, lib

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.modes import Mode

T = TypeVar("T")

_CHUNK_SIZE = 64 * 1024
# After _WORK_TIME seconds of work, a worker thread sleeps for _SLEEP_TIME seconds. Without the sleep,
# the worker thread would acquire the GIL again before another thread wakes up.
_WORK_TIME = 0.001
_SLEEP_TIME = 0.00005

_native_sleep: Callable[[float], None] = get_original("time", "sleep")
_thread_id: Callable[[], int] = get_original("_thread", "get_ident")
# The identifier of each worker thread, and the time at which its current period of work began.
_work_start_times: dict[int, float] = {}

_CIPHER_TYPE = "bool(*)(void*, mongocrypt_binary_t*, mongocrypt_binary_t*, mongocrypt_binary_t*, \
mongocrypt_binary_t*, uint32_t*, mongocrypt_status_t*)"
_HMAC_TYPE = "bool(*)(void*, mongocrypt_binary_t*, mongocrypt_binary_t*, mongocrypt_binary_t*, mongocrypt_status_t*)"


def run_in_worker(work: Callable[[], T]) -> T:
    """Run `work` in this worker thread, and sleep between pieces of data, so that event loops run."""
    thread = _thread_id()
    _work_start_times[thread] = _clock.monotonic()
    try:
        return work()
    finally:
        del _work_start_times[thread]


def _sleep_if_due() -> None:
    thread = _thread_id()
    start = _work_start_times.get(thread)
    if start is not None and _clock.monotonic() - start > _WORK_TIME:
        _native_sleep(_SLEEP_TIME)
        _work_start_times[thread] = _clock.monotonic()


def install(crypt: Native) -> bool:
    """Install the cryptography functions. Return False if libmongocrypt rejects the functions."""
    return bool(
        lib.mongocrypt_setopt_crypto_hooks(
            crypt, _CBC_ENCRYPT, _CBC_DECRYPT, secure_random, _HMAC_512, _HMAC_256, sha_256, ffi.NULL
        )
        and lib.mongocrypt_setopt_crypto_hook_sign_rsaes_pkcs1_v1_5(crypt, sign_rsaes_pkcs1_v1_5, ffi.NULL)
        and lib.mongocrypt_setopt_aes_256_ctr(crypt, _CTR_ENCRYPT, _CTR_DECRYPT, ffi.NULL)
    )


def _buffer(binary: Native) -> Native:
    return ffi.buffer(binary.data, binary.len) if binary.len else b""


def _c_function(signature: str, work: Callable[..., None]) -> Native:
    """Return a C function that calls `work`, and returns True if `work` succeeds. Error messages contain no secrets."""

    def run_hook(_context: Native, *arguments: Native) -> bool:
        try:
            _sleep_if_due()
            work(*arguments[:-1])
        except Exception as error:
            message = f"{type(error).__name__} in the cryptography".encode()
            lib.mongocrypt_status_set(arguments[-1], lib.MONGOCRYPT_STATUS_ERROR_CLIENT, 1, message, -1)
            return False
        return True

    return ffi.callback(signature, run_hook)


def _cipher_function(mode_of: Callable[[bytes], Mode], method_name: str) -> Native:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    def run_cipher(key: Native, iv: Native, source: Native, target: Native, written: Native) -> None:
        context = getattr(Cipher(algorithms.AES(bytes(_buffer(key))), mode_of(bytes(_buffer(iv)))), method_name)()
        data, out, offset = memoryview(_buffer(source)), _buffer(target), 0
        for start in range(0, len(data), _CHUNK_SIZE):
            piece = context.update(data[start : start + _CHUNK_SIZE])
            out[offset : offset + len(piece)] = piece
            offset += len(piece)
            _sleep_if_due()
        last_piece = context.finalize()
        out[offset : offset + len(last_piece)] = last_piece
        target.len = written[0] = offset + len(last_piece)

    return _c_function(_CIPHER_TYPE, run_cipher)


def _hmac_function(algorithm: Callable[[], hashlib._Hash]) -> Native:
    def compute_hmac(key: Native, source: Native, target: Native) -> None:
        mac, data = hmac.new(bytes(_buffer(key)), digestmod=algorithm), memoryview(_buffer(source))
        for start in range(0, len(data), _CHUNK_SIZE):
            mac.update(data[start : start + _CHUNK_SIZE])
            _sleep_if_due()
        digest = mac.digest()
        _buffer(target)[: len(digest)] = digest
        target.len = len(digest)

    return _c_function(_HMAC_TYPE, compute_hmac)


if lib is not None:
    from cryptography.hazmat.primitives.ciphers import modes
    from pymongocrypt.crypto import secure_random, sha_256, sign_rsaes_pkcs1_v1_5

    _CBC_ENCRYPT, _CBC_DECRYPT = _cipher_function(modes.CBC, "encryptor"), _cipher_function(modes.CBC, "decryptor")
    _CTR_ENCRYPT, _CTR_DECRYPT = _cipher_function(modes.CTR, "encryptor"), _cipher_function(modes.CTR, "decryptor")
    _HMAC_512, _HMAC_256 = _hmac_function(hashlib.sha512), _hmac_function(hashlib.sha256)
