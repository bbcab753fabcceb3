"""Results of writes."""

from __future__ import annotations

from collections.abc import Mapping

from gmongo._documents import Document, Value
from gmongo.errors import InvalidOperation

__all__ = [
    "BulkWriteResult",
    "ClientBulkWriteResult",
    "DeleteResult",
    "InsertManyResult",
    "InsertOneResult",
    "UpdateResult",
]


class _Result:
    __slots__ = ("_acknowledged",)

    def __init__(self, acknowledged: bool) -> None:
        self._acknowledged = acknowledged

    @property
    def acknowledged(self) -> bool:
        """True if the server acknowledged the write. After an unacknowledged write (``w=0``) its effect is unknown."""
        return self._acknowledged

    def _unknown(self, name: str) -> InvalidOperation:
        return InvalidOperation(f"{name} is not known, because the write was not acknowledged (w=0)")

    def _show(self, value: Value) -> str:
        return f"{type(self).__name__}({value!r}, acknowledged={self._acknowledged})"


class InsertOneResult(_Result):
    """Result of ``insert_one``.

    Specification: CRUD API, "Write Results".

    :param inserted_id: the ``_id`` of the document.
    :param acknowledged: True if the server acknowledged the write.
    """

    __slots__ = ("_inserted_id",)

    def __init__(self, inserted_id: Value, acknowledged: bool) -> None:
        self._acknowledged = acknowledged
        self._inserted_id = inserted_id

    @property
    def inserted_id(self) -> Value:
        """The ``_id`` of the document, or None for a raw document without ``_id``."""
        return self._inserted_id

    def __repr__(self) -> str:
        return self._show(self._inserted_id)


class InsertManyResult(_Result):
    """Result of ``insert_many``.

    Specification: CRUD API, "Write Results".

    :param inserted_ids: the ``_id`` of each document, in the order of the documents.
    :param acknowledged: True if the server acknowledged the writes.
    """

    __slots__ = ("_inserted_ids",)

    def __init__(self, inserted_ids: list[Value], acknowledged: bool) -> None:
        super().__init__(acknowledged)
        self._inserted_ids = inserted_ids

    @property
    def inserted_ids(self) -> list[Value]:
        """The ``_id`` of each document, in the order of the documents."""
        return self._inserted_ids

    def __repr__(self) -> str:
        return self._show(self._inserted_ids)


class UpdateResult(_Result):
    """Result of ``update_one``, ``update_many`` and ``replace_one``.

    Specification: CRUD API, "Write Results".

    :param raw_result: the reply, with the plain ``_id`` in ``upserted`` (in a client bulk write, ``{"_id": ...}``).
    :param acknowledged: True if the server acknowledged the write.
    :param in_client_bulk: True for a result of :meth:`MongoClient.bulk_write
        <gmongo.mongo_client.MongoClient.bulk_write>`; False by default.
    """

    __slots__ = ("_in_client_bulk", "_raw_result")

    def __init__(self, raw_result: Document | None, acknowledged: bool, in_client_bulk: bool = False) -> None:
        self._acknowledged = acknowledged
        self._raw_result = raw_result
        self._in_client_bulk = in_client_bulk

    @property
    def raw_result(self) -> Document | None:
        """The server's reply, or None if the write was not acknowledged."""
        return self._raw_result

    @property
    def matched_count(self) -> int:
        """The number of matched documents. A client bulk write also counts upserted documents.

        :raises InvalidOperation: the write was not acknowledged.
        """
        if not self._acknowledged:
            raise self._unknown("matched_count")
        # The reply to `update` includes an upsert in `n`, although no document matched.
        reply = self._reply
        return 0 if not self._in_client_bulk and reply.get("upserted") is not None else reply.get("n", 0)

    @property
    def modified_count(self) -> int:
        """The number of documents that the write changed.

        :raises InvalidOperation: the write was not acknowledged.
        """
        if not self._acknowledged:
            raise self._unknown("modified_count")
        modified: int = self._reply.get("nModified", 0)
        return modified

    @property
    def upserted_id(self) -> Value:
        """The ``_id`` of the upserted document, or None.

        :raises InvalidOperation: the write was not acknowledged.
        """
        if not self._acknowledged:
            raise self._unknown("upserted_id")
        upserted = self._reply.get("upserted")
        return upserted["_id"] if self._in_client_bulk and upserted is not None else upserted

    @property
    def did_upsert(self) -> bool:
        """True if the write inserted a document, also with an ``_id`` of None.

        :raises InvalidOperation: the write was not acknowledged.
        """
        if not self._acknowledged:
            raise self._unknown("did_upsert")
        return "upserted" in self._reply

    @property
    def _reply(self) -> Document:
        return self._raw_result or {}

    def __repr__(self) -> str:
        return self._show(self._raw_result)


