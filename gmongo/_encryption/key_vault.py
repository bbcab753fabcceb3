"""Key vault: the collection of the data keys, with read concern and write concern majority."""

from __future__ import annotations

from typing import Any

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from gmongo._documents import Value
from gmongo.errors import ConfigurationError
from gmongo.read_concern import ReadConcern
from gmongo.write_concern import WriteConcern

RAW: CodecOptions[Value] = CodecOptions(document_class=RawBSONDocument)
Client = Any  # an object of the class `gmongo.mongo_client.MongoClient`
Keys = Any  # the `gmongo.collection.Collection` that contains the data keys


def split_namespace(namespace: str) -> tuple[str, str]:
    """Return the name of the database and the name of the collection in a namespace."""
    if not isinstance(namespace, str):
        raise TypeError(f"key_vault_namespace must be a string, not {type(namespace).__name__}")
    database, _, collection = namespace.partition(".")
    if not database or not collection:
        raise ConfigurationError(f"key_vault_namespace must be 'database.collection', not {namespace!r}")
    return database, collection


def key_vault(client: Client, namespace: str) -> Any:
    """Return the collection of the data keys. The data keys are raw documents."""
    database, collection = split_namespace(namespace)
    return client[database][collection].with_options(
        codec_options=RAW, read_concern=ReadConcern("majority"), write_concern=WriteConcern("majority")
    )


class KeyVault:
    """Requests of the state machine to a key vault."""

    def __init__(self, collection: Keys) -> None:
        self.collection = collection

    def keys(self, filter: bytes) -> list[bytes]:
        with self.collection.find(RawBSONDocument(filter)) as cursor:
            return [key.raw for key in cursor]
