"""Collections for Queryable Encryption, which have two others beside them, and an index.

Source: Client Side Encryption, "Queryable Encryption Create and Drop Collection Helpers".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmongo._documents import Document, DocumentDict, Value
from gmongo._inherited_options import parts_of
from gmongo._server_facts import wire_versions
from gmongo.cmap.hello import Hello
from gmongo.errors import ConfigurationError
from gmongo.operations.run_command import WriteCommand

if TYPE_CHECKING:
    from gmongo.client_session import ClientSession
    from gmongo.database import Database

_CLUSTERED = {"key": {"_id": 1}, "unique": True}
INDEX = [("__safeContent__", 1)]


def state_collections(name: str, encrypted_fields: Document) -> tuple[str, str]:
    """The names of the collections beside one."""
    return (
        encrypted_fields.get("escCollection") or f"enxcol_.{name}.esc",
        encrypted_fields.get("ecocCollection") or f"enxcol_.{name}.ecoc",
    )


class _CreateStateCollection(WriteCommand):
    """Create a collection beside one for Queryable Encryption, if the server has that."""

    def command(self, hello: Hello) -> DocumentDict:
        """Build the command.

        :raises ConfigurationError: the server is older than MongoDB 7.0.
        """
        needed = wire_versions.QUERYABLE_ENCRYPTION
        if hello.max_wire_version < needed:
            raise ConfigurationError(
                "Driver support of Queryable Encryption is incompatible with server. Upgrade server to use Queryable "
                f"Encryption. (It has the wire version {hello.max_wire_version}, and {needed} is needed.)"
            )
        return super().command(hello)


def create_state_collections(
    database: Database[Value], name: str, encrypted_fields: Document, session: ClientSession | None
) -> None:
    """Create the collections beside one that is about to be created.

    :raises ConfigurationError: the server is older than MongoDB 7.0.
    """
    for each in state_collections(name, encrypted_fields):
        operation = _CreateStateCollection(database._context, {"create": each, "clusteredIndex": _CLUSTERED})
        database._executor.run(operation, session)


def encrypted_fields_of(
    database: Database[Value], name: str, session: ClientSession | None, *, ask: bool
) -> Document | None:
    """What the options of the client say of a collection, or the server.

    :param ask: whether to ask the server, if the options say nothing.
    :raises InvalidOperation: the client is another library's.
    """
    encrypter = parts_of(database.client)._encrypter
    if encrypter is None:
        return None
    found = encrypter.encrypted_fields(f"{database.name}.{name}")
    if found is None and ask:
        for each in database.list_collections(session, {"name": name}):
            found = (each.get("options") or {}).get("encryptedFields")
    return found
