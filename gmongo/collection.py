"""A collection of a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Generic, NoReturn, TypeAlias, TypeVar, overload

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions
from bson.raw_bson import RawBSONDocument
from bson.son import SON

from gmongo._background import with_checkpoints
from gmongo._cursor_type import CursorType
from gmongo._documents import Document, DocumentDict, Value, plain, without_none
from gmongo._inherited_options import InheritedOptions, executor_of, options_of, parts_of
from gmongo._no_such_method import no_such_method
from gmongo._server_facts import codes, wire_versions
from gmongo._short_text import short
from gmongo.change_stream import CollectionChangeStream, _Watched
from gmongo.client_session import ClientSession
from gmongo.collation import Collation, validate_collation_or_none
from gmongo.command_cursor import CommandCursor, RawBatchCommandCursor
from gmongo.cursor import Bound, Cursor, RawBatchCursor
from gmongo.engines.bulk import Bulk, inserts, runs_of, statement_of
from gmongo.errors import ConfigurationError, InvalidName, InvalidOperation, OperationFailure
from gmongo.execution.classify import is_namespace_missing
from gmongo.execution.context import OperationContext
from gmongo.execution.deadline import checked_timeout
from gmongo.execution.executor import Executor
from gmongo.execution.operation import required
from gmongo.execution.sessions import checked_session, in_transaction
from gmongo.operations import indexes
from gmongo.operations.aggregate import Aggregate, writes
from gmongo.operations.distinct import Count, Distinct
from gmongo.operations.find import FindOne
from gmongo.operations.find_and_modify import FindAndModify
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
_ORDERED = {"ordered": True}
_EVERYTHING: Document = {}
# What find_one is given if it is given a filter only.
_NO_OPTIONS_OF_FIND = (Cursor.__init__.__defaults__ or ())[1:]
_NO_OPTIONS_OF_AGGREGATE = ("aggregate", "explain", "pipeline")
# The order of an index's keys is part of it, and people have relied on these being SON.
_IN_ORDER: CodecOptions[Value] = CodecOptions(document_class=SON)


class Collection(InheritedOptions, _Watched[CollectionChangeStream[DocumentType]], Generic[DocumentType]):
    """A collection, by attribute or item of a database: ``database.orders``, ``database["orders"]``.

    Nothing is sent to make one. A name with a dot is that of another collection: ``database.orders.archive`` is
    ``database["orders.archive"]``.

    A `session` runs one operation at a time. An operation without one takes a session of its own, which the server
    needs in order to recognise a second try. A `comment` is any value that BSON can hold; the server shows it in its
    log, its profiler and ``currentOp`` (MongoDB 4.4; before that, strings only, and not with every command).

    Each operation may raise these, and what its own documentation names:

    - :class:`~gmongo.errors.ServerSelectionTimeoutError`: no suitable server was found within
      ``serverSelectionTimeoutMS`` (30 seconds by default).
    - :class:`~gmongo.errors.WaitQueueTimeoutError`: no connection became free within ``waitQueueTimeoutMS``.
    - :class:`~gmongo.errors.AutoReconnect` and its kinds: the network failed or the primary changed, and so did the
      retry, if the operation is one that may be tried again (``docs/retries.md``).
    - :class:`~gmongo.errors.OperationFailure` and its kinds: the server replied with an error.
    - :class:`~gmongo.errors.InvalidOperation`: the client is closed, belongs to another native thread, or the session
      cannot be used.
    - :class:`TypeError` or :class:`ValueError`: an argument is wrong. Nothing was sent.

    Specification: CRUD API.

    :param database: the database that it is part of; another library's, as for :class:`~gmongo.database.Database`.
    :param name: its name.
    :param create: True creates it now, as :meth:`Database.create_collection
        <gmongo.database.Database.create_collection>` does without looking first; False by default.
    :param codec_options: how documents are encoded and decoded; None takes the database's, here and in the next three.
    :param read_preference: which servers reads go to.
    :param write_concern: which acknowledgement writes wait for.
    :param read_concern: which isolation reads ask for.
    :param session: the session in which it is created.
    :param timeout_ms: the limit of each of its operations as a whole, in milliseconds; 0 is without limit, None takes
        the database's. :func:`gmongo.timeout` overrides it.
    :param kwargs: fields of the ``create`` command, such as ``capped=True, size=1000000``. Any of them creates it now.
    :raises TypeError: the database is none, the name is not a string, or an option has the wrong type.
    :raises InvalidName: no collection can have that name.
    :raises OperationFailure: the server could not create it.
    """

    _changes: type[CollectionChangeStream[DocumentType]] = CollectionChangeStream

    def _watched(self) -> tuple[Collection[Value], str | int]:
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
        self._executor: Executor = executor_of(database).limited(checked_timeout("timeout_ms", timeout_ms))
        self._database_name = database.name
        self._context = OperationContext(
            database.name,
            name,
            self._codec_options,
            self._read_preference,
            # Commands carry these only when they say something.
            self._read_concern.document or None,
            self._write_concern.document or None,
        )
        self._acknowledged = self._write_concern.acknowledged
        if create or kwargs:
            self._create(kwargs, session)

    def _create(self, fields: Document, session: ClientSession | None) -> None:
        command: DocumentDict = {"create": self._name}
        command.update((name, value) for name, value in fields.items() if value is not None)
        if "collation" in command:
            command["collation"] = validate_collation_or_none(command["collation"])
        self._administer(command, session)

    def _administer(self, command: DocumentDict, session: ClientSession | None, comment: Value = None) -> Value:
        if comment is not None:
            command["comment"] = comment
        return self._executor.run(WriteCommand(self._context, command), session)

    @property
    def database(self) -> Database[DocumentType]:
        """The database that it is part of."""
        return self._database

    @property
    def name(self) -> str:
        """Its name, such as ``"orders"``."""
        return self._name

    @property
    def full_name(self) -> str:
        """Its name with that of the database, such as ``"shop.orders"``."""
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
        """The same collection with other options::

            orders.with_options(read_preference=ReadPreference.SECONDARY).count_documents({})

        :param codec_options: how documents are encoded and decoded; None keeps this collection's, here and below.
        :param read_preference: which servers reads go to.
        :param write_concern: which acknowledgement writes wait for.
        :param read_concern: which isolation reads ask for.
        :param timeout_ms: the limit of each operation, in milliseconds; 0 is without limit, None keeps this
            collection's. :func:`gmongo.timeout` overrides it.
        :returns: another object; this one stays as it is.
        :raises TypeError: an option has the wrong type.
        """
        chosen = options_of(self, "Collection", (codec_options, read_preference, write_concern, read_concern))
        timeout_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        return Collection(self._database, self._name, False, *chosen, timeout_ms=timeout_ms)

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

    # Inserting

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

        Specification: CRUD API, "Write".

        :param document: a mapping or a :class:`~bson.raw_bson.RawBSONDocument`. One without ``_id`` is given an
            :class:`~bson.objectid.ObjectId`, which is added to the mapping itself; a raw document is sent as it is.
        :param bypass_document_validation: True writes what the collection's validator would refuse; None leaves the
            field out, and the server validates.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: the ``_id``, in :attr:`InsertOneResult.inserted_id <gmongo.results.InsertOneResult.inserted_id>`.
        :raises TypeError: `document` is not a mapping.
        :raises DuplicateKeyError: another document has the same value in a unique index, perhaps the same ``_id``.
        :raises WriteError: the server refused the document, for example because it is not valid.
        :raises WriteConcernError: the document was inserted, but its acknowledgement failed.
        :raises DocumentTooLarge: the document is larger than the server takes (16 MB).
        """
        check_is_mapping("document", document)
        inserted_id = ensure_id(document)
        fields = _fields_of_write(bypass_document_validation, None, comment)
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
        """Insert documents, in as few messages as they fit in. Other greenlets run while they are encoded.

            >>> notes.insert_many([{"_id": 2}, {"_id": 3}]).inserted_ids
            [2, 3]

        Specification: CRUD API, "Write".

        :param documents: a non-empty list, or any other iterable, of what :meth:`insert_one` takes.
        :param ordered: True (the default) inserts one after the other and stops at the first error; False tries them
            all, in any order.
        :param bypass_document_validation: True writes what the collection's validator would refuse; None leaves the
            field out, and the server validates.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: the ``_id`` of each, in their order.
        :raises TypeError: `documents` is no iterable of mappings, or an empty list.
        :raises InvalidOperation: an iterable has ended without a document.
        :raises BulkWriteError: some could not be inserted; its `details` say which, by index, and how many were.
        :raises DocumentTooLarge: the only document is larger than the server takes. Among others it is one of the
            errors of a :class:`BulkWriteError`.
        """
        if isinstance(documents, Mapping) or not isinstance(documents, Iterable) or not documents:
            raise TypeError("documents must be a non-empty list")
        elements, ids = [], []
        for document in with_checkpoints(documents):
            check_is_mapping("document", document)
            inserted_id = ensure_id(document)
            if inserted_id is not None or not isinstance(document, RawBSONDocument):  # a raw one is not decoded for it
                ids.append(inserted_id)
            elements.append(document)
        if not elements:
            raise InvalidOperation("No operations to execute")
        fields = without_none({}, bypassDocumentValidation=bypass_document_validation, comment=comment)
        acknowledged = self._acknowledged or self._in_transaction(session)
        self._bulk("insert", ordered, fields, acknowledged).execute(self._executor, inserts(elements), session)
        return InsertManyResult(ids, acknowledged)

    def _in_transaction(self, session: ClientSession | None) -> bool:
        """Whether a write is in a transaction, where all are acknowledged: the one write concern comes with the end."""
        return in_transaction(self._executor, session)

    # Updating

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
        """Change the first document that matches.

            >>> result = notes.update_one({"_id": 5}, {"$set": {"title": "changed"}})
            >>> result.matched_count, result.modified_count
            (1, 1)

        Specification: CRUD API, "Write"; what begins with an operator: "Update vs. Replace Validation".

        :param filter: a query; ``{}`` matches every document.
        :param update: operators such as ``{"$set": {"title": "new"}}``, or a pipeline as a list of stages.
        :param upsert: True inserts a document if none matches, made of the filter's equalities and the update; False by
            default.
        :param bypass_document_validation: True writes what the collection's validator would refuse; None leaves the
            field out, and the server validates.
        :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document.
            None takes the collection's own.
        :param array_filters: a list of conditions; ``$[name]`` in the update stands for the elements of an array that
            match the one on ``name``. None is without.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes. None lets the
            server choose.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param sort: which document is the first, if several match: a list of fields and directions, or a mapping
            (MongoDB 8.0). None takes whichever the server finds first.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: how many documents matched and were changed, and the ``_id`` of one that was inserted.
        :raises TypeError: an argument has the wrong type.
        :raises ValueError: `update` is empty, or does not begin with an operator.
        :raises DuplicateKeyError: the change would give two documents the same value in a unique index.
        :raises WriteError: the server refused the change, for example because the document would not be valid.
        :raises WriteConcernError: the change was made, but its acknowledgement failed.
        """
        update = checked_update(update)
        options = (upsert, collation, hint, array_filters, sort)
        extra = (bypass_document_validation, let, comment)
        return self._update(filter, update, options, extra, session)

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
        """Change all documents that match. This is not tried again after a lost connection, as the server could not
        distinguish it from a repetition.

        Specification: CRUD API, "Write"; what begins with an operator: "Update vs. Replace Validation".

        :param filter: a query; ``{}`` matches every document.
        :param update: operators such as ``{"$inc": {"views": 1}}``, or a pipeline as a list of stages.
        :param upsert: True inserts a document if none matches, made of the filter's equalities and the update; False by
            default.
        :param array_filters: a list of conditions; ``$[name]`` in the update stands for the elements of an array that
            match the one on ``name``. None is without.
        :param bypass_document_validation: True writes what the collection's validator would refuse; None leaves the
            field out, and the server validates.
        :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document.
            None takes the collection's own.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes. None lets the
            server choose.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: how many documents matched and were changed, and the ``_id`` of one that was inserted.
        :raises TypeError: an argument has the wrong type.
        :raises ValueError: `update` is empty, or does not begin with an operator.
        :raises DuplicateKeyError: the change would give two documents the same value in a unique index. Documents
            changed before stay changed.
        :raises WriteError: the server refused the change of a document. Documents changed before stay changed.
        :raises WriteConcernError: the changes were made, but their acknowledgement failed.
        """
        update = checked_update(update)
        options = (upsert, collation, hint, array_filters, None)
        extra = (bypass_document_validation, let, comment)
        return self._update(filter, update, options, extra, session, multi=True)

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
        """Replace the first document that matches. Its ``_id`` stays.

        Specification: CRUD API, "Write"; what is no replacement: "Update vs. Replace Validation".

        :param filter: a query; ``{}`` matches every document.
        :param replacement: the new document, without update operators. If it has an ``_id``, it must be the same.
        :param upsert: True inserts the replacement if no document matches; False by default.
        :param bypass_document_validation: True writes what the collection's validator would refuse; None leaves the
            field out, and the server validates.
        :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document.
            None takes the collection's own.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes. None lets the
            server choose.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param sort: which document is the first, if several match: a list of fields and directions, or a mapping
            (MongoDB 8.0). None takes whichever the server finds first.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: how many documents matched and were changed, and the ``_id`` of one that was inserted.
        :raises TypeError: an argument has the wrong type.
        :raises ValueError: `replacement` begins with an update operator.
        :raises DuplicateKeyError: another document has the same value in a unique index.
        :raises WriteError: the server refused the replacement, for example because it is not valid.
        :raises WriteConcernError: the document was replaced, but the acknowledgement failed.
        """
        replacement = checked_replacement(replacement)
        options = (upsert, collation, hint, None, sort)
        extra = (bypass_document_validation, let, comment)
        return self._update(filter, replacement, options, extra, session)

    def _update(
        self,
        filter: _Filter,
        update: Value,
        options: tuple[Value, ...],
        extra: tuple[Value, ...],
        session: ClientSession | None,
        multi: bool = False,
    ) -> UpdateResult:
        upsert, collation, hint, array_filters, sort = options
        bypass, let, comment = extra
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
        fields = _fields_of_write(bypass, let, comment)
        acknowledged = self._acknowledged or self._in_transaction(session)
        operation = SingleWrite(self._context, "update", (statement,), fields, acknowledged, acknowledged and not multi)
        reply: DocumentDict = self._executor.run(operation, session)
        if reply:  # a listener may have been given it, and must not see it change
            reply = {**reply, "updatedExisting": bool(reply.get("n")) and "upserted" not in reply}
        if reply.get("upserted"):
            reply["upserted"] = reply["upserted"][0]["_id"]
        return UpdateResult(reply or None, acknowledged)

    # Deleting

    def delete_one(
        self,
        filter: _Filter,
        collation: _CollationIn = None,
        hint: KeyOrList | None = None,
        session: ClientSession | None = None,
        let: Document | None = None,
        comment: Value = None,
    ) -> DeleteResult:
        """Delete the first document that matches.

            >>> notes.delete_one({"_id": 6}).deleted_count
            1

        Specification: CRUD API, "Write".

        :param filter: a query; ``{}`` matches every document.
        :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document.
            None takes the collection's own.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes (MongoDB 4.4).
            None lets the server choose.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: whether one was deleted, as a count.
        :raises TypeError: an argument has the wrong type.
        :raises WriteError: the server refused the deletion.
        :raises WriteConcernError: the document was deleted, but the acknowledgement failed.
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
        """Delete all documents that match. This is not tried again after a lost connection, as the server could not
        distinguish it from a repetition. To delete all, :meth:`drop` is faster; it takes the indexes, too.

        Specification: CRUD API, "Write".

        :param filter: a query; ``{}`` matches every document.
        :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document.
            None takes the collection's own.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes (MongoDB 4.4).
            None lets the server choose.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: how many were deleted.
        :raises TypeError: an argument has the wrong type.
        :raises WriteError: the server refused the deletion.
        :raises WriteConcernError: the documents were deleted, but the acknowledgement failed.
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
        fields = _fields_of_write(None, let, comment)
        acknowledged = self._acknowledged or self._in_transaction(session)
        retryable = acknowledged and limit == 1
        operation = SingleWrite(self._context, "delete", (statement,), fields, acknowledged, retryable)
        return DeleteResult(self._executor.run(operation, session), acknowledged)

    # Writing in bulk

    def bulk_write(
        self,
        requests: Sequence[WriteModel[DocumentType]],
        ordered: bool = True,
        bypass_document_validation: bool | None = None,
        session: ClientSession | None = None,
        comment: Value = None,
        let: Document | None = None,
    ) -> BulkWriteResult:
        """Run many writes, in as few messages as they fit in. Other greenlets run while they are encoded.

            >>> from gmongo import DeleteOne, InsertOne, UpdateOne
            >>> writes = [InsertOne({"_id": 4}), UpdateOne({"_id": 4}, {"$set": {"a": 1}}), DeleteOne({"_id": 4})]
            >>> result = notes.bulk_write(writes)
            >>> result.inserted_count, result.modified_count, result.deleted_count
            (1, 1, 1)

        :meth:`MongoClient.bulk_write <gmongo.mongo_client.MongoClient.bulk_write>` writes to several collections at a
            time.

        Specification: CRUD API, "Bulk Write Models".

        :param requests: a non-empty list of :class:`~gmongo.operations.InsertOne`,
            :class:`~gmongo.operations.UpdateOne`, :class:`~gmongo.operations.UpdateMany`,
            :class:`~gmongo.operations.ReplaceOne`, :class:`~gmongo.operations.DeleteOne` and
            :class:`~gmongo.operations.DeleteMany`.
        :param ordered: True (the default) runs one after the other and stops at the first error; False runs them all,
            in any order.
        :param bypass_document_validation: True writes what the collection's validator would refuse; None leaves the
            field out, and the server validates.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :returns: the counts of all, and the ``_id`` of each document that was inserted because none matched.
        :raises TypeError: `requests` is no list, or an element is no model.
        :raises InvalidOperation: `requests` is empty.
        :raises BulkWriteError: some writes failed; its `details` say which, by index, and what was done.
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
        bulk = self._bulk("bulkWrite", ordered, fields, acknowledged)
        return BulkWriteResult(bulk.execute(self._executor, runs_of(statements, ordered), session), acknowledged)

    def _bulk(self, name: str, ordered: bool, fields: Document, acknowledged: bool) -> Bulk:
        return Bulk(self._context, name=name, ordered=ordered, fields=fields, acknowledged=acknowledged)

    # Finding

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
        """A cursor over the documents that match. The query is sent when the first document is asked for.

            >>> for note in notes.find({"tags": "a"}, sort=[("title", 1)], limit=10):
            ...     print(note["title"])
            first
            second

        The methods of the cursor set the same options: ``notes.find({"tags": "a"}).sort("title").limit(10)``. Close a
        cursor that is not read to its end, or use it in a ``with``: it is then ended on the server at once, and not by
        its time-out.

        Specification: CRUD API, "Read"; Find, getMore and killCursors commands.

        :param filter: a query; None or ``{}`` matches every document.
        :param projection: which fields to return: a list of names (``_id`` is always added), or a document such as
            ``{"title": 1, "_id": 0}``. None returns all.
        :param skip: how many documents to leave out at the beginning; 0 by default.
        :param limit: how many documents to return at most; 0 (the default) is without limit. A negative number is the
            same without its sign, in a single reply.
        :param no_cursor_timeout: True keeps the server from closing the cursor when it is unused for ten minutes; its
            session, which ends after thirty, ends it all the same.
        :param cursor_type: a value of :class:`~gmongo.cursor.CursorType`: what happens at the end of a capped
            collection.
        :param sort: the order: a list of ``(field, direction)``, or a mapping of fields to directions. None is the
            order in which the server finds them.
        :param allow_partial_results: True takes what there is when some shards cannot be reached, rather than fail.
        :param oplog_replay: of no effect since MongoDB 4.4.
        :param batch_size: how many documents a reply brings; 0 (the default) leaves it to the server, which begins with
            101.
        :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document.
            None takes the collection's own.
        :param hint: the index to use: its name, or its keys in any form that ``create_index`` takes. None lets the
            server choose.
        :param max_scan: sent as it is given; servers know it no longer.
        :param max_time_ms: how long the server may work on the query, in milliseconds; None is without limit. A limit
            of the operation (``timeoutMS``, :func:`gmongo.timeout`) replaces it, even if it is shorter.
            :func:`gmongo.timeout` limits the whole.
        :param max: the bound above, which is not part of the result, of the index that `hint` names: a mapping, or
            ``(field, value)`` pairs in the order of its keys.
        :param min: the bound below, which is part of it.
        :param return_key: True returns the keys of the index rather than the documents.
        :param show_record_id: True adds the server's internal number to each document, as ``$recordId``.
        :param snapshot: sent as it is given; servers know it no longer.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param allow_disk_use: whether the server may sort on disk what does not fit into its memory (MongoDB 4.4). None
            leaves it to the server.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param timeout_ms: the limit of time, in milliseconds, of what `timeout_mode` says; 0 is without limit, None
            (the default) takes that of this object. :func:`gmongo.timeout` around it can only shorten it.
        :param timeout_mode: ``"cursor_lifetime"`` (the default): the last document must have come in time; or
            ``"iteration"``: the command has its limit, and each iteration again.
        :raises TypeError: an argument has the wrong type.
        :raises ValueError: a number is negative that must not be, or `cursor_type` is unknown.
        :raises InvalidOperation: an exhaust cursor is given a `limit`; or, with the first document, `min` or `max` are
            given without `hint`.
        """
        return Cursor(
            self,
            filter,
            projection,
            skip,
            limit,
            no_cursor_timeout,
            cursor_type,
            sort,
            allow_partial_results,
            oplog_replay,
            batch_size,
            collation,
            hint,
            max_scan,
            max_time_ms,
            max,
            min,
            return_key,
            show_record_id,
            snapshot,
            comment,
            session,
            allow_disk_use,
            let,
            timeout_ms=timeout_ms,
            timeout_mode=timeout_mode,
        )

    def find_raw_batches(
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
    ) -> RawBatchCursor:
        """A cursor over the documents that match, as batches of encoded documents, for programs that decode them
        in another way (to a table, for instance).

            >>> import bson
            >>> sum(len(bson.decode_all(batch)) for batch in notes.find_raw_batches({"tags": "a"}))
            2

        Specification: CRUD API, "Read".

        :param filter: a query; None or ``{}`` matches every document.
        :param projection: which fields to return: a list of names (``_id`` is always added), or a document such as
            ``{"title": 1, "_id": 0}``. None returns all.
        :param skip: how many documents to leave out at the beginning; 0 by default.
        :param limit: how many documents to return at most; 0 (the default) is without limit.
        :param no_cursor_timeout: True keeps the server from closing the cursor when it is unused for ten minutes; its
            session, which ends after thirty, ends it all the same.
        :param cursor_type: a value of :class:`~gmongo.cursor.CursorType`: what happens at the end of a capped
            collection.
        :param sort: the order: a list of ``(field, direction)``, or a mapping of fields to directions. None is the
            order in which the server finds them.
        :param allow_partial_results: True takes what there is when some shards cannot be reached, rather than fail.
        :param oplog_replay: of no effect since MongoDB 4.4.
        :param batch_size: how many documents a reply brings; 0 (the default) leaves it to the server, which begins with
            101.
        :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document.
            None takes the collection's own.
        :param hint: the index to use: its name, or its keys in any form that ``create_index`` takes. None lets the
            server choose.
        :param max_scan: sent as it is given; servers know it no longer.
        :param max_time_ms: how long the server may work on the query, in milliseconds; None is without limit. A limit
            of the operation (``timeoutMS``, :func:`gmongo.timeout`) replaces it, even if it is shorter.
            :func:`gmongo.timeout` limits the whole.
        :param max: the bound above, which is not part of the result, of the index that `hint` names: a mapping, or
            ``(field, value)`` pairs in the order of its keys.
        :param min: the bound below, which is part of it.
        :param return_key: True returns the keys of the index rather than the documents.
        :param show_record_id: True adds the server's internal number to each document, as ``$recordId``.
        :param snapshot: sent as it is given; servers know it no longer.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param allow_disk_use: whether the server may sort on disk what does not fit into its memory (MongoDB 4.4). None
            leaves it to the server.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param timeout_ms: the limit of time, in milliseconds, of what `timeout_mode` says; 0 is without limit, None
            (the default) takes that of this object. :func:`gmongo.timeout` around it can only shorten it.
        :param timeout_mode: ``"cursor_lifetime"`` (the default): the last document must have come in time; or
            ``"iteration"``: the command has its limit, and each iteration again.
        :returns: a cursor whose items are ``bytes``: the documents of one reply, one after the other.
        :raises TypeError: an argument has the wrong type.
        :raises ValueError: a number is negative that must not be, or `cursor_type` is unknown.
        :raises InvalidOperation: an exhaust cursor is given a `limit`; or, with the first batch, `min` or `max` are
            given without `hint`.
        """
        return RawBatchCursor(
            self,
            filter,
            projection,
            skip,
            limit,
            no_cursor_timeout,
            cursor_type,
            sort,
            allow_partial_results,
            oplog_replay,
            batch_size,
            collation,
            hint,
            max_scan,
            max_time_ms,
            max,
            min,
            return_key,
            show_record_id,
            snapshot,
            comment,
            session,
            allow_disk_use,
            let,
            timeout_ms=timeout_ms,
            timeout_mode=timeout_mode,
        )

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
    ) -> DocumentType | None:
        """The first document that matches, or None.

            >>> notes.find_one({"tags": "b"}, ["title"], sort=[("title", -1)])
            {'_id': 6, 'title': 'second'}
            >>> notes.find_one(6)["title"]
            'second'

        Specification: CRUD API, "Read".

        :param filter: a query, or the ``_id`` of the document if it is no mapping. None or ``{}`` matches every
            document.
        :param projection: which fields to return: a list of names (``_id`` is always added), or a document such as
            ``{"title": 1, "_id": 0}``. None returns all.
        :param skip: how many documents to leave out at the beginning; 0 by default.
        :param limit: of no effect: it is 1.
        :param no_cursor_timeout: of no effect, as no cursor stays open.
        :param cursor_type: leave it at the default, as no cursor stays open.
        :param sort: which document is the first: a list of ``(field, direction)``, or a mapping of fields to
            directions. None takes whichever the server finds first.
        :param allow_partial_results: True takes what there is when some shards cannot be reached, rather than fail.
        :param oplog_replay: of no effect since MongoDB 4.4.
        :param batch_size: of no effect, as there is one document at the most.
        :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document.
            None takes the collection's own.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes. None lets the
            server choose.
        :param max_scan: sent as it is given; servers know it no longer.
        :param max_time_ms: how long the server may work on the query, in milliseconds; None is without limit. A limit
            of the operation (``timeoutMS``, :func:`gmongo.timeout`) replaces it, even if it is shorter.
        :param max: the bound above, which is not part of the result, of the index that `hint` names: a mapping, or
            ``(field, value)`` pairs in the order of its keys.
        :param min: the bound below, which is part of it.
        :param return_key: True returns the keys of the index rather than the document.
        :param show_record_id: True adds the server's internal number to the document, as ``$recordId``.
        :param snapshot: sent as it is given; servers know it no longer.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param allow_disk_use: whether the server may sort on disk what does not fit into its memory (MongoDB 4.4). None
            leaves it to the server.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :raises TypeError: an argument has the wrong type.
        :raises ValueError: a number is negative that must not be, or `cursor_type` is unknown.
        :raises InvalidOperation: `min` or `max` are given without `hint`.
        """
        if filter is not None and not isinstance(filter, dict):
            filter = plain(filter) if isinstance(filter, Mapping) else {"_id": filter}
        options = (
            projection, skip, limit, no_cursor_timeout, cursor_type, sort, allow_partial_results, oplog_replay,
            batch_size, collation, hint, max_scan, max_time_ms, max, min, return_key, show_record_id, snapshot,
            comment, session, allow_disk_use, let,
        )  # fmt: skip
        fields: DocumentDict = {}
        filter = filter or _EVERYTHING
        if options != _NO_OPTIONS_OF_FIND or "$query" in filter:
            cursor: Cursor[Value] = Cursor(self, filter, *options)
            filter, fields = cursor._query()
            if "explain" in fields:
                return next(cursor.limit(-1))
        return self._executor.run(FindOne(self._context, filter, fields), session)

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
        """Delete the first document that matches, and return it.

            >>> notes.find_one_and_delete({"tags": "a"}, ["title"], sort=[("_id", -1)])
            {'_id': 6, 'title': 'second'}

        Specification: CRUD API, "Find And Modify".

        :param filter: a query; ``{}`` matches every document.
        :param projection: which fields to return: a list of names (``_id`` is always added), or a document. None
            returns all.
        :param sort: which document is the first, if several match: a list of fields and directions, or a mapping. None
            takes whichever the server finds first.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes (MongoDB 4.4).
            None lets the server choose.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the ``findAndModify`` command, such as ``maxTimeMS`` (in milliseconds) and
            ``collation``.
        :returns: the document as it was, or None if none matches.
        :raises TypeError: an argument has the wrong type.
        :raises OperationFailure: the server refused the command.
        :raises WriteConcernError: the document was deleted, but the acknowledgement failed.
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
        """Replace the first document that matches, and return it.

        Specification: CRUD API, "Find And Modify".

        :param filter: a query; ``{}`` matches every document.
        :param replacement: the new document, without update operators. If it has an ``_id``, it must be the same.
        :param projection: which fields to return: a list of names (``_id`` is always added), or a document. None
            returns all.
        :param sort: which document is the first, if several match: a list of fields and directions, or a mapping. None
            takes whichever the server finds first.
        :param upsert: True inserts the replacement if no document matches; False by default.
        :param return_document: :attr:`ReturnDocument.BEFORE` (the default) returns the document as it was,
            :attr:`ReturnDocument.AFTER` as it is.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes (MongoDB 4.4).
            None lets the server choose.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the ``findAndModify`` command, such as ``maxTimeMS`` (in milliseconds) and
            ``collation``.
        :returns: the document, or None if none matches (or if it was inserted, with :attr:`ReturnDocument.BEFORE`).
        :raises TypeError: an argument has the wrong type.
        :raises ValueError: `replacement` begins with an update operator.
        :raises DuplicateKeyError: another document has the same value in a unique index.
        :raises OperationFailure: the server refused the command.
        :raises WriteConcernError: the document was replaced, but the acknowledgement failed.
        """
        replacement = checked_replacement(replacement)
        fields = {"update": replacement, **_returning(return_document, upsert), **kwargs}
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
        """Change the first document that matches, and return it.

            >>> from gmongo import ReturnDocument
            >>> counters.find_one_and_update(
            ...     {"_id": "orders"}, {"$inc": {"n": 1}}, upsert=True, return_document=ReturnDocument.AFTER
            ... )
            {'_id': 'orders', 'n': 1}

        Specification: CRUD API, "Find And Modify".

        :param filter: a query; ``{}`` matches every document.
        :param update: operators such as ``{"$inc": {"n": 1}}``, or a pipeline as a list of stages.
        :param projection: which fields to return: a list of names (``_id`` is always added), or a document. None
            returns all.
        :param sort: which document is the first, if several match: a list of fields and directions, or a mapping. None
            takes whichever the server finds first.
        :param upsert: True inserts a document if none matches; False by default.
        :param return_document: :attr:`ReturnDocument.BEFORE` (the default) returns the document as it was,
            :attr:`ReturnDocument.AFTER` as it is.
        :param array_filters: a list of conditions; ``$[name]`` in the update stands for the elements of an array that
            match the one on ``name``. None is without.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes (MongoDB 4.4).
            None lets the server choose.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the ``findAndModify`` command, such as ``maxTimeMS`` (in milliseconds) and
            ``collation``.
        :returns: the document, or None if none matches (or if it was inserted, with :attr:`ReturnDocument.BEFORE`).
        :raises TypeError: an argument has the wrong type.
        :raises ValueError: `update` is empty, or does not begin with an operator.
        :raises DuplicateKeyError: the change would give two documents the same value in a unique index.
        :raises OperationFailure: the server refused the command.
        :raises WriteConcernError: the document was changed, but the acknowledgement failed.
        """
        update = checked_update(update)
        fields = {"update": update, **_returning(return_document, upsert), **kwargs}
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
        if "collation" in fields:
            fields["collation"] = validate_collation_or_none(fields["collation"])
        command = without_none(
            {"query": checked_mapping("filter", filter), **fields},
            fields=None if projection is None else fields_document(projection),
            sort=None if sort is None else sort_document(sort),
            hint=None if hint is None else checked_hint(hint),
            let=checked_let(let),
            comment=comment,
        )
        acknowledged = self._acknowledged or self._in_transaction(session)
        return self._executor.run(FindAndModify(self._context, command, acknowledged), session)

    # Counting and collecting

    def count_documents(
        self, filter: _Filter, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> int:
        """Count the documents that match, exactly. It runs an aggregation, so ``$where``, ``$near`` and ``$nearSphere``
        cannot be in the filter: use ``$expr`` and ``$geoWithin``. :meth:`estimated_document_count` is quicker for the
        whole collection.

            >>> notes.count_documents({"tags": "a"})
            2

        Specification: CRUD API, "Count API Details".

        :param filter: a query; ``{}`` matches every document.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: ``skip`` and ``limit`` (how many to leave out, and to count at most), ``hint`` (an index, by name
            or keys), ``collation``, ``maxTimeMS`` (in milliseconds), and further fields of the ``aggregate`` command.
        :returns: the count; 0 for a collection that does not exist.
        :raises TypeError: `filter` is not a mapping, or another argument has the wrong type.
        :raises OperationFailure: the server refused the filter or an option.
        """
        pipeline: list[DocumentDict] = [{"$match": checked_mapping("filter", filter)}]
        for stage in ("skip", "limit"):
            if stage in kwargs:
                pipeline.append({f"${stage}": kwargs.pop(stage)})
        pipeline.append({"$group": {"_id": 1, "n": {"$sum": 1}}})
        if "hint" in kwargs:
            kwargs["hint"] = checked_hint(kwargs["hint"])
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
        return int(required(result, "n", COUNT, "a count")) if result else 0

    def estimated_document_count(self, comment: Value = None, **kwargs: Value) -> int:
        """Count all documents quickly, from the metadata of the collection. The count may be wrong after a crash of the
        server, and counts orphaned documents of a sharded cluster.

        Specification: CRUD API, "Count API Details".

        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: ``maxTimeMS`` (in milliseconds), and further fields of the ``count`` command.
        :returns: the count; 0 for a collection that does not exist.
        :raises ConfigurationError: a session was given, which this command does not take.
        :raises OperationFailure: the server refused the command.
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
        """The distinct values of a field among the documents that match. Elements of arrays are values of their own.

            >>> sorted(notes.distinct("tags"))
            ['a', 'b']

        Specification: CRUD API, "Read".

        :param key: the field, with dots for fields of fields.
        :param filter: a query; None or ``{}`` matches every document.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param hint: the index to use: its name, or its keys in any form that :meth:`create_index` takes (MongoDB 7.1).
            None lets the server choose.
        :param kwargs: further fields of the ``distinct`` command, such as ``maxTimeMS`` (in milliseconds) and
            ``collation``.
        :returns: a list of the values, in no order.
        :raises TypeError: `key` is no string, or another argument has the wrong type.
        :raises OperationFailure: the server refused, for example because the values are larger than 16 MB.
        """
        if not isinstance(key, str):
            raise TypeError(f"key must be a string, not {short(key)}")
        fields = without_none(
            {"key": key, **kwargs},
            query=None if filter is None else checked_mapping("filter", filter),
            hint=None if hint is None else checked_hint(hint),
            comment=comment,
        )
        if "collation" in fields:
            fields["collation"] = validate_collation_or_none(fields["collation"])
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
        """Run a pipeline, and return a cursor over its result.

            >>> pipeline = [{"$unwind": "$tags"}, {"$sortByCount": "$tags"}]
            >>> notes.aggregate(pipeline).to_list()
            [{'_id': 'a', 'count': 2}, {'_id': 'b', 'count': 1}]

        The command is sent at once, to a server that suits the read preference. A pipeline that ends in ``$out`` or
        ``$merge`` writes: it goes to a secondary only if all servers are of MongoDB 5.0 or newer, it is never tried
        again after a lost connection, and the write concern holds for it.

        Specification: CRUD API, "Read".

        :param pipeline: a list of stages.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param timeout_ms: the limit of time, in milliseconds, of what `timeout_mode` says; 0 is without limit, None
            (the default) takes that of this object. :func:`gmongo.timeout` around it can only shorten it.
        :param timeout_mode: ``"cursor_lifetime"`` (the default): the last document must have come in time; or
            ``"iteration"``: the command has its limit, and each iteration again.
        :param kwargs: ``batchSize`` (how many documents a reply brings), ``maxAwaitTimeMS`` (of a ``$changeStream``, in
            milliseconds), and further fields of the command: ``allowDiskUse``, ``maxTimeMS`` (in milliseconds),
            ``collation``, ``hint``, ``bypassDocumentValidation``.
        :raises TypeError: `pipeline` is no list, or another argument has the wrong type.
        :raises ConfigurationError: `kwargs` has ``aggregate``, ``pipeline`` or ``explain``; :meth:`Database.command
            <gmongo.database.Database.command>` runs what they would say.
        :raises OperationFailure: the server refused the pipeline.
        """
        fields = without_none(kwargs, let=checked_let(let), comment=comment)
        limit = (timeout_ms, timeout_mode)
        return aggregate_cursor(CommandCursor, self, self._name, pipeline, session, fields, limit=limit)

    def aggregate_raw_batches(
        self,
        pipeline: Sequence[Document],
        session: ClientSession | None = None,
        comment: Value = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        **kwargs: Value,
    ) -> RawBatchCommandCursor:
        """Run a pipeline, and return a cursor over its result as batches of encoded documents.

        Specification: CRUD API, "Read".

        :param pipeline: a list of stages.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param timeout_ms: the limit of time, in milliseconds, of what `timeout_mode` says; 0 is without limit, None
            (the default) takes that of this object. :func:`gmongo.timeout` around it can only shorten it.
        :param timeout_mode: ``"cursor_lifetime"`` (the default): the last document must have come in time; or
            ``"iteration"``: the command has its limit, and each iteration again.
        :param kwargs: what :meth:`aggregate` takes, ``let`` included.
        :returns: a cursor whose items are ``bytes``: the documents of one reply, one after the other.
        :raises TypeError: `pipeline` is no list, or another argument has the wrong type.
        :raises ConfigurationError: `kwargs` has ``aggregate``, ``pipeline`` or ``explain``.
        :raises OperationFailure: the server refused the pipeline.
        """
        fields = without_none(kwargs, comment=comment)
        limit = (timeout_ms, timeout_mode)
        cursor = aggregate_cursor(RawBatchCommandCursor, self, self._name, pipeline, session, fields, limit=limit)
        assert isinstance(cursor, RawBatchCommandCursor)
        return cursor

    # Indexes

    def create_index(
        self, keys: KeyOrList, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> str:
        """Create an index, if it is not there yet.

            >>> notes.create_index([("title", 1), ("tags", -1)], unique=True)
            'title_1_tags_-1'

        Specification: Index Management, "Standard API".

        :param keys: a field name, a list of names and ``(name, direction)`` pairs, or a mapping. A direction is
            :data:`gmongo.ASCENDING`, :data:`gmongo.DESCENDING`, or a kind of index: :data:`gmongo.TEXT`,
            :data:`gmongo.GEOSPHERE`, :data:`gmongo.GEO2D`, :data:`gmongo.HASHED`.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: options of the index: ``name`` (made of the keys by default), ``unique``, ``sparse``, ``hidden``
            (MongoDB 4.4), ``expireAfterSeconds``, ``partialFilterExpression``, ``collation``, ``wildcardProjection``
            and others that the server knows; and of the command: ``maxTimeMS`` (in milliseconds), ``commitQuorum``
            (MongoDB 4.4).
        :returns: the name of the index.
        :raises TypeError: the keys or the collation have the wrong type.
        :raises ValueError: there are no keys.
        :raises OperationFailure: the server refused, for example because there is such an index with other options.
        """
        extra = {name: kwargs.pop(name) for name in ("maxTimeMS", "commitQuorum") if name in kwargs}
        return self.create_indexes([IndexModel(keys, **kwargs)], session, comment, **extra)[0]

    def create_indexes(
        self,
        indexes: Sequence[IndexModel],
        session: ClientSession | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> list[str]:
        """Create indexes, with one command; those that are there already stay.

            >>> from gmongo import IndexModel
            >>> notes.create_indexes([IndexModel("created"), IndexModel("place", sparse=True)])
            ['created_1', 'place_1']

        Specification: Index Management, "Standard API".

        :param indexes: a list of :class:`~gmongo.operations.IndexModel`.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the command, such as ``maxTimeMS`` (in milliseconds) and ``commitQuorum``
            (MongoDB 4.4).
        :returns: the names of the indexes.
        :raises TypeError: `indexes` is no list of index models.
        :raises OperationFailure: the server refused; none of them was created.
        """
        if not isinstance(indexes, list) or not all(isinstance(each, IndexModel) for each in indexes):
            raise TypeError(f"indexes must be a list of IndexModel, not {short(indexes)}")
        documents = [index.document for index in indexes]
        self._administer({"createIndexes": self._name, "indexes": documents, **kwargs}, session, comment)
        return [document["name"] for document in documents]

    def drop_index(
        self, index_or_name: KeyOrList, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> None:
        """Drop an index. That the collection does not exist is no error.

        Specification: Index Management, "Standard API".

        :param index_or_name: the name of the index, or its keys as :meth:`create_index` takes them, if it has the name
            that is made of them.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the command, such as ``maxTimeMS`` (in milliseconds).
        :raises TypeError: the keys have the wrong type.
        :raises OperationFailure: there is no such index, or it is that on ``_id``.
        """
        self._drop_indexes(indexes.name_of(index_or_name), session, comment, kwargs)

    def drop_indexes(self, session: ClientSession | None = None, comment: Value = None, **kwargs: Value) -> None:
        """Drop all indexes but the one on ``_id``. That the collection does not exist is no error.

        Specification: Index Management, "Standard API".

        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the command, such as ``maxTimeMS`` (in milliseconds).
        :raises OperationFailure: the server refused.
        """
        self._drop_indexes("*", session, comment, kwargs)

    def _drop_indexes(self, name: str, session: ClientSession | None, comment: Value, fields: Document) -> None:
        command = {"dropIndexes": self._name, "index": name, **fields}
        try:
            self._administer(command, session, comment)
        except OperationFailure as error:
            if not is_namespace_missing(error):
                raise

    def list_indexes(
        self,
        session: ClientSession | None = None,
        comment: Value = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
    ) -> CommandCursor[DocumentDict]:
        """A cursor over the descriptions of the indexes.

            >>> [index["name"] for index in notes.list_indexes()]
            ['_id_']

        Specification: Index Management, "Standard API"; Enumerating Indexes.

        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param timeout_ms: the limit of time, in milliseconds, of what `timeout_mode` says; 0 is without limit, None
            (the default) takes that of this object. :func:`gmongo.timeout` around it can only shorten it.
        :param timeout_mode: ``"cursor_lifetime"`` (the default): the last document must have come in time; or
            ``"iteration"``: the command has its limit, and each iteration again.
        :returns: a cursor over documents with ``name``, ``key`` and the options; empty if the collection does not
            exist.
        """
        command = without_none({"listIndexes": self._name, "cursor": {}}, comment=comment)
        operation = CursorCommand(self._context.replace(selector=WRITABLE), command, _IN_ORDER)
        try:
            return CommandCursor._run(
                self, operation, session, comment=comment, timeout_ms=timeout_ms, timeout_mode=timeout_mode
            )
        except OperationFailure as error:
            if not is_namespace_missing(error):
                raise
            return CommandCursor._over(self, [], session)

    def index_information(self, session: ClientSession | None = None, comment: Value = None) -> dict[str, DocumentDict]:
        """The indexes by name.

            >>> notes.index_information()
            {'_id_': {'v': 2, 'key': [('_id', 1)]}}

        Specification: Index Management, "Standard API"; Enumerating Indexes.

        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: a mapping of names to the options; ``key`` is a list of fields and directions. Empty if the collection
            does not exist.
        """
        return indexes.information(self.list_indexes(session, comment))

    # Search indexes

    def create_search_index(
        self,
        model: Document | SearchIndexModel,
        session: ClientSession | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> str:
        """Create an index for Atlas Search. The server builds it after it has replied; :meth:`list_search_indexes`
        shows when it is ready.

        Specification: Index Management, "Search Indexes".

        :param model: a :class:`~gmongo.operations.SearchIndexModel`, or a mapping of its parameters.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the command, such as ``maxTimeMS`` (in milliseconds).
        :returns: the name of the index.
        :raises TypeError: `model` is neither, or has unknown parameters.
        :raises OperationFailure: the server refused, for example because it is not part of Atlas.
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
        """Create indexes for Atlas Search, with one command.

        Specification: Index Management, "Search Indexes".

        :param models: a list of :class:`~gmongo.operations.SearchIndexModel`.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the command, such as ``maxTimeMS`` (in milliseconds).
        :returns: the names of the indexes.
        :raises TypeError: `models` holds something else.
        :raises OperationFailure: the server refused, for example because it is not part of Atlas.
        """
        models = list(models) if isinstance(models, Iterable) else [models]
        if not all(isinstance(model, SearchIndexModel) for model in models):
            raise TypeError("models must be a list of SearchIndexModel")
        documents = [model.document for model in models]
        command = {"createSearchIndexes": self._name, "indexes": documents, **kwargs}
        return indexes.names_created(self._search_command(command, session, comment), len(models))

    def drop_search_index(
        self, name: str, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> None:
        """Drop an index for Atlas Search. That the collection does not exist is no error.

        Specification: Index Management, "Search Indexes".

        :param name: of the index.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the command, such as ``maxTimeMS`` (in milliseconds).
        :raises OperationFailure: the server refused.
        """
        try:
            self._search_command({"dropSearchIndex": self._name, "name": name, **kwargs}, session, comment)
        except OperationFailure as error:
            if not is_namespace_missing(error):
                raise

    def update_search_index(
        self,
        name: str,
        definition: Document,
        session: ClientSession | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> None:
        """Give an index for Atlas Search another definition.

        Specification: Index Management, "Search Indexes".

        :param name: of the index.
        :param definition: the new definition, as a whole.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the command, such as ``maxTimeMS`` (in milliseconds).
        :raises OperationFailure: the server refused, for example because there is no such index.
        """
        command = {"updateSearchIndex": self._name, "name": name, "definition": definition, **kwargs}
        self._search_command(command, session, comment)

    def list_search_indexes(
        self, name: str | None = None, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> CommandCursor[DocumentDict]:
        """A cursor over the descriptions of the indexes for Atlas Search. Read and write concern of the collection do
        not hold for it.

        Specification: Index Management, "Search Indexes".

        :param name: of one index; None lists them all.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: what :meth:`aggregate` takes, such as ``batchSize``; but no ``pipeline``.
        :raises ConfigurationError: `kwargs` has ``pipeline``.
        :raises OperationFailure: the server refused, for example because it is not part of Atlas.
        """
        if "pipeline" in kwargs:
            raise ConfigurationError("list_search_indexes() makes the pipeline; the option pipeline cannot be given")
        pipeline = [{"$listSearchIndexes": {} if name is None else {"name": name}}]
        # Search indexes know no concerns; and what another library overrides may take other parameters.
        plain: Collection[Value] = Collection.with_options(self, read_concern=ReadConcern())
        return plain.aggregate(pipeline, session, comment=comment, **kwargs)

    def _search_command(self, command: DocumentDict, session: ClientSession | None, comment: Value) -> Value:
        context = self._context.replace(write_concern=None)
        return self._executor.run(WriteCommand(context, without_none(command, comment=comment)), session)

    # The collection as a whole

    def drop(
        self, session: ClientSession | None = None, comment: Value = None, encrypted_fields: Document | None = None
    ) -> None:
        """Drop the collection with its indexes. That it does not exist is no error.

        Specification: Collection Management.

        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param encrypted_fields: which fields are encrypted; taken for the sake of PyMongo's programs, and checked to be
            a mapping.
        :raises OperationFailure: the server refused.
        """
        self._database_with_options.drop_collection(self._name, session, comment, encrypted_fields)

    def rename(
        self, new_name: str, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> DocumentDict:
        """Rename the collection, within its database. This object keeps the old name.

        Specification: Collection Management.

        :param new_name: its name from now on.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: ``dropTarget=True`` replaces a collection that has the new name; further fields of the command.
        :returns: the reply of the server.
        :raises TypeError: `new_name` is no string.
        :raises InvalidName: no collection can have the new name.
        :raises OperationFailure: the server refused, for example because there is a collection of that name.
        """
        _check_name(new_name)
        command = without_none(
            {"renameCollection": self.full_name, "to": f"{self._database_name}.{new_name}", **kwargs}, comment=comment
        )
        return self._executor.run(WriteCommand(self._context.replace(database="admin"), command), session)

    def options(self, session: ClientSession | None = None, comment: Value = None) -> DocumentDict:
        """The options that the collection was created with.

            >>> database.create_collection("log", capped=True, size=4096).options()["capped"]
            True

        Specification: Enumerating Collections.

        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: a mapping such as ``{"capped": True, "size": 4096}``; empty without options, and if the collection
            does not exist.
        """
        found = self._database_with_options.list_collections(session, {"name": self._name}, comment).to_list()
        return dict(required(found[0], "options", DOCUMENT)) if found and "options" in found[0] else {}

    @property
    def _database_with_options(self) -> Database[Value]:
        """The database with options of the collection's; another library's knows PyMongo's options only."""
        database = self._database.with_options(write_concern=self._write_concern)
        return database if self._timeout_ms is None else database.with_options(timeout_ms=self._timeout_ms)

    # Being an object

    def __next__(self) -> NoReturn:
        """Not possible: :meth:`find` makes what can be iterated over.

        :raises TypeError: always.
        """
        raise TypeError("'Collection' object is not iterable")

    next = __next__
    __iter__ = None

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
    def _Collection__database(self) -> Database[Value]:  # libraries that subclass PyMongo's collection use it
        return self._database

    def __repr__(self) -> str:
        return f"Collection({self._database!r}, {self._name!r})"


def aggregate_cursor(
    kind: type[CommandCursor[Value]],
    collection: Collection[Value],
    target: str | int,
    pipeline: Sequence[Document],
    session: ClientSession | None,
    fields: DocumentDict,
    decoding: CodecOptions[Value] | None = None,
    limit: tuple[float | None, str | None] = (None, None),
) -> CommandCursor[Value]:
    """Run a pipeline over a collection, or a database (target 1), and return a cursor of this kind.

    :param decoding: how the result is decoded; None is as the collection's documents.
    :param limit: `timeout_ms` and `timeout_mode`.
    :raises TypeError: `pipeline` is no list.
    :raises ConfigurationError: `fields` has one that is not the caller's to set.
    """
    if not isinstance(pipeline, (list, tuple)):
        raise TypeError(f"pipeline must be a list, not an instance of {type(pipeline).__name__}")
    for name in _NO_OPTIONS_OF_AGGREGATE:
        if name in fields:
            raise ConfigurationError(f"{name} is no option of aggregate(); Database.command() runs it as you write it")
    fields = dict(fields)
    batch_size = fields.pop("batchSize", None)
    max_await_time_ms = fields.pop("maxAwaitTimeMS", None)
    if "collation" in fields:
        fields["collation"] = validate_collation_or_none(fields["collation"])
    if fields.get("hint") is not None:
        fields["hint"] = checked_hint(fields["hint"])
    context = collection._context
    if writes(pipeline):
        context = context.replace(selector=_selector_of_write(collection))
    operation = Aggregate(
        context, target, pipeline, fields, collection._acknowledged, batch_size, decoding, raw=kind._raw
    )
    awaits = bool(pipeline) and "$changeStream" in pipeline[0]
    cursor = kind._run(
        collection,
        operation,
        session,
        batch_size or 0,
        max_await_time_ms,
        fields.get("comment"),
        *limit,
        awaits,
        awaits,
    )
    cursor._awaits = awaits
    return cursor


def _selector_of_write(collection: Collection[Value]) -> Selector:
    """The read preference of a pipeline that writes: it runs on a secondary only if all servers can do that."""
    topology = parts_of(collection.database.client)._topology
    if collection.read_preference.mode == WRITABLE.mode:
        return collection.read_preference
    if topology.description.common_wire_version is None:  # no server is known yet
        topology.select_server(collection.read_preference, Aggregate.name)
    if topology.settings.load_balanced:
        return collection.read_preference
    oldest = topology.description.common_wire_version
    secondaries_write = oldest is not None and oldest >= wire_versions.AGGREGATE_WRITES_ON_SECONDARY
    return collection.read_preference if secondaries_write else WRITABLE


def _fields_of_write(bypass: bool | None, let: Document | None, comment: Value) -> Document:
    """The fields of the command of a single write, which are mostly the same."""
    if bypass is None and let is None and comment is None:
        return _ORDERED
    return without_none(_ORDERED, bypassDocumentValidation=bypass, let=checked_let(let), comment=comment)


def _returning(return_document: bool, upsert: bool) -> DocumentDict:
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