class DeleteResult(_Result):
    """Result of ``delete_one`` and ``delete_many``.

    Specification: CRUD API, "Write Results".

    :param raw_result: the server's reply.
    :param acknowledged: True if the server acknowledged the write.
    """

    __slots__ = ("_raw_result",)

    def __init__(self, raw_result: Document, acknowledged: bool) -> None:
        self._acknowledged = acknowledged
        self._raw_result = raw_result

    @property
    def raw_result(self) -> Document:
        """The server's reply."""
        return self._raw_result

    @property
    def deleted_count(self) -> int:
        """The number of deleted documents.

        :raises InvalidOperation: the write was not acknowledged.
        """
        if not self._acknowledged:
            raise self._unknown("deleted_count")
        deleted: int = self._raw_result.get("n", 0)
        return deleted

    def __repr__(self) -> str:
        return self._show(self._raw_result)


class _BulkResult(_Result):
    __slots__ = ("_bulk_api_result",)

    def __init__(self, bulk_api_result: Document, acknowledged: bool) -> None:
        super().__init__(acknowledged)
        self._bulk_api_result = bulk_api_result

    @property
    def bulk_api_result(self) -> Document:
        """The total counts and errors of all batches."""
        return self._bulk_api_result

    @property
    def inserted_count(self) -> int:
        """The number of inserted documents.

        :raises InvalidOperation: the write was not acknowledged.
        """
        return self._count("inserted_count", "nInserted")

    @property
    def matched_count(self) -> int:
        """The number of documents that matched an update.

        :raises InvalidOperation: the write was not acknowledged.
        """
        return self._count("matched_count", "nMatched")

    @property
    def modified_count(self) -> int:
        """The number of documents that an update changed.

        :raises InvalidOperation: the write was not acknowledged.
        """
        return self._count("modified_count", "nModified")

    @property
    def deleted_count(self) -> int:
        """The number of deleted documents.

        :raises InvalidOperation: the write was not acknowledged.
        """
        return self._count("deleted_count", "nRemoved")

    @property
    def upserted_count(self) -> int:
        """The number of upserted documents.

        :raises InvalidOperation: the write was not acknowledged.
        """
        return self._count("upserted_count", "nUpserted")

    def _count(self, name: str, field: str) -> int:
        if not self._acknowledged:
            raise self._unknown(name)
        count: int = self._bulk_api_result.get(field, 0)
        return count


class BulkWriteResult(_BulkResult):
    """Result of :meth:`Collection.bulk_write <gmongo.collection.Collection.bulk_write>`.

    Specification: CRUD API, "Write Results".

    :param bulk_api_result: the total counts and errors of all batches.
    :param acknowledged: True if the server acknowledged the writes.
    """

    __slots__ = ()

    @property
    def upserted_ids(self) -> dict[int, Value]:
        """The ``_id`` of each upserted document, by the index of the operation.

        :raises InvalidOperation: the write was not acknowledged.
        """
        if not self._acknowledged:
            raise self._unknown("upserted_ids")
        return {upsert["index"]: upsert["_id"] for upsert in self._bulk_api_result.get("upserted", ())}

    def __repr__(self) -> str:
        return self._show(self._bulk_api_result)


class ClientBulkWriteResult(_BulkResult):
    """Result of :meth:`MongoClient.bulk_write <gmongo.mongo_client.MongoClient.bulk_write>`.

    Specification: Bulk Write, "Result".

    :param bulk_api_result: the counts, errors and results of all batches.
    :param acknowledged: True if the server acknowledged the writes.
    :param has_verbose_results: True if there are results of individual operations.
    """

    __slots__ = ("_has_verbose_results",)

    def __init__(self, bulk_api_result: Document, acknowledged: bool, has_verbose_results: bool) -> None:
        super().__init__(bulk_api_result, acknowledged)
        self._has_verbose_results = has_verbose_results

    @property
    def deleted_count(self) -> int:
        """The number of deleted documents.

        :raises InvalidOperation: the write was not acknowledged.
        """
        return self._count("deleted_count", "nDeleted")

    @property
    def has_verbose_results(self) -> bool:
        """True if there are results of individual operations."""
        return self._has_verbose_results

    @property
    def insert_results(self) -> Mapping[int, InsertOneResult]:
        """The result of each successful insert, by the index of the operation.

        :raises InvalidOperation: the writes were not acknowledged, or had no ``verbose_results=True``.
        """
        return self._verbose("insert_results", "insertResults")

    @property
    def update_results(self) -> Mapping[int, UpdateResult]:
        """The result of each successful update and replacement, by the index of the operation.

        :raises InvalidOperation: the writes were not acknowledged, or had no ``verbose_results=True``.
        """
        return self._verbose("update_results", "updateResults")

    @property
    def delete_results(self) -> Mapping[int, DeleteResult]:
        """The result of each successful delete, by the index of the operation.

        :raises InvalidOperation: the writes were not acknowledged, or had no ``verbose_results=True``.
        """
        return self._verbose("delete_results", "deleteResults")

    def _verbose(self, name: str, field: str) -> Mapping[int, Value]:
        if not self._acknowledged:
            raise self._unknown(name)
        if not self._has_verbose_results:
            raise InvalidOperation(f"{name} is not known, because verbose_results was not True")
        results: Mapping[int, Value] = self._bulk_api_result.get(field, {})
        return results

    def __repr__(self) -> str:
        return (
            f"ClientBulkWriteResult({self._bulk_api_result!r}, acknowledged={self._acknowledged}, "
            f"verbose={self._has_verbose_results})"
        )
