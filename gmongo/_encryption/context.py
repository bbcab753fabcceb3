"""Context of libmongocrypt for one task. Long steps run in the thread pool of the hub."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from bson.errors import BSONError
from gevent import get_hub

from gmongo._encryption.handle import Handle
from gmongo._encryption.hooks import in_worker
from gmongo._encryption.library import Native, ffi, lib
from gmongo._native_threads import result_or_exception
from gmongo.errors import EncryptionError

T = TypeVar("T")

# A step on fewer bytes takes at most a few milliseconds, and runs in the calling greenlet.
IN_GREENLET_BELOW = 16 * 1024


Make = Callable[[Callable[[], Native]], Native]


class Context:
    """Context of libmongocrypt for one task, such as the encryption of one command.

    The context is closed once, when neither a greenlet nor a thread uses the context.

    :param make: a function that creates the pymongocrypt context. Its argument is a function that returns a new
        ``mongocrypt_ctx_t``. `make` must call that function after all work that may fail, because the pymongocrypt
        context frees the ``mongocrypt_ctx_t``.
    :param size: the size of the input in bytes.
    """

    def __init__(self, handle: Handle, make: Make, size: int) -> None:
        self._handle = handle
        self._crypt = handle.crypt()  # a reference, because the mongocrypt_t must live longer than the context
        self._make = make
        self._native: Native = None
        self._pointer: Native = None
        self._left_to_thread = False
        self.long = size >= IN_GREENLET_BELOW

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
        """Close the context, in the last greenlet or thread that uses the context."""
        native, self._native = self._native, None
        if native is not None:
            native._close()

    @property
    def native(self) -> Native:
        return self._native

    @property
    def database(self) -> str:
        """The database of the requested collections, which may differ from the database of the command."""
        name: bytes = ffi.string(lib.mongocrypt_ctx_mongo_db(self._pointer))
        return name.decode()

    def step(self, work: Callable[..., T], *arguments: object) -> T:
        """Run a step of libmongocrypt, and return its result."""
        outcome = self._run_in_pool(work, arguments) if self.long else result_or_exception(work, *arguments)
        try:
            if isinstance(outcome, Exception):
                if isinstance(outcome, (BSONError, EncryptionError)):
                    raise outcome
                raise EncryptionError(outcome) from outcome
            return outcome
        finally:
            del outcome  # the traceback of an error refers to this frame

    def _run_in_pool(self, work: Callable[..., T], arguments: tuple[object, ...]) -> T | Exception:
        """Run a step in a thread. If an exception interrupts this greenlet meanwhile, the thread closes the context."""
        # The thread pops a token when the step has ended, and an interrupted greenlet also pops a token. Each pop is
        # atomic. If the thread pops "last", the thread closes the context.
        tokens = ["last", "first"]

        def in_thread() -> T | Exception | None:
            outcome = None
            if not self._left_to_thread:
                outcome = in_worker(lambda: result_or_exception(work, *arguments))
            if tokens.pop() == "last":
                self.close()
            return outcome

        # If an exception interrupts this call, the thread does not run the step.
        waiting = get_hub().threadpool.spawn(in_thread)
        try:
            outcome: T | Exception = waiting.get()
            return outcome
        except BaseException:
            self._left_to_thread = True
            if tokens.pop() == "last":  # the thread has already ended
                self._left_to_thread = False
            raise
