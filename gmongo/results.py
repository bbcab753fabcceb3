"""Results of writes. Specifications: CRUD API ("Write Results") and Bulk Write ("Result")."""

from __future__ import annotations

from collections.abc import Mapping

from gmongo._documents import Document, Value
from gmongo._parameter_docs import read_only
from gmongo.errors import InvalidOperation

__all__ = [
    "BulkWriteResult",
    "ClientBulkWriteResult",
    "DeleteResult",
    "InsertManyResult",
    "InsertOneResult",
    "UpdateResult",
]


def _count_property(name: str, field: str, doc: str) -> Value:
    """Return a property named `name`. Its value is the field `field` of a bulk write result."""

    def count(result: _BulkResult) -> int:
        result._check_acknowledged(name)
        value: int = result._value.get(field, 0)
        return value

    return property(count, doc=doc)


class _WriteResult:
    __slots__ = ("_acknowledged", "_value")
    _acknowledged: bool
    _value: Value

    @property
    def acknowledged(self) -> bool:
        """True if the server acknowledged the write. The effect of an unacknowledged write (``w=0``) is unknown."""
        return self._acknowledged

    def _check_acknowledged(self, name: str) -> None:
        if not self._acknowledged:
            raise InvalidOperation(f"{name} is not known, because the write was not acknowledged (w=0)")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value!r}, acknowledged={self._acknowledged})"


class InsertOneResult(_WriteResult):
    """Result of ``insert_one``.

    :param inserted_id: the ``_id`` of the inserted document.
    :param acknowledged: True if the server acknowledged the write.
    """

    __slots__ = ()

    def __init__(self, inserted_id: Value, acknowledged: bool) -> None:
        self._acknowledged = acknowledged
        self._value = inserted_id

    inserted_id: Value = read_only(
        "_value", "The ``_id`` of the inserted document. None for a raw document, which the driver does not decode."
    )


class InsertManyResult(_WriteResult):
    """Result of ``insert_many``.

    :param inserted_ids: the ``_id`` of each inserted document except raw documents, in the order of the documents.
    :param acknowledged: True if the server acknowledged the writes.
    """

    __slots__ = ()
    _value: list[Value]

    def __init__(self, inserted_ids: list[Value], acknowledged: bool) -> None:
        self._acknowledged = acknowledged
        self._value = inserted_ids

    inserted_ids: list[Value] = read_only("_value", "The ``_id`` of each document except raw documents, in order.")


class UpdateResult(_WriteResult):
    """Result of ``update_one``, ``update_many`` and ``replace_one``.

    The counts, `upserted_id` and `did_upsert` raise InvalidOperation if the server did not acknowledge the write.

    :param raw_result: the server's reply. The field ``upserted`` has the ``_id`` of an upserted
        document, or ``{"_id": ...}`` in a client bulk write.
    :param acknowledged: True if the server acknowledged the write.
    :param in_client_bulk: True for a result of :meth:`.MongoClient.bulk_write`; False by default.
    """

    __slots__ = ("_in_client_bulk",)
    _value: Document | None

    def __init__(self, raw_result: Document | None, acknowledged: bool, in_client_bulk: bool = False) -> None:
        self._acknowledged = acknowledged
        self._value = raw_result
        self._in_client_bulk = in_client_bulk

    raw_result: Document | None = read_only("_value", "The server's reply, or None if the write was not acknowledged.")

    @property
    def matched_count(self) -> int:
        """The number of documents that matched the filter. A client bulk write also counts an upserted document."""
        self._check_acknowledged("matched_count")
        # The field `n` of the reply to `update` is 1 for an upsert, although no document matched.
        reply = self._reply
        return 0 if not self._in_client_bulk and reply.get("upserted") is not None else reply.get("n", 0)

    @property
    def modified_count(self) -> int:
        """The number of documents that the write changed."""
        self._check_acknowledged("modified_count")
        count: int = self._reply.get("nModified", 0)
        return count

    @property
    def upserted_id(self) -> Value:
        """The ``_id`` of the upserted document, or None if the write upserted no document."""
        self._check_acknowledged("upserted_id")
        upserted = self._reply.get("upserted")
        return upserted["_id"] if self._in_client_bulk and upserted is not None else upserted

    @property
    def did_upsert(self) -> bool:
        """True if the write upserted a document, even if the ``_id`` of the document is None."""
        self._check_acknowledged("did_upsert")
        return "upserted" in self._reply

    @property
    def _reply(self) -> Document:
        return self._value or {}


