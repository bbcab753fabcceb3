"""Key vault: the collection of the data keys, with read concern and write concern majority."""

from __future__ import annotations

from typing import Any, Protocol

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from gmongo._documents import Document, Value
from gmongo.errors import ConfigurationError
from gmongo.execution.executor import Executor
from gmongo.read_concern import ReadConcern
from gmongo.write_concern import WriteConcern

RAW_CODEC_OPTIONS: CodecOptions[Value] = CodecOptions(document_class=RawBSONDocument)


class Client(Protocol):
    """The attributes of a :class:`~gmongo.mongo_client.MongoClient` that the encryption uses."""

    _executor: Executor

    @property
    def options(self) -> Any: ...

    def __getitem__(self, name: str) -> Any: ...

    def close(self) -> None: ...


class KeyCollection(Protocol):
    """The attributes of a collection that the encryption uses for data keys."""

    _executor: Executor

    def find(self, filter: Document) -> Any: ...

    def insert_one(self, document: Document) -> object: ...


def split_namespace(namespace: str) -> tuple[str, str]:
    """Return the name of the database and the name of the collection in a namespace."""
    if not isinstance(namespace, str):
        raise TypeError(f"key_vault_namespace must be a string, not {type(namespace).__name__}")
    database, _, collection = namespace.partition(".")
    if not database or not collection:
        raise ConfigurationError(f"key_vault_namespace must be 'database.collection', not {namespace!r}")
    return database, collection


def key_vault_collection(client: Client, namespace: str) -> Any:
    """Return the collection of the data keys. The data keys are raw documents."""
    database, collection = split_namespace(namespace)
    return client[database][collection].with_options(
        codec_options=RAW_CODEC_OPTIONS, read_concern=ReadConcern("majority"), write_concern=WriteConcern("majority")
    )


class KeyVaultRequests:
    """Requests of the state machine for explicit encryption, which reads only a key vault."""

    def __init__(self, collection: KeyCollection) -> None:
        self.collection = collection

    def find_keys(self, filter: bytes) -> list[bytes]:
        with self.collection.find(RawBSONDocument(filter)) as cursor:
            return [key.raw for key in cursor]

    def list_collections(self, database: str, filter: bytes) -> list[bytes]:
        raise NotImplementedError  # explicit encryption does not read schemas

    def analyse(self, database: str, command: bytes) -> bytes:
        raise NotImplementedError  # explicit encryption does not analyse commands
