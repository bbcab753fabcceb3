"""The class Collection, whose methods are the operations on a collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Generic, NoReturn, TypeAlias, TypeVar, overload

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions
from bson.raw_bson import RawBSONDocument
from bson.son import SON

from gmongo._background import with_checkpoints
from gmongo._documents import Document, DocumentDict, Value, plain, without_none
from gmongo._inherited_options import InheritedOptions, executor_of, internals_of, options_of
from gmongo._nearest import no_such_method
from gmongo._parameter_docs import SHARED_PARAMETERS, describes_parameters, has_parameters_of, read_only
from gmongo._server_facts import codes, wire_versions
from gmongo._truncated_repr import short
from gmongo.change_stream import CollectionChangeStream, _Watched
from gmongo.client_session import ClientSession
from gmongo.collation import Collation, validate_collation_or_none
from gmongo.command_cursor import CommandCursor, CursorClass, RawBatchCommandCursor
from gmongo.cursor import Bound, Cursor, CursorType, RawBatchCursor
from gmongo.engines.collection_bulk import Bulk, create_insert_run, statement_of, yield_runs
from gmongo.errors import ConfigurationError, InvalidName, InvalidOperation, OperationFailure
from gmongo.execution.deadline import checked_timeout
from gmongo.execution.executor import Executor
from gmongo.execution.operation import OperationContext, required_field
from gmongo.execution.reply_errors import is_namespace_missing
from gmongo.execution.sessions import checked_session, in_transaction
from gmongo.operations import indexes
from gmongo.operations.collection_commands import Aggregate, Count, Distinct, FindAndModify, writes_result
from gmongo.operations.find import FindOne
from gmongo.operations.keys import KeyOrList, fields_document, sort_document
from gmongo.operations.models import (
    IndexModel,
    ReturnDocument,
    SearchIndexModel,
    WriteModel,
    check_is_mapping,
    checked_array_filters,
    checked_flag,
    checked_hint,
    checked_let,
    checked_mapping,
    checked_replacement,
    checked_update,
)
from gmongo.operations.run_command import CursorCommand, WriteCommand
from gmongo.operations.write import SingleWrite, delete_statement, ensure_id, update_statement
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import _ReadPreference
from gmongo.results import BulkWriteResult, DeleteResult, InsertManyResult, InsertOneResult, UpdateResult
from gmongo.sdam.selection import WRITABLE, Selector
from gmongo.wire.reply_schema import COUNT, DOCUMENT
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from gmongo.database import Database

__all__ = ["Collection", "ReturnDocument"]

DocumentType = TypeVar("DocumentType", bound=Document)
OtherType = TypeVar("OtherType", bound=Document)

_Filter = Document
_CollationIn: TypeAlias = Document | Collation | None
_ORDERED_FIELDS = {"ordered": True}
_MATCH_ALL: Document = {}
# Default values of the parameters of find_one(). With these values, only a legacy query (`$query`) needs a Cursor.
_DEFAULT_OPTIONS_OF_FIND_ONE = (Cursor.__init__.__defaults__ or ())[1:]
_FORBIDDEN_FIELDS_OF_AGGREGATE = ("aggregate", "explain", "pipeline")
# The order of the keys of an index is significant, and existing programs expect SON documents.
_SON_CODEC_OPTIONS: CodecOptions[Value] = CodecOptions(document_class=SON)


# The decorator adds descriptions of parameters from SHARED_PARAMETERS and Cursor to the docstrings of the methods.
@describes_parameters(Cursor, SHARED_PARAMETERS)
class Collection(InheritedOptions, _Watched[CollectionChangeStream[DocumentType]], Generic[DocumentType]):
    """A collection of a database, returned by ``database.orders`` and ``database["orders"]``.

    An attribute access extends the name: ``database.orders.archive`` is ``database["orders.archive"]``. The
    constructor sends no command, except if `create` is True or `kwargs` is not empty.

    A `session` runs one operation at a time. An operation without a session uses an implicit session, which lets the
    server recognise a retry. A `comment` is any BSON value. The server shows the comment in its log, its profiler and
    ``currentOp``. Before MongoDB 4.4, a comment must be a string, and only some commands support a comment. Deletions
    and the ``find_one_and`` methods support a `hint` since MongoDB 4.4. :meth:`distinct` supports a `hint` since 7.1.

    Each operation may raise these exceptions, in addition to the exceptions in its documentation:

    - :class:`~gmongo.errors.ServerSelectionTimeoutError`: server selection found no suitable server within
      ``serverSelectionTimeoutMS`` (30 seconds by default).
    - :class:`~gmongo.errors.WaitQueueTimeoutError`: no connection became available within ``waitQueueTimeoutMS``.
    - :class:`~gmongo.errors.AutoReconnect` and its subclasses: the network failed or the primary changed. If the
      operation is retryable, the retry also failed (``docs/retries.md``).
    - :class:`~gmongo.errors.OperationFailure` and its subclasses: the server replied with an error. After a
      :class:`~gmongo.errors.WriteConcernError`, the write has taken effect on the primary.
    - :class:`~gmongo.errors.InvalidOperation`: the client is closed, the client belongs to a different native thread
      than the caller, or the session is not usable.
    - :class:`TypeError` or :class:`ValueError`: an argument is invalid. The driver sent no command.

    Specifications: CRUD API, Index Management, Enumerating Indexes, Collection Management, Enumerating Collections.

    :param database: the database that contains the collection. The database may be an object of a
        library such as Ming (see :class:`~gmongo.database.Database`).
    :param name: the name of the collection.
    :param create: True creates the collection, like ``create_collection(check_exists=False)``; False by default.
    :param session: the session of the ``create`` command; None by default.
    :param timeout_ms: the time limit of each operation including its retries, in milliseconds; 0
        means no limit, None uses the database's limit. :func:`gmongo.timeout` overrides `timeout_ms`.
    :param kwargs: fields of the ``create`` command, such as ``capped=True, size=1000000``.
    :raises TypeError: `database` is not a database, `name` is not a string, or an option has the wrong type.
    :raises InvalidName: `name` is not allowed for a collection.
    """

    _stream_class: type[CollectionChangeStream[DocumentType]] = CollectionChangeStream

    def _stream_target(self) -> tuple[Collection[Value], str | int]:
        return self, self._name

    def __init__(
        self,
        database: Database[DocumentType],
        name: str,
        create: bool | None = False,
        codec_options: CodecOptions[Value] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        session: ClientSession | None = None,
        timeout_ms: float | None = None,
        **kwargs: Value,
    ) -> None:
        overrides = (codec_options, read_preference, write_concern, read_concern)
        super().__init__(*options_of(database, "Database", overrides))
        _check_name(name)
        self._database = database
        self._name = name
        self._timeout_ms = timeout_ms
        self._executor: Executor = executor_of(database).with_timeout(checked_timeout("timeout_ms", timeout_ms))
        self._database_name = database.name
        self._context = OperationContext(
            database.name,
            name,
            self._codec_options,
            self._read_preference,
            # Commands omit an empty read concern and an empty write concern.
            self._read_concern.document,
            self._write_concern.document,
        )
        self._acknowledged = self._write_concern.acknowledged
        if create or kwargs:
            self._create_on_server(kwargs, session)

    def _create_on_server(self, fields: Document, session: ClientSession | None) -> None:
        command: DocumentDict = {"create": self._name}
        command.update((name, value) for name, value in fields.items() if value is not None)
        _convert_options(command)
        self._run_write_command(command, session)

    def _run_write_command(
        self, command: DocumentDict, session: ClientSession | None, comment: Value = None, **context: Value
    ) -> Value:
        """Run a command that writes. `context` replaces fields of the operation context."""
        operation = WriteCommand(self._context.replace(**context), without_none(command, comment=comment))
        return self._executor.run(operation, session)

    def _run_drop_command(
        self, command: DocumentDict, session: ClientSession | None, comment: Value, **context: Value
    ) -> None:
        """Run a command that drops an index. Do nothing if the collection does not exist."""
        try:
            self._run_write_command(command, session, comment, **context)
        except OperationFailure as error:
            if not is_namespace_missing(error):
                raise

    database: Database[DocumentType] = read_only("_database", "The database of the collection.")

    name: str = read_only("_name", "The name of the collection, such as ``orders``.")

    @property
    def full_name(self) -> str:
        """The name of the database and the name of the collection, such as ``"shop.orders"``."""
        return f"{self._database_name}.{self._name}"

    @overload
    def with_options(
        self,
        codec_options: None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Collection[DocumentType]: ...

    @overload
    def with_options(
        self,
        codec_options: CodecOptions[OtherType],
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Collection[OtherType]: ...

    def with_options(
        self,
        codec_options: CodecOptions[Value] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Collection[Value]:
        """Return a copy of this collection object with the given options. An option that is None does not change.

        ::

            orders.with_options(read_preference=ReadPreference.SECONDARY).count_documents({})

        :param timeout_ms: the time limit of each operation in milliseconds; 0 means no limit, None inherits the limit.
        :raises TypeError: an option has the wrong type.
        """
        options = options_of(self, "Collection", (codec_options, read_preference, write_concern, read_concern))
        timeout_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        return Collection(self._database, self._name, False, *options, timeout_ms=timeout_ms)

    def __getitem__(self, name: str) -> Collection[DocumentType]:
        options = (self.codec_options, self.read_preference, self.write_concern, self.read_concern)
        return Collection(self._database, f"{self._name}.{name}", False, *options, timeout_ms=self._timeout_ms)

    def __getattr__(self, name: str) -> Collection[DocumentType]:
        if name.startswith("_"):
            full = f"{self._name}.{name}"
            raise AttributeError(
                f"Collection has no attribute {name!r}. To access the {full} collection, use database[{full!r}]."
            )
        return self[name]

    def insert_one(
        self,
        document: DocumentType | RawBSONDocument,
        bypass_document_validation: bool | None = None,
        session: ClientSession | None = None,
        comment: Value = None,
    ) -> InsertOneResult:
        """Insert a document.

            >>> notes.insert_one({"_id": 1, "title": "first"}).inserted_id
            1

        :param document: a mapping or a :class:`~bson.raw_bson.RawBSONDocument`. The driver adds an
            :class:`~bson.objectid.ObjectId` to a mapping that has no ``_id``.
        :returns: a result, whose attribute `inserted_id` is the ``_id`` of the document, or None for a raw document.
        :raises TypeError: `document` is not a mapping.
        :raises DuplicateKeyError: another document has an equal ``_id``, or an equal value in a unique index.
        :raises WriteError: the server rejected the document, for example because the document failed the validation.
        :raises DocumentTooLarge: the document is larger than the server's maximum size (16 MB).
        """
        check_is_mapping("document", document)
        inserted_id = ensure_id(document)
        fields = _build_write_fields(bypass_document_validation, None, comment)
        acknowledged = self._acknowledged or self._in_transaction(session)
        operation = SingleWrite(self._context, "insert", (document,), fields, acknowledged, acknowledged)
        self._executor.run(operation, session)
        return InsertOneResult(inserted_id, acknowledged)

    def insert_many(
        self,
        documents: Iterable[DocumentType | RawBSONDocument],
        ordered: bool = True,
        bypass_document_validation: bool | None = None,
        session: ClientSession | None = None,
        comment: Value = None,
    ) -> InsertManyResult:
        """Insert documents, in as few messages as possible. Other greenlets run while the driver encodes the documents.

            >>> notes.insert_many([{"_id": 2}, {"_id": 3}]).inserted_ids
            [2, 3]

        :param documents: a non-empty list or another iterable. :meth:`insert_one` describes the possible documents.
        :param ordered: True (the default) stops at the first error. False attempts all inserts, in any order.
        :returns: a result with the ``_id`` of each document that is not a raw document, in the order of the documents.
        :raises TypeError: `documents` is not an iterable of mappings, or is an empty list.
        :raises InvalidOperation: the iterable returned no document.
        :raises BulkWriteError: some inserts failed. `details` contains the errors and the number of inserted documents.
        :raises DocumentTooLarge: a document is larger than the server's maximum message size (48 MB).
        """
        if isinstance(documents, Mapping) or not isinstance(documents, Iterable) or not documents:
            raise TypeError("documents must be a non-empty list")
        elements, ids = [], []
        for document in with_checkpoints(documents):
            check_is_mapping("document", document)
            inserted_id = ensure_id(document)
            # The result omits the _id of raw documents, which the driver does not decode.
            if inserted_id is not None or not isinstance(document, RawBSONDocument):
                ids.append(inserted_id)
            elements.append(document)
        if not elements:
            raise InvalidOperation("No operations to execute")
        fields = without_none({}, bypassDocumentValidation=bypass_document_validation, comment=comment)
        acknowledged = self._acknowledged or self._in_transaction(session)
        bulk = self._create_bulk("insert", ordered, fields, acknowledged)
        bulk.execute(self._executor, [create_insert_run(elements)], session)
        return InsertManyResult(ids, acknowledged)

    def _in_transaction(self, session: ClientSession | None) -> bool:
        """Return True if a write is part of a transaction. All writes of a transaction are acknowledged."""
        return in_transaction(self._executor, session)

    def update_one(
        self,
        filter: _Filter,
        update: Document | Sequence[Document],
        upsert: bool = False,
        bypass_document_validation: bool | None = None,
        collation: _CollationIn = None,
        array_filters: Sequence[Document] | None = None,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        sort: KeyOrList | None = None,
        comment: Value = None,
    ) -> UpdateResult:
        """Update the first document that matches `filter`.

            >>> result = notes.update_one({"_id": 5}, {"$set": {"title": "changed"}})
            >>> result.matched_count, result.modified_count
            (1, 1)

        :param sort: the order that determines the first match, as for :meth:`find` (MongoDB 8.0); None by default.
        :returns: a result with the numbers of matched and modified documents, and the ``_id`` of an inserted document.
        :raises ValueError: `update` is empty, or is a mapping that does not begin with an operator.
        :raises DuplicateKeyError: the updated document would violate a unique index.
        :raises WriteError: the server rejected the update, for example because the document failed the validation.
        """
        options = (upsert, collation, hint, array_filters, sort)
        command_options = (bypass_document_validation, let, comment)
        return self._update(filter, checked_update(update), options, command_options, session)

    def update_many(
        self,
        filter: _Filter,
        update: Document | Sequence[Document],
        upsert: bool = False,
        array_filters: Sequence[Document] | None = None,
        bypass_document_validation: bool | None = None,
        collation: _CollationIn = None,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        comment: Value = None,
    ) -> UpdateResult:
        """Update all documents that match `filter`.

        After a network error or an election, the driver does not retry this operation, which is not a retryable write.

        :returns: a result with the numbers of matched and modified documents, and the ``_id`` of an inserted document.
        :raises ValueError: `update` is empty, or is a mapping that does not begin with an operator.
        :raises DuplicateKeyError: an update would violate a unique index. The earlier updates remain in effect.
        :raises WriteError: the server rejected the update of a document. The earlier updates remain in effect.
        """
        options = (upsert, collation, hint, array_filters, None)
        command_options = (bypass_document_validation, let, comment)
        return self._update(filter, checked_update(update), options, command_options, session, multi=True)

    def replace_one(
        self,
        filter: _Filter,
        replacement: Document,
        upsert: bool = False,
        bypass_document_validation: bool | None = None,
        collation: _CollationIn = None,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        sort: KeyOrList | None = None,
        comment: Value = None,
    ) -> UpdateResult:
        """Replace the first document that matches `filter`, and keep its ``_id``.

        :param sort: the order that determines the first match, as for :meth:`find` (MongoDB 8.0); None by default.
        :returns: a result with the numbers of matched and modified documents, and the ``_id`` of an inserted document.
        :raises ValueError: `replacement` begins with an update operator.
        :raises DuplicateKeyError: another document has an equal value in a unique index.
        :raises WriteError: the server rejected the replacement, for example by document validation.
        """
        options = (upsert, collation, hint, None, sort)
        command_options = (bypass_document_validation, let, comment)
        return self._update(filter, checked_replacement(replacement), options, command_options, session)

    def _update(
        self,
        filter: _Filter,
        update: Value,
        options: tuple[Value, ...],
        command_options: tuple[Value, ...],
        session: ClientSession | None,
        multi: bool = False,
    ) -> UpdateResult:
        upsert, collation, hint, array_filters, sort = options
        bypass, let, comment = command_options
        statement = update_statement(
            checked_mapping("filter", filter),
            update,
            multi=multi,
            upsert=checked_flag("upsert", upsert),
            collation=None if collation is None else validate_collation_or_none(collation),
            array_filters=None if array_filters is None else checked_array_filters(array_filters),
            hint=None if hint is None else checked_hint(hint),
            sort=None if sort is None else sort_document(sort),
        )
        fields = _build_write_fields(bypass, let, comment)
        acknowledged = self._acknowledged or self._in_transaction(session)
        operation = SingleWrite(self._context, "update", (statement,), fields, acknowledged, acknowledged and not multi)
        reply: DocumentDict = self._executor.run(operation, session)
        if reply:  # change a copy, because a listener may have a reference to the reply
            reply = {**reply, "updatedExisting": bool(reply.get("n")) and "upserted" not in reply}
        if reply.get("upserted"):
            reply["upserted"] = reply["upserted"][0]["_id"]
        return UpdateResult(reply or None, acknowledged)

    def delete_one(
        self,
        filter: _Filter,
        collation: _CollationIn = None,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        comment: Value = None,
    ) -> DeleteResult:
        """Delete the first document that matches `filter`.

            >>> notes.delete_one({"_id": 6}).deleted_count
            1

        :returns: a result with the number of deleted documents, which is 0 or 1.
        """
        return self._delete(1, filter, collation, hint, session, let, comment)

    def delete_many(
        self,
        filter: _Filter,
        collation: _CollationIn = None,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        comment: Value = None,
    ) -> DeleteResult:
        """Delete all documents that match `filter`.

        After a network error or an election, the driver does not retry this operation, which is not a retryable write.
        :meth:`drop` deletes all documents faster, but also drops the indexes.

        :returns: a result with the number of deleted documents.
        """
        return self._delete(0, filter, collation, hint, session, let, comment)

    def _delete(
        self,
        limit: int,
        filter: _Filter,
        collation: _CollationIn,
        hint: Value,
        session: ClientSession | None,
        let: Document | None,
        comment: Value,
    ) -> DeleteResult:
        statement = delete_statement(
            checked_mapping("filter", filter),
            limit=limit,
            collation=validate_collation_or_none(collation),
            hint=None if hint is None else checked_hint(hint),
        )
        fields = _build_write_fields(None, let, comment)
        acknowledged = self._acknowledged or self._in_transaction(session)
        operation = SingleWrite(
            self._context, "delete", (statement,), fields, acknowledged, acknowledged and limit == 1
        )
        return DeleteResult(self._executor.run(operation, session), acknowledged)

    def bulk_write(
        self,
        requests: Sequence[WriteModel[DocumentType]],
        ordered: bool = True,
        bypass_document_validation: bool | None = None,
        session: ClientSession | None = None,
        comment: Value = None,
        let: Document | None = None,
    ) -> BulkWriteResult:
        """Run many writes in as few messages as possible. Other greenlets run while the driver encodes the writes.

            >>> from gmongo import DeleteOne, InsertOne, UpdateOne
            >>> writes = [InsertOne({"_id": 4}), UpdateOne({"_id": 4}, {"$set": {"a": 1}}), DeleteOne({"_id": 4})]
            >>> result = notes.bulk_write(writes)
            >>> result.inserted_count, result.modified_count, result.deleted_count
            (1, 1, 1)

        :meth:`MongoClient.bulk_write <gmongo.mongo_client.MongoClient.bulk_write>` can write to several collections.

        :param requests: a non-empty list of write models: :class:`~gmongo.operations.InsertOne`,
            :class:`~gmongo.operations.UpdateOne`, :class:`~gmongo.operations.UpdateMany`,
            :class:`~gmongo.operations.ReplaceOne`, :class:`~gmongo.operations.DeleteOne` and
            :class:`~gmongo.operations.DeleteMany`.
        :param ordered: True (the default) stops at the first error. False attempts all writes, in any order.
        :returns: a result with the total numbers of written documents, and with the ``_id`` of each upserted document.
        :raises TypeError: `requests` is not a list, or an element of `requests` is not a write model.
        :raises InvalidOperation: `requests` is empty.
        :raises BulkWriteError: some writes failed. `details` has the errors, and the numbers of written documents.
        """
        checked_session(session)
        if not isinstance(requests, list):
            raise TypeError(f"requests must be a list of write models, not {short(requests)}")
        if not requests:
            raise InvalidOperation("No operations to execute")
        statements = [statement_of(model) for model in with_checkpoints(requests)]
        fields = without_none(
            {}, bypassDocumentValidation=bypass_document_validation, comment=comment, let=checked_let(let)
        )
        acknowledged = self._acknowledged or self._in_transaction(session)
        bulk = self._create_bulk("bulkWrite", ordered, fields, acknowledged)
        return BulkWriteResult(bulk.execute(self._executor, yield_runs(statements, ordered), session), acknowledged)

    def _create_bulk(self, name: str, ordered: bool, fields: Document, acknowledged: bool) -> Bulk:
        return Bulk(self._context, name=name, ordered=ordered, fields=fields, acknowledged=acknowledged)

    def find(
        self,
        filter: _Filter | None = None,
        projection: Document | Sequence[str] | Set[str] | None = None,
        skip: int = 0,
        limit: int = 0,
        no_cursor_timeout: bool = False,
        cursor_type: int = CursorType.NON_TAILABLE,
        sort: KeyOrList | None = None,
        allow_partial_results: bool = False,
        oplog_replay: bool = False,
        batch_size: int = 0,
        collation: _CollationIn = None,
        hint: KeyOrList | None = None,
        max_scan: int | None = None,
        max_time_ms: int | None = None,
        max: Bound = None,
        min: Bound = None,
        return_key: bool | None = None,
        show_record_id: bool | None = None,
        snapshot: bool | None = None,
        comment: Value = None,
        session: ClientSession | None = None,
        allow_disk_use: bool | None = None,
        let: Document | None = None,
        *,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
    ) -> Cursor[DocumentType]:
        """Return a cursor over documents that match `filter`. The first iteration sends the query.

            >>> for note in notes.find({"tags": "a"}, sort=[("title", 1)], limit=10):
            ...     print(note["title"])
            first
            second

        Methods of the cursor can also set the options: ``notes.find(filter).sort("title").limit(10)``. A program
        that does not read a cursor to its end should close the cursor, or use a ``with`` statement. Otherwise, the
        cursor stays open on the server until the program's garbage collection frees the cursor, or until a timeout.
        :class:`~gmongo.cursor.Cursor` describes the options.

        :param filter: a query; None (the default) or ``{}`` matches every document.
        :raises ValueError: `skip` or `batch_size` is negative, or `cursor_type` is unknown.
        :raises InvalidOperation: `limit` is set for a cursor of type ``EXHAUST``. At the first
            iteration: `min` or `max` is set without `hint`.
        """
        return Cursor(
            self, filter, projection, skip, limit, no_cursor_timeout, cursor_type, sort, allow_partial_results,
            oplog_replay, batch_size, collation, hint, max_scan, max_time_ms, max, min, return_key, show_record_id,
            snapshot, comment, session, allow_disk_use, let, timeout_ms=timeout_ms, timeout_mode=timeout_mode,
        )  # fmt: skip

    @has_parameters_of(find)
    def find_raw_batches(self, *arguments: Value, **named: Value) -> RawBatchCursor:
        """Return a cursor over batches of the documents that match `filter`.

        The driver does not decode the documents, so that a program can use its own decoder.

            >>> import bson
            >>> sum(len(bson.decode_all(batch)) for batch in notes.find_raw_batches({"tags": "a"}))
            2

        :param filter: a query; None (the default) or ``{}`` matches every document.
        :returns: a cursor whose items are ``bytes``. Each item consists of the encoded documents of one batch.
        :raises ValueError: `skip` or `batch_size` is negative, or `cursor_type` is unknown.
        :raises InvalidOperation: `limit` is set for a cursor of type ``EXHAUST``. At the first
            iteration: `min` or `max` is set without `hint`.
        """
        return RawBatchCursor(self, *arguments, **named)

    def find_one(
        self,
        filter: Value = None,
        projection: Document | Sequence[str] | Set[str] | None = None,
        skip: int = 0,
        limit: int = 0,
        no_cursor_timeout: bool = False,
        cursor_type: int = CursorType.NON_TAILABLE,
        sort: KeyOrList | None = None,
        allow_partial_results: bool = False,
        oplog_replay: bool = False,
        batch_size: int = 0,
        collation: _CollationIn = None,
        hint: KeyOrList | None = None,
        max_scan: int | None = None,
        max_time_ms: int | None = None,
        max: Bound = None,
        min: Bound = None,
        return_key: bool | None = None,
        show_record_id: bool | None = None,
        snapshot: bool | None = None,
        comment: Value = None,
        session: ClientSession | None = None,
        allow_disk_use: bool | None = None,
        let: Document | None = None,
        timeout_ms: float | None = None,
    ) -> DocumentType | None:
        """Return the first document that matches `filter`, or None if no document matches.

            >>> notes.find_one({"tags": "b"}, ["title"], sort=[("title", -1)])
            {'_id': 6, 'title': 'second'}
            >>> notes.find_one(6)["title"]
            'second'

        :param filter: a query, or the ``_id`` of the document. Any value except a mapping or None is
            an ``_id``. None and ``{}`` match every document.
        :param limit: a parameter without effect, because the limit is always 1.
        :param no_cursor_timeout: a parameter without effect, because no cursor stays open on the server.
        :param cursor_type: NON_TAILABLE (the default), because the server rejects a tailable cursor with one batch.
        :param batch_size: a parameter without effect, because the result has at most one document.
        :raises ValueError: `skip` or `batch_size` is negative, or `cursor_type` is unknown.
        :raises InvalidOperation: `min` or `max` is set without `hint`.
        """
        if filter is not None and not isinstance(filter, dict):
            filter = plain(filter) if isinstance(filter, Mapping) else {"_id": filter}
        options = (
            projection, skip, limit, no_cursor_timeout, cursor_type, sort, allow_partial_results, oplog_replay,
            batch_size, collation, hint, max_scan, max_time_ms, max, min, return_key, show_record_id, snapshot,
            comment, session, allow_disk_use, let,
        )  # fmt: skip
        fields: DocumentDict = {}
        filter = filter or _MATCH_ALL
        if options != _DEFAULT_OPTIONS_OF_FIND_ONE or "$query" in filter:
            cursor: Cursor[Value] = Cursor(self, filter, *options)
            filter, fields = cursor._build_query()
            if "explain" in fields:
                return next(cursor.limit(-1))
        executor = self._executor if timeout_ms is None else self._executor.for_operation(timeout_ms, session)
        return executor.run(FindOne(self._context, filter, fields), session)

    def find_one_and_delete(
        self,
        filter: _Filter,
        projection: Document | Sequence[str] | Set[str] | None = None,
        sort: KeyOrList | None = None,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> DocumentType | None:
        """Delete the first document that matches `filter`, and return the deleted document.

            >>> notes.find_one_and_delete({"tags": "a"}, ["title"], sort=[("_id", -1)])
            {'_id': 6, 'title': 'second'}

        :returns: the deleted document, or None if no document matches.
        """
        fields = {"remove": True, **kwargs}
        return self._find_and_modify(filter, projection, sort, hint, session, let, comment, fields)

    def find_one_and_replace(
        self,
        filter: _Filter,
        replacement: Document,
        projection: Document | Sequence[str] | Set[str] | None = None,
        sort: KeyOrList | None = None,
        upsert: bool = False,
        return_document: bool = ReturnDocument.BEFORE,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> DocumentType | None:
        """Replace the first document that matches `filter`, and return the original or new document.

        :returns: the document that `return_document` selects. Without a match, the result is None,
            except after an upsert with :attr:`ReturnDocument.AFTER`.
        :raises ValueError: `replacement` begins with an update operator.
        :raises DuplicateKeyError: another document has an equal value in a unique index.
        """
        replacement = checked_replacement(replacement)
        fields = {"update": replacement, **_build_return_document_fields(return_document, upsert), **kwargs}
        return self._find_and_modify(filter, projection, sort, hint, session, let, comment, fields)

    def find_one_and_update(
        self,
        filter: _Filter,
        update: Document | Sequence[Document],
        projection: Document | Sequence[str] | Set[str] | None = None,
        sort: KeyOrList | None = None,
        upsert: bool = False,
        return_document: bool = ReturnDocument.BEFORE,
        array_filters: Sequence[Document] | None = None,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> DocumentType | None:
        """Update the first document that matches `filter`, and return the original or new document.

            >>> from gmongo import ReturnDocument
            >>> counters.find_one_and_update(
            ...     {"_id": "orders"}, {"$inc": {"n": 1}}, upsert=True, return_document=ReturnDocument.AFTER
            ... )
            {'_id': 'orders', 'n': 1}

        :returns: the document that `return_document` selects. Without a match, the result is None,
            except after an upsert with :attr:`ReturnDocument.AFTER`.
        :raises ValueError: `update` is empty, or is a mapping that does not begin with an operator.
        :raises DuplicateKeyError: the updated document would violate a unique index.
        """
        update = checked_update(update)
        fields = {"update": update, **_build_return_document_fields(return_document, upsert), **kwargs}
        if array_filters is not None:
            fields["arrayFilters"] = checked_array_filters(array_filters)
        return self._find_and_modify(filter, projection, sort, hint, session, let, comment, fields)

    def _find_and_modify(
        self,
        filter: _Filter,
        projection: Value,
        sort: Value,
        hint: Value,
        session: ClientSession | None,
        let: Document | None,
        comment: Value,
        fields: DocumentDict,
    ) -> Value:
        command = without_none(
            {"query": checked_mapping("filter", filter), **fields},
            fields=None if projection is None else fields_document(projection),
            sort=None if sort is None else sort_document(sort),
            hint=hint,
            let=checked_let(let),
            comment=comment,
        )
        _convert_options(command)
        acknowledged = self._acknowledged or self._in_transaction(session)
        return self._executor.run(FindAndModify(self._context, command, acknowledged), session)

    def count_documents(
        self, filter: _Filter, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> int:
        """Return the exact number of documents that match `filter`.

        The method runs an aggregation. `filter` must therefore not contain ``$where``, ``$near`` or
        ``$nearSphere``: use ``$expr`` or ``$geoWithin``. To count all documents of a collection,
        :meth:`estimated_document_count` is faster.

            >>> notes.count_documents({"tags": "a"})
            2

        :param kwargs: ``skip`` (the number of documents to skip) and ``limit`` (the maximum number of documents to
            count). Further keywords are fields of the ``aggregate`` command, such as ``hint`` (the name or the keys of
            an index), ``collation`` and ``maxTimeMS`` (in milliseconds).
        :returns: the number of documents, which is 0 if the collection does not exist.
        """
        pipeline: list[DocumentDict] = [{"$match": checked_mapping("filter", filter)}]
        for stage in ("skip", "limit"):
            if stage in kwargs:
                pipeline.append({f"${stage}": kwargs.pop(stage)})
        pipeline.append({"$group": {"_id": 1, "n": {"$sum": 1}}})
        fields = without_none(kwargs, comment=comment)
        try:
            with aggregate_cursor(
                CommandCursor, self, self._name, pipeline, session, fields, decoding=DEFAULT_CODEC_OPTIONS
            ) as cursor:
                result = cursor.try_next()
        except OperationFailure as error:
            if error.code != codes.NAMESPACE_NOT_FOUND:
                raise
            return 0
        return int(required_field(result, "n", COUNT, "a count")) if result else 0

    def estimated_document_count(self, comment: Value = None, **kwargs: Value) -> int:
        """Return the number of all documents according to the metadata of the collection.

        The number may be wrong after a crash of the server, and includes the orphaned documents of a sharded cluster.

        :param kwargs: ``maxTimeMS`` (in milliseconds), and further fields of the ``count`` command.
        :returns: the number of documents, which is 0 if the collection does not exist.
        :raises ConfigurationError: `kwargs` contains ``session``, which the method does not support.
        """
        if "session" in kwargs:
            raise ConfigurationError("estimated_document_count does not support sessions")
        return self._executor.run(Count(self._context, without_none(kwargs, comment=comment)))

    def distinct(
        self,
        key: str,
        filter: _Filter | None = None,
        session: ClientSession | None = None,
        comment: Value = None,
        hint: KeyOrList | None = None,
        **kwargs: Value,
    ) -> list[Value]:
        """Return the distinct values of a field in the documents that match `filter`.

        If the field is an array, each element of the array is a separate value.

            >>> sorted(notes.distinct("tags"))
            ['a', 'b']

        :param key: the name of the field, with dots for nested fields.
        :param filter: a query; None (the default) or ``{}`` matches every document.
        :returns: a list of the values, in no defined order.
        :raises TypeError: `key` is not a string.
        :raises OperationFailure: the server rejected the command, for example because the values together exceed 16 MB.
        """
        if not isinstance(key, str):
            raise TypeError(f"key must be a string, not {short(key)}")
        fields = without_none(
            {"key": key, **kwargs},
            query=None if filter is None else checked_mapping("filter", filter),
            hint=hint,
            comment=comment,
        )
        _convert_options(fields)
        return self._executor.run(Distinct(self._context, fields), session)

    def aggregate(
        self,
        pipeline: Sequence[Document],
        session: ClientSession | None = None,
        let: Document | None = None,
        comment: Value = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        **kwargs: Value,
    ) -> CommandCursor[DocumentType]:
        """Run an aggregation pipeline, and return a cursor over the result.

            >>> pipeline = [{"$unwind": "$tags"}, {"$sortByCount": "$tags"}]
            >>> notes.aggregate(pipeline).to_list()
            [{'_id': 'a', 'count': 2}, {'_id': 'b', 'count': 1}]

        The method sends the command immediately, to a server that the read preference selects. A
        pipeline that ends in ``$out`` or ``$merge`` is a write. The driver applies the write concern, and
        does not retry such a pipeline after a network error or an election. If all servers have MongoDB
        5.0 or newer, a secondary can run the pipeline.

        :param kwargs: ``batchSize`` (the number of documents in each batch) and ``maxAwaitTimeMS`` (the server's
            maximum wait for an event of a ``$changeStream``, in milliseconds). Further keywords are ``aggregate``
            command fields, such as ``allowDiskUse``, ``maxTimeMS`` (in milliseconds), ``collation`` and ``hint``.
        :raises TypeError: `pipeline` is neither a list nor a tuple.
        :raises ConfigurationError: `kwargs` contains ``aggregate`` or ``explain``.
        """
        fields = without_none(kwargs, let=checked_let(let), comment=comment)
        timeouts = (timeout_ms, timeout_mode)
        return aggregate_cursor(CommandCursor, self, self._name, pipeline, session, fields, timeouts=timeouts)

    def aggregate_raw_batches(
        self,
        pipeline: Sequence[Document],
        session: ClientSession | None = None,
        comment: Value = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        **kwargs: Value,
    ) -> RawBatchCommandCursor:
        """Run an aggregation pipeline, and return a cursor over batches of encoded documents.

        :param kwargs: the options of :meth:`aggregate`, including ``let``.
        :returns: a cursor whose items are ``bytes``. Each item consists of the encoded documents of one batch.
        :raises TypeError: `pipeline` is neither a list nor a tuple.
        :raises ConfigurationError: `kwargs` contains ``aggregate`` or ``explain``.
        """
        fields = without_none(kwargs, comment=comment)
        timeouts = (timeout_ms, timeout_mode)
        return aggregate_cursor(RawBatchCommandCursor, self, self._name, pipeline, session, fields, timeouts=timeouts)

    def create_index(
        self, keys: KeyOrList, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> str:
        """Create an index if the index does not exist.

            >>> notes.create_index([("title", 1), ("tags", -1)], unique=True)
            'title_1_tags_-1'

        :param keys: a field name, a list of names and ``(name, direction)`` pairs, or a mapping of names to directions.
            A direction is ``ASCENDING``, ``DESCENDING``, ``TEXT``, ``GEOSPHERE``, ``GEO2D`` or ``HASHED``.
        :param kwargs: options of the index, as for :class:`~gmongo.operations.IndexModel`, and the
            fields ``maxTimeMS`` (in milliseconds) and ``commitQuorum`` (MongoDB 4.4) of the command.
        :returns: the name of the index.
        :raises TypeError: `keys` or the collation has the wrong type.
        :raises ValueError: `keys` is empty.
        :raises OperationFailure: the server rejected the command, for example because another index has the same name.
        """
        command_fields = {name: kwargs.pop(name) for name in ("maxTimeMS", "commitQuorum") if name in kwargs}
        return self.create_indexes([IndexModel(keys, **kwargs)], session, comment, **command_fields)[0]

    def create_indexes(
        self,
        indexes: Sequence[IndexModel],
        session: ClientSession | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> list[str]:
        """Create indexes with one command. Indexes that already exist remain unchanged.

            >>> from gmongo import IndexModel
            >>> notes.create_indexes([IndexModel("created"), IndexModel("place", sparse=True)])
            ['created_1', 'place_1']

        :param indexes: a list of :class:`~gmongo.operations.IndexModel`.
        :param kwargs: further command fields, such as ``maxTimeMS`` (in milliseconds) and ``commitQuorum``.
        :returns: the names of the indexes.
        :raises TypeError: `indexes` is not a list of index models.
        :raises OperationFailure: the server rejected the command, and created no index.
        """
        if not isinstance(indexes, list) or not all(isinstance(each, IndexModel) for each in indexes):
            raise TypeError(f"indexes must be a list of IndexModel, not {short(indexes)}")
        documents = [index.document for index in indexes]
        self._run_write_command({"createIndexes": self._name, "indexes": documents, **kwargs}, session, comment)
        return [document["name"] for document in documents]

    def drop_index(
        self, index_or_name: KeyOrList, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> None:
        """Drop an index. Do nothing if the collection does not exist.

        :param index_or_name: the name of the index, or the keys of an index with the default name, as for
            :meth:`create_index`.
        :raises OperationFailure: the index does not exist, or is the index on ``_id``.
        """
        command = {"dropIndexes": self._name, "index": indexes.name_of(index_or_name), **kwargs}
        self._run_drop_command(command, session, comment)

    def drop_indexes(self, session: ClientSession | None = None, comment: Value = None, **kwargs: Value) -> None:
        """Drop all indexes except the ``_id`` index. Do nothing if the collection does not exist."""
        self._run_drop_command({"dropIndexes": self._name, "index": "*", **kwargs}, session, comment)

    def list_indexes(
        self,
        session: ClientSession | None = None,
        comment: Value = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
    ) -> CommandCursor[DocumentDict]:
        """Return a cursor over descriptions of the collection's indexes.

            >>> [index["name"] for index in notes.list_indexes()]
            ['_id_']

        :returns: a cursor over documents with ``name``, ``key`` and the options of the index. If the
            collection does not exist, the cursor is empty.
        """
        command = without_none({"listIndexes": self._name, "cursor": {}}, comment=comment)
        operation = CursorCommand(self._context.replace(selector=WRITABLE), command, _SON_CODEC_OPTIONS)
        try:
            return CommandCursor._run(
                self, operation, session, comment=comment, timeout_ms=timeout_ms, timeout_mode=timeout_mode
            )
        except OperationFailure as error:
            if not is_namespace_missing(error):
                raise
            return CommandCursor._from_documents(self, [], session)

    def index_information(self, session: ClientSession | None = None, comment: Value = None) -> dict[str, DocumentDict]:
        """Return descriptions of the collection's indexes.

            >>> notes.index_information()
            {'_id_': {'v': 2, 'key': [('_id', 1)]}}

        :returns: a mapping of index names to options. The option ``key`` is a list of pairs
            ``(field, direction)``. If the collection does not exist, the mapping is empty.
        """
        return indexes.index_information(self.list_indexes(session, comment))

    def create_search_index(
        self,
        model: Document | SearchIndexModel,
        session: ClientSession | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> str:
        """Create an Atlas Search index.

        The server builds the index after the reply. :meth:`list_search_indexes` shows whether the index is ready.

        :param model: a :class:`~gmongo.operations.SearchIndexModel`, or a mapping with the parameters of that class.
        :returns: the name of the index.
        :raises TypeError: `model` is neither a search index model nor a mapping with a ``definition``.
        """
        if not isinstance(model, SearchIndexModel):
            model = SearchIndexModel(**model)
        return self.create_search_indexes([model], session, comment, **kwargs)[0]

    def create_search_indexes(
        self,
        models: Sequence[SearchIndexModel],
        session: ClientSession | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> list[str]:
        """Create Atlas Search indexes with one command.

        :param models: a list of :class:`~gmongo.operations.SearchIndexModel`.
        :returns: the names of the indexes.
        :raises TypeError: an element of `models` is not a search index model.
        """
        models = list(models) if isinstance(models, Iterable) else [models]
        if not all(isinstance(model, SearchIndexModel) for model in models):
            raise TypeError("models must be a list of SearchIndexModel")
        documents = [model.document for model in models]
        command = {"createSearchIndexes": self._name, "indexes": documents, **kwargs}
        return indexes.created_index_names(
            self._run_write_command(command, session, comment, write_concern=None), len(models)
        )

    def drop_search_index(
        self, name: str, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> None:
        """Drop an Atlas Search index. Do nothing if the collection does not exist.

        :param name: the name of the index.
        """
        command = {"dropSearchIndex": self._name, "name": name, **kwargs}
        self._run_drop_command(command, session, comment, write_concern=None)

    def update_search_index(
        self,
        name: str,
        definition: Document,
        session: ClientSession | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> None:
        """Replace the definition of an Atlas Search index.

        :param name: the name of the index.
        :param definition: the complete new definition of the index, as a mapping.
        :raises OperationFailure: the server rejected the command, for example because the index does not exist.
        """
        command = {"updateSearchIndex": self._name, "name": name, "definition": definition, **kwargs}
        self._run_write_command(command, session, comment, write_concern=None)

    def list_search_indexes(
        self, name: str | None = None, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> CommandCursor[DocumentDict]:
        """Return a cursor over descriptions of the collection's Atlas Search indexes.

        The command contains neither the read concern nor the write concern of the collection.

        :param name: the name of one index. None (the default) lists all indexes.
        :param kwargs: the options of :meth:`aggregate`, such as ``batchSize``, except ``pipeline``.
        :raises ConfigurationError: `kwargs` contains ``pipeline``.
        """
        if "pipeline" in kwargs:
            raise ConfigurationError("list_search_indexes() creates the pipeline; the option pipeline is not allowed")
        pipeline = [{"$listSearchIndexes": {} if name is None else {"name": name}}]
        # Search indexes support no read concern. Call Collection's `with_options`, because a subclass
        # may override the method with different parameters.
        without_read_concern: Collection[Value] = Collection.with_options(self, read_concern=ReadConcern())
        return without_read_concern.aggregate(pipeline, session, comment=comment, **kwargs)

    def drop(
        self, session: ClientSession | None = None, comment: Value = None, encrypted_fields: Document | None = None
    ) -> None:
        """Drop the collection and its indexes. Do nothing if the collection does not exist."""
        self._database_with_options.drop_collection(self._name, session, comment, encrypted_fields)

    def rename(
        self, new_name: str, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> DocumentDict:
        """Rename the collection within its database. The name of this object does not change.

        :param new_name: the new name of the collection.
        :param kwargs: further fields of the ``renameCollection`` command. ``dropTarget=True`` drops
            an existing collection that has the new name.
        :returns: the server's reply.
        :raises TypeError: `new_name` is not a string.
        :raises InvalidName: `new_name` is not allowed for a collection.
        :raises OperationFailure: the server rejected the command, for example because the collection `new_name` exists.
        """
        _check_name(new_name)
        command = {"renameCollection": self.full_name, "to": f"{self._database_name}.{new_name}", **kwargs}
        return self._run_write_command(command, session, comment, database="admin")

    def options(self, session: ClientSession | None = None, comment: Value = None) -> DocumentDict:
        """Return the options that the collection received at its creation.

            >>> database.create_collection("log", capped=True, size=4096).options()["capped"]
            True

        :returns: a mapping such as ``{"capped": True, "size": 4096}``. The mapping is empty if the
            collection has no options or does not exist.
        """
        matches = self._database_with_options.list_collections(session, {"name": self._name}, comment).to_list()
        return dict(required_field(matches[0], "options", DOCUMENT)) if matches and "options" in matches[0] else {}

    @property
    def _database_with_options(self) -> Database[Value]:
        """The database with the write concern and the time limit of the collection.

        If the time limit is None, `timeout_ms` stays unset, because a database of PyMongo has no such option.
        """
        database = self._database.with_options(write_concern=self._write_concern)
        return database if self._timeout_ms is None else database.with_options(timeout_ms=self._timeout_ms)

    def __bool__(self) -> NoReturn:
        raise NotImplementedError("compare with None instead: collection is not None")

    def __call__(self, *args: object, **kwargs: Value) -> NoReturn:
        parent, _, method = self._name.rpartition(".")
        raise no_such_method(type(self if parent else self._database), method)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Collection):
            return NotImplemented
        return self._database == other._database and self._name == other._name

    def __hash__(self) -> int:
        return hash((self._database, self._name))

    @property
    # Subclasses in other libraries use this private attribute of PyMongo's Collection.
    def _Collection__database(self) -> Database[Value]:
        return self._database

    def __repr__(self) -> str:
        return f"Collection({self._database!r}, {self._name!r})"


def aggregate_cursor(
    cursor_class: type[CursorClass],
    collection: Collection[Value],
    target: str | int,
    pipeline: Sequence[Document],
    session: ClientSession | None,
    fields: DocumentDict,
    decoding: CodecOptions[Value] | None = None,
    timeouts: tuple[float | None, str | None] = (None, None),
) -> CursorClass:
    """Run a pipeline over a collection or database, and return a cursor of the class `cursor_class`.

    :param target: the name of the collection, or 1 for the database of `collection`.
    :param decoding: the codec options of the result; None uses the collection's options.
    :param timeouts: the pair ``(timeout_ms, timeout_mode)``.
    """
    if not isinstance(pipeline, (list, tuple)):
        raise TypeError(f"pipeline must be a list, not an instance of {type(pipeline).__name__}")
    for name in _FORBIDDEN_FIELDS_OF_AGGREGATE:
        if name in fields:
            raise ConfigurationError(f"{name} is not an option of aggregate(); use Database.command() instead")
    fields = dict(fields)
    batch_size = fields.pop("batchSize", None)
    max_await_time_ms = fields.pop("maxAwaitTimeMS", None)
    _convert_options(fields)
    context = collection._context
    if writes_result(pipeline):
        context = context.replace(selector=_choose_write_selector(collection))
    operation = Aggregate(
        context, target, pipeline, fields, collection._acknowledged, batch_size, decoding, raw=cursor_class._raw
    )
    is_stream = bool(pipeline) and "$changeStream" in pipeline[0]
    options = (batch_size or 0, max_await_time_ms, fields.get("comment"), *timeouts, is_stream, is_stream)
    cursor = cursor_class._run(collection, operation, session, *options)
    cursor._awaits = is_stream
    return cursor


def _convert_options(fields: DocumentDict) -> None:
    """Convert the options `collation` and `hint` to command fields. Remove an option whose value is None."""
    for name, convert in (("collation", validate_collation_or_none), ("hint", checked_hint)):
        if fields.get(name) is None:
            fields.pop(name, None)
        else:
            fields[name] = convert(fields[name])


def _choose_write_selector(collection: Collection[Value]) -> Selector:
    """Return the read preference of the collection, or `WRITABLE` if a server is older than MongoDB 5.0."""
    topology = internals_of(collection.database.client)._topology
    if collection.read_preference.mode == WRITABLE.mode:
        return collection.read_preference
    if topology.description.common_wire_version is None:  # the driver has not discovered a server yet
        topology.select_server(collection.read_preference, Aggregate.name, collection._executor.deadline())
    if topology.settings.load_balanced:
        return collection.read_preference
    wire_version = topology.description.common_wire_version
    is_supported = wire_version is not None and wire_version >= wire_versions.AGGREGATE_WRITES_ON_SECONDARY
    return collection.read_preference if is_supported else WRITABLE


def _build_write_fields(bypass: bool | None, let: Document | None, comment: Value) -> Document:
    """Return the command fields of one write. If all arguments are None, return a shared mapping."""
    if bypass is None and let is None and comment is None:
        return _ORDERED_FIELDS
    return without_none(_ORDERED_FIELDS, bypassDocumentValidation=bypass, let=checked_let(let), comment=comment)


def _build_return_document_fields(return_document: bool, upsert: bool) -> DocumentDict:
    if not isinstance(return_document, bool):
        raise TypeError(
            f"return_document must be ReturnDocument.BEFORE or ReturnDocument.AFTER, not {short(return_document)}"
        )
    return {"new": return_document, "upsert": checked_flag("upsert", upsert)}


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a collection must be a string, not {short(name)}")
    if not name or ".." in name:
        raise InvalidName(f"the name of a collection must not be empty or have an empty part, was {short(name)}")
    if "$" in name and not (name.startswith("oplog.$main") or name.startswith("$cmd")):
        raise InvalidName(f"the name of a collection must not contain '$', was {short(name)}")
    if name[0] == "." or name[-1] == ".":
        raise InvalidName(f"the name of a collection must not begin or end with '.', was {short(name)}")
    if "\x00" in name:
        raise InvalidName(f"the name of a collection must not contain the null character, was {short(name)}")