class DeleteResult(_WriteResult):
    """Result of ``delete_one`` and ``delete_many``.

    :param raw_result: the server's reply.
    :param acknowledged: True if the server acknowledged the write.
    """

    __slots__ = ()
    _value: Document

    def __init__(self, raw_result: Document, acknowledged: bool) -> None:
        self._acknowledged = acknowledged
        self._value = raw_result

    raw_result: Document = read_only("_value", "The server's reply.")

    @property
    def deleted_count(self) -> int:
        """The number of deleted documents.

        :raises InvalidOperation: the write was not acknowledged.
        """
        self._check_acknowledged("deleted_count")
        count: int = self._value.get("n", 0)
        return count


class _BulkResult(_WriteResult):
    __slots__ = ()
    _value: Document

    def __init__(self, bulk_api_result: Document, acknowledged: bool) -> None:
        self._acknowledged = acknowledged
        self._value = bulk_api_result

    bulk_api_result: Document = read_only(
        "_value", "The combined results of all commands: the counts of written documents, and the list of errors."
    )

    inserted_count: int = _count_property("inserted_count", "nInserted", "The number of inserted documents.")
    matched_count: int = _count_property(
        "matched_count", "nMatched", "The number of documents that matched the filter of an update."
    )
    modified_count: int = _count_property(
        "modified_count", "nModified", "The number of documents that an update changed."
    )
    deleted_count: int = _count_property("deleted_count", "nRemoved", "The number of deleted documents.")
    upserted_count: int = _count_property("upserted_count", "nUpserted", "The number of upserted documents.")


class BulkWriteResult(_BulkResult):
    """Result of :meth:`Collection.bulk_write <gmongo.collection.Collection.bulk_write>`.

    The counts and `upserted_ids` raise InvalidOperation if the server did not acknowledge the writes.

    :param bulk_api_result: the combined results of all commands: counts of written documents, and errors.
    :param acknowledged: True if the server acknowledged the writes.
    """

    __slots__ = ()

    @property
    def upserted_ids(self) -> dict[int, Value]:
        """The ``_id`` of each upserted document, with the index of the write model as the key."""
        self._check_acknowledged("upserted_ids")
        return {upsert["index"]: upsert["_id"] for upsert in self._value.get("upserted", ())}


class ClientBulkWriteResult(_BulkResult):
    """Result of :meth:`MongoClient.bulk_write <gmongo.mongo_client.MongoClient.bulk_write>`.

    The counts, `insert_results`, `update_results` and `delete_results` raise InvalidOperation if the server did not
    acknowledge the writes. The three results also raise InvalidOperation if ``verbose_results`` was not True.

    :param bulk_api_result: the counts, the errors, and the results of single writes.
    :param acknowledged: True if the server acknowledged the writes.
    :param has_verbose_results: True if the result contains the results of single writes.
    """

    __slots__ = ("_has_verbose_results",)

    def __init__(self, bulk_api_result: Document, acknowledged: bool, has_verbose_results: bool) -> None:
        super().__init__(bulk_api_result, acknowledged)
        self._has_verbose_results = has_verbose_results

    deleted_count: int = _count_property("deleted_count", "nDeleted", "The number of deleted documents.")
    has_verbose_results: bool = read_only(
        "_has_verbose_results", "True if the result contains the results of single writes."
    )

    @property
    def insert_results(self) -> Mapping[int, InsertOneResult]:
        """The result of each successful insert, with the index of the write model as the key."""
        return self._get_results("insert_results", "insertResults")

    @property
    def update_results(self) -> Mapping[int, UpdateResult]:
        """The result of each successful update and replacement, with the index of the write model as the key."""
        return self._get_results("update_results", "updateResults")

    @property
    def delete_results(self) -> Mapping[int, DeleteResult]:
        """The result of each successful deletion, with the index of the write model as the key."""
        return self._get_results("delete_results", "deleteResults")

    def _get_results(self, name: str, field: str) -> Mapping[int, Value]:
        self._check_acknowledged(name)
        if not self._has_verbose_results:
            raise InvalidOperation(f"{name} is not known, because verbose_results was not True")
        results: Mapping[int, Value] = self._value.get(field, {})
        return results

    def __repr__(self) -> str:
        return (
            f"ClientBulkWriteResult({self._value!r}, acknowledged={self._acknowledged}, "
            f"verbose={self._has_verbose_results})"
        )
