"""A client that calls a simulated store directly, without a connection or a wire protocol."""

from __future__ import annotations

import uuid
from typing import Any

from bson import Binary, Int64

from gmongo.testing.command import Request
from gmongo.testing.store import Store
from gmongo.testing.store.fields import check_command


class Shell:
    """A simulated client of one member. The commands go directly to the store.

    :param fields: fields that the shell adds to every command, such as ``lsid``.
    """

    def __init__(self, store: Store, member: str = "a:1", **fields: Any) -> None:
        self.store = store
        self.member = member
        self.fields = fields

    def __call__(self, name: str, value: Any, database: str = "db", /, **fields: Any) -> dict[str, Any]:
        body = {name: value, **fields, **self.fields, "$db": database}
        if type(body.get("txnNumber")) is int:
            body["txnNumber"] = Int64(body["txnNumber"])
        request = Request(name, body, database, self.member, 1)
        check_command(request, self.store.version)
        return self.store.execute(request)

    def find(self, collection: str = "c", filter: Any = None, **fields: Any) -> list[dict[str, Any]]:
        """Run the command find, and return the documents of the first batch."""
        return self("find", collection, filter=filter or {}, **fields)["cursor"]["firstBatch"]

    def insert(self, *documents: Any, collection: str = "c", **fields: Any) -> dict[str, Any]:
        return self("insert", collection, documents=list(documents), **fields)

    def update(self, q: Any, u: Any, collection: str = "c", **statement: Any) -> dict[str, Any]:
        """Run one update statement, and return the reply."""
        return self("update", collection, updates=[{"q": q, "u": u, **statement}])

    def aggregate(self, *pipeline: Any, collection: Any = "c", **fields: Any) -> list[dict[str, Any]]:
        """Run the command aggregate, and return the documents of the first batch."""
        reply = self("aggregate", collection, pipeline=list(pipeline), cursor={}, **fields)
        return reply["cursor"]["firstBatch"]

    def with_session(self, member: str | None = None) -> Shell:
        """Return a shell whose commands belong to a new session."""
        return Shell(self.store, member or self.member, lsid={"id": Binary(uuid.uuid4().bytes, 4)})

    def transaction(self, number: int, **fields: Any) -> Shell:
        """Return a shell whose commands belong to transaction `number` in the session of this
        shell.
        """
        return Shell(self.store, self.member, **{**self.fields, "txnNumber": number, "autocommit": False, **fields})

    def end_transaction(self, name: str, **fields: Any) -> dict[str, Any]:
        """Send a command that ends the transaction of this shell.

        :param name: ``commitTransaction`` or ``abortTransaction``.
        """
        return self(name, 1, "admin", **fields)


def replica_set(**options: Any) -> Shell:
    return Shell(Store(replicated=True, sharded=False, **options))


def standalone(**options: Any) -> Shell:
    return Shell(Store(replicated=False, sharded=False, **options))


def sharded(**options: Any) -> Shell:
    """Return a shell whose store behaves like a mongos."""
    return Shell(Store(replicated=False, sharded=True, **options))
