"""Context of libmongocrypt for one task. Long steps run in the thread pool of the hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from bson.errors import BSONError
from gevent import get_hub

from gmongo._encryption.handle import Handle
from gmongo._encryption.hooks import run_in_worker
from gmongo._encryption.library import Native, ffi, lib
from gmongo._native_threads import result_or_exception
from gmongo.errors import EncryptionError

T = TypeVar("T")

# Minimum input size in bytes for which a step runs in a thread. Steps with smaller input take milliseconds.
MIN_SIZE_FOR_THREAD = 16 * 1024

MakeContext = Callable[[Callable[[], Native]], Native]


class Context:
    """Context of libmongocrypt for one task, such as the encryption of one command.

    The last greenlet or thread that uses the context closes the context. `size` is the size of the input in bytes.

    `make_context` receives a function that creates a ``mongocrypt_ctx_t``, and passes the new object
    directly to the constructor of the pymongocrypt context, which owns the ``mongocrypt_ctx_t``.
    """

    def __init__(self, handle: Handle, make_context: MakeContext, size: int) -> None:
        self._handle = handle
        self._crypt = handle.crypt()  # this reference keeps the mongocrypt_t alive until the context is closed
        self._make_context = make_context
        self.native: Native = None
        self._pointer: Native = None
        self._left_to_thread = False
        self.runs_in_thread = size >= MIN_SIZE_FOR_THREAD

    def __enter__(self) -> Context:
        def create_native() -> None:
            self.native = self._make_context(self._new_pointer)

        try:
            self.step(create_native)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _new_pointer(self) -> Native:
        self._pointer = self._handle.new_context(self._crypt)
        return self._pointer

    def __exit__(self, *_exception: object) -> None:
        if not self._left_to_thread:
            self.close()
        self._handle.log()

    def close(self) -> None:
        """Close the context. The last greenlet or thread that uses the context calls this method."""
        native, self.native = self.native, None
        if native is not None:
            native._close()

    @property
    def database(self) -> str:
        """The database of the requested collections, which may differ from the command's database."""
        name: bytes = ffi.string(lib.mongocrypt_ctx_mongo_db(self._pointer))
        return name.decode()

    def step(self, work: Callable[..., T], *arguments: object) -> T:
        outcome = self._run_in_pool(work, arguments) if self.runs_in_thread else result_or_exception(work, *arguments)
        try:
            if isinstance(outcome, Exception):
                if isinstance(outcome, (BSONError, EncryptionError)):
                    raise outcome
                raise EncryptionError(outcome) from outcome
            return outcome
        finally:
            del outcome  # without `del`, an error and this frame would form a reference cycle

    def _run_in_pool(self, work: Callable[..., T], arguments: tuple[object, ...]) -> T | Exception:
        """Run a step in a thread, which closes the context if the greenlet is interrupted."""
        # The thread pops a token when the step has ended, and an interrupted greenlet also pops a
        # token. Each pop is atomic. If the thread pops "last", the thread closes the context.
        tokens = ["last", "first"]

        def run_step() -> T | Exception | None:
            outcome = None
            if not self._left_to_thread:
                outcome = run_in_worker(lambda: result_or_exception(work, *arguments))
            if tokens.pop() == "last":
                self.close()
            return outcome

        # If an exception interrupts `spawn`, no thread runs the step.
        async_result = get_hub().threadpool.spawn(run_step)
        try:
            outcome: T | Exception = async_result.get()
            return outcome
        except BaseException:
            self._left_to_thread = True
            if tokens.pop() == "last":  # the step has already ended
                self._left_to_thread = False
            raise
