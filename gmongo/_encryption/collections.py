"""State collections for Queryable Encryption. Each encrypted collection has two state collections and an index.

Source: Client Side Encryption, "Queryable Encryption Create and Drop Collection Helpers".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from gmongo._documents import Document, DocumentDict
from gmongo._inherited_options import internals_of
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.errors import ConfigurationError
from gmongo.execution.executor import Executor
from gmongo.execution.operation import OperationContext
from gmongo.execution.sessions import SessionHandle
from gmongo.operations.run_command import WriteCommand

_CLUSTERED_INDEX = {"key": {"_id": 1}, "unique": True}
INDEX_KEYS = [("__safeContent__", 1)]


class Database(Protocol):
    """The attributes of a :class:`~gmongo.database.Database` that this module's functions use."""

    _executor: Executor

    @property
    def _context(self) -> OperationContext: ...

    @property
    def client(self) -> Any: ...

    @property
    def name(self) -> str: ...

    def list_collections(self, session: Any, filter: Document) -> Iterable[DocumentDict]: ...


def state_collections(name: str, encrypted_fields: Document) -> tuple[str, str]:
    """Return the names of the two state collections of an encrypted collection."""
    return (
        encrypted_fields.get("escCollection") or f"enxcol_.{name}.esc",
        encrypted_fields.get("ecocCollection") or f"enxcol_.{name}.ecoc",
    )


class _CreateStateCollection(WriteCommand):
    def command(self, hello: Hello) -> DocumentDict:
        """Return the command. Raise ConfigurationError if the server is older than MongoDB 7.0."""
        required = wire_versions.QUERYABLE_ENCRYPTION
        if hello.max_wire_version < required:
            raise ConfigurationError(
                "Driver support of Queryable Encryption is incompatible with server. Upgrade server to use Queryable "
                f"Encryption. (The server has wire version {hello.max_wire_version}. {required} is required.)"
            )
        return super().command(hello)


def create_state_collections(
    database: Database, name: str, encrypted_fields: Document, session: SessionHandle | None
) -> None:
    """Create the two state collections of an encrypted collection. The encrypted collection does not exist yet."""
    for each in state_collections(name, encrypted_fields):
        operation = _CreateStateCollection(database._context, {"create": each, "clusteredIndex": _CLUSTERED_INDEX})
        database._executor.run(operation, session)


def encrypted_fields_of(
    database: Database, name: str, session: SessionHandle | None, *, query_server: bool
) -> Document | None:
    """Find encrypted fields in the client options or, if `query_server` is True, on the server."""
    encrypter = internals_of(database.client)._encrypter
    if encrypter is None:
        return None
    fields: Document | None = encrypter.options._encrypted_fields_map.get(f"{database.name}.{name}")
    if fields is None and query_server:
        for each in database.list_collections(session, {"name": name}):
            fields = (each.get("options") or {}).get("encryptedFields")
    return fields
