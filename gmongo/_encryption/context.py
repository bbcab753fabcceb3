"""One use of libmongocrypt. Short steps are taken at once, long ones in the thread pool of the hub."""

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

# A step that works on less takes a few milliseconds at most, whatever is in it.
AT_ONCE_BELOW = 16 * 1024


Make = Callable[[Callable[[], Native]], Native]


class Context:
    """A context of libmongocrypt, which is closed once, when neither a greenlet nor a thread uses it.

    :param handle: of the open library.
    :param make: makes the context of pymongocrypt's out of a ``mongocrypt_ctx_t``, which is its own from then on. It is
        given a function for that, to be called when all else is ready.
    :param size: of what it works on, in bytes.
    """

    def __init__(self, handle: Handle, make: Make, size: int) -> None:
        self._handle = handle
        self._crypt = handle.crypt()  # which must outlive the context
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
        """Close it, at once. Only its last user may do that."""
        native, self._native = self._native, None
        if native is not None:
            native._close()

    @property
    def native(self) -> Native:
        """The context of pymongocrypt's."""
        return self._native

    @property
    def database(self) -> str:
        """The database whose collections it asks about, which need not be that of the command."""
        name: bytes = ffi.string(lib.mongocrypt_ctx_mongo_db(self._pointer))
        return name.decode()

    def step(self, work: Callable[..., T], *arguments: object) -> T:
        """Do something with libmongocrypt.

        :raises EncryptionError: it failed.
        """
        outcome = self._in_pool(work, arguments) if self.long else _outcome_of(work, arguments)
        try:
            if isinstance(outcome, Exception):
                if isinstance(outcome, (BSONError, EncryptionError)):
                    raise outcome
                raise EncryptionError(outcome) from outcome
            return outcome
        finally:
            del outcome  # an error refers to this frame

    def _in_pool(self, work: Callable[..., T], arguments: tuple[object, ...]) -> T | Exception:
        """Do it in a thread. If this greenlet is interrupted meanwhile, the context is left to the thread to close."""
        # Both sides take one when they are done, each in one step of the interpreter.
        tokens = ["last", "first"]

        def in_thread() -> T | Exception | None:
            outcome = None
            if not self._left_to_thread:
                outcome = in_worker(lambda: _outcome_of(work, arguments))
            if tokens.pop() == "last":
                self.close()
            return outcome

        waiting = get_hub().threadpool.spawn(in_thread)  # what is thrown in here comes before it begins
        try:
            outcome: T | Exception = waiting.get()
            return outcome
        except BaseException:
            self._left_to_thread = True
            if tokens.pop() == "last":  # it has just been done
                self._left_to_thread = False
            raise


def _outcome_of(work: Callable[..., T], arguments: tuple[object, ...]) -> T | Exception:
    """What a step returns, or raises."""
    try:
        return work(*arguments)
    except Exception as error:
        return error
