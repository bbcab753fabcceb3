"""The state machine of libmongocrypt: it says what it needs, and is given that until it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import bson

from gmongo._encryption.context import Context, Make
from gmongo._encryption.credentials import OnDemand
from gmongo._encryption.handle import Handle
from gmongo._encryption.kms import Kms
from gmongo._encryption.library import lib
from gmongo.errors import EncryptionError, PyMongoError
from gmongo.execution.deadline import until
from gmongo.execution.sessions import unbound


class Database(Protocol):
    """What is asked of servers."""

    def collections(self, database: str, filter: bytes) -> list[bytes]:
        """The descriptions of collections, encoded."""

    def analysed(self, database: str, command: bytes) -> bytes:
        """A command with marks where it has to be encrypted, as the reply to it."""

    def keys(self, filter: bytes) -> list[bytes]:
        """Data keys of the key vault, encoded."""


class Machine:
    """Runs contexts of one open library.

    :param handle: of the library.
    :param database: to ask for keys, and if need be for schemas and the analysis of commands.
    :param kms: asks the key management services.
    """

    def __init__(self, handle: Handle, database: Database, kms: Kms) -> None:
        self.handle = handle
        self.kms_providers = dict(handle.settings.kms_providers)
        self._database = database
        self._kms = kms
        self._on_demand = OnDemand(handle.settings.on_demand)

    def run(self, make: Make, size: int, deadline: float | None, *, heavy: bool = False) -> bytes | None:
        """Run a context to its end.

        :param make: makes it, as :class:`Context` says.
        :param size: of what it works on, in bytes.
        :param deadline: when it must have ended; None leaves all requests their own limits.
        :param heavy: whether it has much to do, whatever the size.
        :returns: the encrypted or decrypted document; None if there was nothing to do.
        :raises EncryptionError: it failed; its `cause` is the error of libmongocrypt, of a server, or of the network.
        """
        with Context(self.handle, make, size) as context:
            context.long = context.long or heavy
            while True:
                state = context.native.state
                if state == lib.MONGOCRYPT_CTX_READY:
                    found: bytes = context.step(context.native.finish)
                    return found
                if state == lib.MONGOCRYPT_CTX_DONE:
                    return None
                if state == lib.MONGOCRYPT_CTX_ERROR:
                    context.step(context.native._raise_from_status)
                self._answer(context, state, deadline)

    def _answer(self, context: Context, state: int, deadline: float | None) -> None:
        """Give the machine what it needs in a state."""
        native, database = context.native, self._database
        if state == lib.MONGOCRYPT_CTX_NEED_MONGO_KEYS:
            self._feed(context, deadline, lambda: database.keys(native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_KMS:
            self._ask_kms(context, deadline)
        elif state == lib.MONGOCRYPT_CTX_NEED_KMS_CREDENTIALS:
            with _explained():
                credentials = self._on_demand.find(deadline)
            context.step(native.provide_kms_providers, bson.encode(credentials))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO:
            self._feed(context, deadline, lambda: database.collections(native.database, native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO_WITH_DB:
            self._feed(context, deadline, lambda: database.collections(context.database, native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_MARKINGS:
            self._feed(context, deadline, lambda: [database.analysed(native.database, native.mongo_operation())])
            context.long = True  # there is something to encrypt, perhaps with an index of many tokens
        else:
            raise EncryptionError(ValueError(f"libmongocrypt is in the state {state}, which gmongo does not know"))

    def _feed(self, context: Context, deadline: float | None, ask: Callable[[], list[bytes]]) -> None:
        native = context.native
        with _explained(), unbound(), until(deadline):
            for each in ask():
                context.step(native.add_mongo_operation_result, each)
        context.step(native.complete_mongo_operation)

    def _ask_kms(self, context: Context, deadline: float | None) -> None:
        native = context.native
        for request in native.kms_contexts():
            with request, _explained():
                self._kms.complete(request, deadline)
        context.step(native.complete_kms)


@contextmanager
def _explained() -> Iterator[None]:
    """Errors of the driver's own on the way, as errors of encryption. What others throw goes through as it is."""
    try:
        yield
    except EncryptionError:
        raise
    except PyMongoError as error:
        raise EncryptionError(error) from error
