"""One use of libmongocrypt. Short steps run in the calling greenlet, long steps in the thread pool of the hub."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from bson.errors import BSONError
from gevent import get_hub

from gmongo._encryption.handle import Handle
from gmongo._encryption.hooks import in_worker
from gmongo._encryption.library import Native, ffi, lib
from gmongo.errors import EncryptionError

T = TypeVar("T")

# A step on fewer bytes takes a few milliseconds at most.
AT_ONCE_BELOW = 16 * 1024


Make = Callable[[Callable[[], Native]], Native]


class Context:
    """Context of libmongocrypt. It is closed once, when no greenlet and no thread uses it.

    :param handle: the handle of the open library.
    :param make: creates the pymongocrypt context from a ``mongocrypt_ctx_t``, which the context then owns. Its argument
        is a function that returns the ``mongocrypt_ctx_t``. `make` calls the function last.
    :param size: the size of the input in bytes.
    """

    def __init__(self, handle: Handle, make: Make, size: int) -> None:
        self._handle = handle
        self._crypt = handle.crypt()  # must outlive the context
        self._make = make
        self._native: Native = None
        self._pointer: Native = None
        self._left_to_thread = False
        self.long = size >= AT_ONCE_BELOW

    def __enter__(self) -> Context:
        try:
            self.step(self._begin)
        except BaseException:
            self._leave()
            raise
        return self

    def _begin(self) -> None:
        self._native = self._make(self._new_pointer)

    def _new_pointer(self) -> Native:
        self._pointer = self._handle.context(self._crypt)
        return self._pointer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if not self._left_to_thread:
            self.close()
        self._handle.log()

    def close(self) -> None:
        """Close the context. Only its last user may call this."""
        native, self._native = self._native, None
        if native is not None:
            native._close()

    @property
    def native(self) -> Native:
        """The pymongocrypt context."""
        return self._native

    @property
    def database(self) -> str:
        """The database of the requested collections, which may differ from the database of the command."""
        name: bytes = ffi.string(lib.mongocrypt_ctx_mongo_db(self._pointer))
        return name.decode()

    def step(self, work: Callable[..., T], *arguments: object) -> T:
        """Run a step of libmongocrypt.

        :raises EncryptionError: the step failed.
        """
        outcome = self._in_pool(work, arguments) if self.long else _outcome_of(work, arguments)
        try:
            if isinstance(outcome, Exception):
                if isinstance(outcome, (BSONError, EncryptionError)):
                    raise outcome
                raise EncryptionError(outcome) from outcome
            return outcome
        finally:
            del outcome  # an error references this frame

    def _in_pool(self, work: Callable[..., T], arguments: tuple[object, ...]) -> T | Exception:
        """Run a step in a thread. If this greenlet is interrupted meanwhile, the thread closes the context."""
        # Both sides pop one token at their end. Each pop is atomic.
        tokens = ["last", "first"]

        def in_thread() -> T | Exception | None:
            outcome = None
            if not self._left_to_thread:
                outcome = in_worker(lambda: _outcome_of(work, arguments))
            if tokens.pop() == "last":
                self.close()
            return outcome

        waiting = get_hub().threadpool.spawn(in_thread)  # an exception thrown into this call precedes the step
        try:
            outcome: T | Exception = waiting.get()
            return outcome
        except BaseException:
            self._left_to_thread = True
            if tokens.pop() == "last":  # the thread has just ended
                self._left_to_thread = False
            raise


def _outcome_of(work: Callable[..., T], arguments: tuple[object, ...]) -> T | Exception:
    """Return the result of a step, or the exception that it raised."""
    try:
        return work(*arguments)
    except Exception as error:
        return error
