"""State machine of libmongocrypt. In each state, libmongocrypt requests data, until the task is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import bson

from gmongo._encryption.context import Context, MakeContext
from gmongo._encryption.credentials import OnDemandCredentials
from gmongo._encryption.handle import Handle
from gmongo._encryption.kms import Kms
from gmongo._encryption.library import lib
from gmongo.errors import EncryptionError, PyMongoError
from gmongo.execution.deadline import until
from gmongo.execution.sessions import bind_session


class ServerRequests(Protocol):
    """Requests of the state machine to servers."""

    def collections(self, database: str, filter: bytes) -> list[bytes]:
        """Return the descriptions of the collections that match the encoded query `filter`, as encoded documents."""

    def analyse(self, database: str, command: bytes) -> bytes:
        """Return the reply of mongocryptd, which contains the command with marks at the values to encrypt."""

    def keys(self, filter: bytes) -> list[bytes]:
        """Return the data keys of the key vault that match the encoded query `filter`, as encoded documents."""


class Machine:
    """State machine that drives the contexts of one handle of libmongocrypt."""

    def __init__(self, handle: Handle, requests: ServerRequests, kms: Kms) -> None:
        self.handle = handle
        self.kms_providers = dict(handle.settings.kms_providers)
        self._requests = requests
        self._kms = kms
        self._on_demand = OnDemandCredentials(handle.settings.on_demand)

    def run(
        self, make_context: MakeContext, size: int, deadline: float | None, *, is_slow: bool = False
    ) -> bytes | None:
        """Run a :class:`Context` until libmongocrypt has finished the task. Return None if the task changed nothing.

        Each request to a service also has its own time limit. `is_slow` is True if even a small input takes long.
        """
        with Context(self.handle, make_context, size) as context:
            context.runs_in_thread = context.runs_in_thread or is_slow
            while True:
                state = context.native.state
                if state == lib.MONGOCRYPT_CTX_READY:
                    result: bytes = context.step(context.native.finish)
                    return result
                if state == lib.MONGOCRYPT_CTX_DONE:
                    return None
                if state == lib.MONGOCRYPT_CTX_ERROR:
                    context.step(context.native._raise_from_status)
                self._supply_data(context, state, deadline)

    def _supply_data(self, context: Context, state: int, deadline: float | None) -> None:
        """Pass to libmongocrypt the data that the current state requests."""
        native, requests = context.native, self._requests

        def supply(fetch: Callable[[], list[bytes]]) -> None:
            with _convert_errors(), bind_session(None), until(deadline):
                for each in fetch():
                    context.step(native.add_mongo_operation_result, each)
            context.step(native.complete_mongo_operation)

        if state == lib.MONGOCRYPT_CTX_NEED_MONGO_KEYS:
            supply(lambda: requests.keys(native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_KMS:
            for request in native.kms_contexts():
                with request, _convert_errors():
                    self._kms.complete(request, deadline)
            context.step(native.complete_kms)
        elif state == lib.MONGOCRYPT_CTX_NEED_KMS_CREDENTIALS:
            with _convert_errors():
                credentials = self._on_demand.fetch(deadline)
            context.step(native.provide_kms_providers, bson.encode(credentials))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO:
            supply(lambda: requests.collections(native.database, native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO_WITH_DB:
            supply(lambda: requests.collections(context.database, native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_MARKINGS:
            supply(lambda: [requests.analyse(native.database, native.mongo_operation())])
            # The command has values to encrypt, for which libmongocrypt may compute many tokens.
            context.runs_in_thread = True
        else:
            raise EncryptionError(ValueError(f"libmongocrypt is in state {state}, which gmongo does not support"))


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert driver errors to EncryptionError. Other exceptions, such as GreenletExit, stay unchanged."""
    try:
        yield
    except EncryptionError:
        raise
    except PyMongoError as error:
        raise EncryptionError(error) from error
