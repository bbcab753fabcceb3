"""The cryptography that libmongocrypt asks for, when it was built without its own.

Large data is worked on in pieces. A worker thread lets go of the interpreter between them, or the loop of the main
thread would wait for it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gevent.monkey import get_original

from gmongo import _clock
from gmongo._encryption.library import Native, ffi, lib, secure_random, sha_256, sign_rsaes_pkcs1_v1_5

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.modes import Mode

T = TypeVar("T")

_CHUNK_SIZE = 64 * 1024
# A thread that has worked for so long stands back for so long, in seconds. Only to let go of the interpreter is not
# enough: the thread would have taken it again before another one woke up.
_TURN = 0.001
_REST = 0.00005

_pause: Callable[[float], None] = get_original("time", "sleep")
_identity: Callable[[], int] = get_original("_thread", "get_ident")
# The threads that work for a loop, and since when each has had its turn.
_turns: dict[int, float] = {}

_CIPHER = "bool(*)(void*, mongocrypt_binary_t*, mongocrypt_binary_t*, mongocrypt_binary_t*, mongocrypt_binary_t*, \
uint32_t*, mongocrypt_status_t*)"
_HMAC = "bool(*)(void*, mongocrypt_binary_t*, mongocrypt_binary_t*, mongocrypt_binary_t*, mongocrypt_status_t*)"


def in_worker(work: Callable[[], T]) -> T:
    """Run `work` in a thread that has no loop, with pauses in which the loops of others run."""
    me = _identity()
    _turns[me] = _clock.monotonic()
    try:
        return work()
    finally:
        del _turns[me]


def _rest() -> None:
    me = _identity()
    since = _turns.get(me)
    if since is not None and _clock.monotonic() - since > _TURN:
        _pause(_REST)
        _turns[me] = _clock.monotonic()


def install(crypt: Native) -> bool:
    """Give libmongocrypt its cryptography; False if it does not take it."""
    return bool(
        lib.mongocrypt_setopt_crypto_hooks(
            crypt, _CBC_ENCRYPT, _CBC_DECRYPT, secure_random, _HMAC_512, _HMAC_256, sha_256, ffi.NULL
        )
        and lib.mongocrypt_setopt_crypto_hook_sign_rsaes_pkcs1_v1_5(crypt, sign_rsaes_pkcs1_v1_5, ffi.NULL)
        and lib.mongocrypt_setopt_aes_256_ctr(crypt, _CTR_ENCRYPT, _CTR_DECRYPT, ffi.NULL)
    )


def _view(binary: Native) -> Native:
    return ffi.buffer(binary.data, binary.len) if binary.len else b""


def _hook(signature: str, work: Callable[..., None]) -> Native:
    """A function of C's. It returns whether all went well; what went wrong is in its last argument, without a
    traceback, which could show secrets.
    """

    def call(_context: Native, *arguments: Native) -> bool:
        try:
            _rest()
            work(*arguments[:-1])
        except Exception as error:
            message = f"{type(error).__name__} in the cryptography".encode()
            lib.mongocrypt_status_set(arguments[-1], lib.MONGOCRYPT_STATUS_ERROR_CLIENT, 1, message, -1)
            return False
        return True

    return ffi.callback(signature, call)


def _cipher(mode_of: Callable[[bytes], Mode], direction: str) -> Native:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    def work(key: Native, iv: Native, source: Native, target: Native, written: Native) -> None:
        machine = getattr(Cipher(algorithms.AES(bytes(_view(key))), mode_of(bytes(_view(iv)))), direction)()
        data, out, done = memoryview(_view(source)), _view(target), 0
        for start in range(0, len(data), _CHUNK_SIZE):
            piece = machine.update(data[start : start + _CHUNK_SIZE])
            out[done : done + len(piece)] = piece
            done += len(piece)
            _rest()
        last = machine.finalize()
        out[done : done + len(last)] = last
        target.len = written[0] = done + len(last)

    return _hook(_CIPHER, work)


def _authentication(algorithm: Callable[[], hashlib._Hash]) -> Native:
    def work(key: Native, source: Native, target: Native) -> None:
        code, data = hmac.new(bytes(_view(key)), digestmod=algorithm), memoryview(_view(source))
        for start in range(0, len(data), _CHUNK_SIZE):
            code.update(data[start : start + _CHUNK_SIZE])
            _rest()
        digest = code.digest()
        _view(target)[: len(digest)] = digest
        target.len = len(digest)

    return _hook(_HMAC, work)


if lib is not None:
    from cryptography.hazmat.primitives.ciphers import modes

    _CBC_ENCRYPT, _CBC_DECRYPT = _cipher(modes.CBC, "encryptor"), _cipher(modes.CBC, "decryptor")
    _CTR_ENCRYPT, _CTR_DECRYPT = _cipher(modes.CTR, "encryptor"), _cipher(modes.CTR, "decryptor")
    _HMAC_512, _HMAC_256 = _authentication(hashlib.sha512), _authentication(hashlib.sha256)
