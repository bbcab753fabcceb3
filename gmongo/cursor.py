"""Cursors of queries."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, Generic, NoReturn, TypeAlias, TypeVar, overload

from bson.code import Code
from bson.errors import BSONError
from bson.son import SON

from gmongo._documents import Document, DocumentDict, Value
from gmongo._parameter_docs import read_only
from gmongo._truncated_repr import short
from gmongo.client_session import ClientSession
from gmongo.collation import Collation, validate_collation_or_none
from gmongo.command_cursor import checked_integer, checked_non_negative, read_documents
from gmongo.engines.iteration import document_runs, limits_each_iteration
from gmongo.engines.read_ahead import DEFAULT_MAX_BYTES, check_not_explicit, checked_read_ahead_limits
from gmongo.engines.server_cursor import ServerCursor
from gmongo.engines.turn import Turn
from gmongo.errors import InvalidOperation, PyMongoError
from gmongo.execution.deadline import check_await_time
from gmongo.execution.sessions import SessionHandle, checked_session, end_if_implicit, in_transaction
from gmongo.operations.find import ExhaustFind, Find, without_modifiers
from gmongo.operations.keys import Direction, KeyOrList, fields_document, index_document, sort_document
from gmongo.operations.models import checked_flag, checked_hint, checked_mapping
from gmongo.operations.run_command import Explain, ExplainedQuery
from gmongo.wire.address import Address
from gmongo.wire.timeout import has_passed

if TYPE_CHECKING:
    from gmongo.collection import Collection

__all__ = ["Cursor", "CursorType", "RawBatchCursor"]

DocumentType = TypeVar("DocumentType")
Bound: TypeAlias = Document | Sequence[tuple[str, Value]] | None
"""A bound in an index: a mapping of fields to values, or (field, value) pairs in the order of the index keys."""

_TAILABLE, _OPLOG_REPLAY, _NO_TIMEOUT, _AWAIT_DATA, _EXHAUST, _PARTIAL = 2, 8, 16, 32, 64, 128
_FLAG_FIELDS = {
    _TAILABLE: "tailable",
    _OPLOG_REPLAY: "oplogReplay",
    _NO_TIMEOUT: "noCursorTimeout",
    _AWAIT_DATA: "awaitData",
    _PARTIAL: "allowPartialResults",
}


class CursorType:
    """Values of the parameter `cursor_type` of :meth:`Collection.find <gmongo.collection.Collection.find>`."""

    NON_TAILABLE = 0
    """The server closes the cursor after the last document."""
    TAILABLE = 2
    """The cursor of a capped collection stays open after the last document. A later iteration returns new documents."""
    TAILABLE_AWAIT = 34
    """Like `TAILABLE`, but the server waits for new documents before it returns an empty batch."""
    EXHAUST = 64
    """Like `NON_TAILABLE`, but the server sends all batches without further ``getMore`` commands. The cursor uses its
    own connection until the last batch. If the application closes the cursor before the last batch, the driver closes
    the connection. The cursor cannot have a limit. A mongos must have MongoDB 7.1 or later. In a transaction, the
    driver uses `NON_TAILABLE` instead."""


class Cursor(Generic[DocumentType]):
    """Iterator over the documents that match a query.

    :meth:`Collection.find <gmongo.collection.Collection.find>` creates the cursor.

        >>> cursor = notes.find({"tags": "a"}).sort("title").limit(2)
        >>> [note["title"] for note in cursor]
        ['first', 'second']

    Methods such as :meth:`sort` change the query, and return the cursor. Methods that change the query
    raise :class:`~gmongo.errors.InvalidOperation` after the first iteration has sent the query, and
    :class:`TypeError` for an argument of a wrong type. Several greenlets may share a cursor: the cursor
    returns each document to one greenlet.

    An iteration may raise the exceptions that all operations may raise (see :class:`~gmongo.collection.Collection`),
    and :class:`~gmongo.errors.CursorNotFound` if the server no longer has the cursor. :meth:`close` and the end of a
    ``with`` statement close the cursor on the server immediately. The driver closes a garbage-collected cursor in
    the background. Specifications: Find, getMore and killCursors commands, and CRUD API (section "Read").

    :param collection: the collection that the cursor queries.
    :param filter: a query; None (the default) or ``{}`` matches every document.
    :param projection: a list of fields, or a mapping such as ``{"title": 1, "_id": 0}``; None means all fields.
    :param skip: the number of documents that the server skips; 0 by default.
    :param limit: the maximum number of documents; 0 (the default) means no limit; a negative number means one batch.
    :param no_cursor_timeout: True disables the server's timeout for idle cursors (10 minutes); False by default.
    :param cursor_type: a value of :class:`~gmongo.cursor.CursorType`; NON_TAILABLE by default.
    :param sort: a list of ``(field, direction)`` pairs, or a mapping; None (the default) does not sort the documents.
    :param allow_partial_results: True allows partial results if shards are unreachable; False by default.
    :param oplog_replay: a flag that has no effect since MongoDB 4.4; False by default.
    :param batch_size: the maximum number of documents in each batch; 0 (the default) lets the server choose.
    :param collation: a ``Collation`` or an equivalent mapping; None (the default) uses the collection's collation.
    :param hint: an index name, or the keys as for ``create_index``; None (the default) sets no hint.
    :param max_scan: an option that current servers do not support; None by default.
    :param max_time_ms: the server's time limit for the query, in milliseconds; None (the default) means no limit. A
        client-side limit (``timeoutMS``, :func:`gmongo.timeout`) replaces `max_time_ms`.
    :param max: the exclusive upper bound in the index: a mapping or ``(field, value)`` pairs; None by default.
    :param min: the inclusive lower bound in the index, in the same form as `max`; None by default.
    :param return_key: True returns the index keys instead of the documents; None by default.
    :param show_record_id: True adds the server's record identifier as ``$recordId``; None by default.
    :param snapshot: an option that current servers do not support; None by default.
    :param comment: a comment in the server's log (see :class:`~gmongo.collection.Collection`); None by default.
    :param session: the session of the operation; None (the default) uses an implicit session.
    :param allow_disk_use: True allows temporary files for a large sort (MongoDB 4.4). None means
        the server's default.
    :param let: a mapping of variables, which expressions name as ``"$$name"`` (MongoDB 5.0); None by default.
    :param timeout_ms: the time limit in milliseconds; 0 means no limit, None (the default) uses the
        collection's limit. An enclosing :func:`gmongo.timeout` can only shorten the limit.
    :param timeout_mode: ``"cursor_lifetime"`` (the default) limits the total time; ``"iteration"``
        limits the query and each iteration separately, and is the mode of tailable cursors.
    :raises TypeError: an argument has the wrong type.
    :raises ValueError: `skip` or `batch_size` is negative, or `cursor_type` or `timeout_mode` is unknown.
    :raises ConfigurationError: `timeout_mode` is set without a time limit, or contradicts a tailable cursor.
    :raises InvalidOperation: an exhaust cursor has a `limit`, or the callback of ``with_transaction``
        sets `timeout_ms`.
    """

    _raw = False
    _flags = _skip = _limit = _batch_size = 0
    _cursor: ServerCursor | None = None
    _turn: Turn | None = None
    _empty = False
    _closed = False
    _max_await_time_ms: int | None = None
    # True if the time limit applies to each iteration separately. For a tailable cursor, False has the same effect.
    _limits_each_iteration = False
    _read_ahead_limits: tuple[int, int] | None = None

    def __init__(
        self,
        collection: Collection[Value],
        filter: Document | None = None,
        projection: Document | Sequence[str] | Set[str] | None = None,
        skip: int = 0,
        limit: int = 0,
        no_cursor_timeout: bool = False,
        cursor_type: int = CursorType.NON_TAILABLE,
        sort: KeyOrList | None = None,
        allow_partial_results: bool = False,
        oplog_replay: bool = False,
        batch_size: int = 0,
        collation: Document | Collation | None = None,
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
    ) -> None:
        self._collection, self._session = collection, checked_session(session)
        self._executor = collection._executor
        self._filter: Document = {} if filter is None else checked_mapping("filter", filter) or {}
        self._fields: DocumentDict = {}
        options: tuple[Value, ...] = (projection, skip, limit, no_cursor_timeout, cursor_type, sort)
        options += (allow_partial_results, oplog_replay, batch_size, collation, hint, max_scan, max_time_ms, max, min)
        options += (return_key, show_record_id, snapshot, comment, session, allow_disk_use, let)
        options += (timeout_ms, timeout_mode)
        if all(map(is_, options, _DEFAULT_OPTIONS)):
            return  # most queries have only default options
        if let is not None and not isinstance(let, Mapping):
            raise TypeError(f"let must be a mapping, not {short(let)}")
        if cursor_type not in (0, _TAILABLE, _TAILABLE | _AWAIT_DATA, _EXHAUST):
            raise ValueError(f"not a valid value for cursor_type: {short(cursor_type)}")
        if timeout_ms is not None or timeout_mode is not None:
            self._executor = self._executor.for_operation(timeout_ms, self._session)
            tailable = bool(cursor_type & _TAILABLE)
            self._limits_each_iteration = limits_each_iteration(timeout_mode, self._executor, tailable)
        self._flags = int(cursor_type)
        self._add_flag("no_cursor_timeout", _NO_TIMEOUT, no_cursor_timeout)
        self._add_flag("allow_partial_results", _PARTIAL, allow_partial_results)
        self._add_flag("oplog_replay", _OPLOG_REPLAY, oplog_replay)
        self._skip, self._limit = checked_non_negative("skip", skip), checked_integer("limit", limit)
        self._check_exhaust()
        self._batch_size = checked_non_negative("batch_size", batch_size)
        fields = {
            "projection": None if projection is None else fields_document(projection) or None,
            "sort": sort_document(sort) if sort else None,
            "collation": validate_collation_or_none(collation),
            "hint": None if hint is None else checked_hint(hint),
            "maxScan": max_scan,
            "maxTimeMS": max_time_ms,
            "max": _checked_bound("max", max) if max else None,
            "min": _checked_bound("min", min) if min else None,
            "returnKey": return_key,
            "showRecordId": show_record_id,
            "snapshot": snapshot,
            "comment": comment,
            "allowDiskUse": None if allow_disk_use is None else checked_flag("allow_disk_use", allow_disk_use),
            "let": let,
        }
        self._fields = {field: value for field, value in fields.items() if value is not None}

    def _add_flag(self, name: str, flag: int, is_set: bool) -> None:
        self._flags |= flag if checked_flag(name, is_set) else 0

    def _check_exhaust(self) -> None:
        if self._flags & _EXHAUST and self._limit:
            raise InvalidOperation("an exhaust cursor cannot have a limit")

    def _is_exhaust(self, session: SessionHandle) -> bool:
        """Return True if the server must send all batches without further ``getMore`` commands.

        :raises InvalidOperation: an ``EXHAUST`` cursor belongs to a client with automatic encryption.
        """
        if not self._flags & _EXHAUST:
            return False
        client = self._collection.database.client
        if client._encrypter is not None:
            raise InvalidOperation("exhaust cursors do not support auto encryption")
        # An exhaust cursor cannot have a limit, and a transaction runs one command at a time.
        return not self._flags & _TAILABLE and not self._limit and not in_transaction(client._executor, session)

    def _check_unsent(self) -> None:
        if self._cursor is not None:
            raise InvalidOperation("cannot set options after executing query")

    def _set_option(self, field: str, value: object) -> Cursor[DocumentType]:
        self._check_unsent()
        self._fields.pop(field, None)
        if value is not None:
            self._fields[field] = value
        return self

    def sort(self, key_or_list: KeyOrList, direction: Direction | None = None) -> Cursor[DocumentType]:
        """Sort the result. A later call replaces the order of an earlier call.

        ::

            notes.find().sort("title")
            notes.find().sort([("title", gmongo.ASCENDING), ("created", gmongo.DESCENDING)])

        :param key_or_list: a field, a list of fields and ``(field, direction)`` pairs, or a mapping.
        :param direction: the direction of a single field: :data:`gmongo.ASCENDING` (1, the default),
            :data:`gmongo.DESCENDING` (-1), or ``{"$meta": "textScore"}``.
        :raises ValueError: `key_or_list` is empty.
        """
        keys: Value = [(key_or_list, direction)] if direction is not None else key_or_list
        return self._set_option("sort", index_document(keys, "sort"))

    def skip(self, skip: int) -> Cursor[DocumentType]:
        """Skip documents at the beginning of the result.

        :param skip: the number of documents to skip, which is 0 or more.
        :raises ValueError: `skip` is negative.
        """
        self._check_unsent()
        self._skip = checked_non_negative("skip", skip)
        return self

    def limit(self, limit: int) -> Cursor[DocumentType]:
        """Limit the number of returned documents.

        :param limit: the maximum number of documents; 0 means no limit; a negative number means one batch.
        :raises InvalidOperation: the cursor is an exhaust cursor.
        """
        self._check_unsent()
        self._limit = checked_integer("limit", limit)
        self._empty = False
        if self._flags & _EXHAUST:
            raise InvalidOperation("an exhaust cursor cannot have a limit")
        return self

    def batch_size(self, batch_size: int) -> Cursor[DocumentType]:
        """Limit the number of documents in each batch. The limit does not change the result.

        :param batch_size: the maximum number of documents in a batch; 0 lets the server choose.
        :raises ValueError: `batch_size` is negative.
        """
        self._check_unsent()
        self._batch_size = checked_non_negative("batch_size", batch_size)
        return self

    def read_ahead(self, batches: int = 1, max_bytes: int = DEFAULT_MAX_BYTES) -> Cursor[DocumentType]:
        """Fetch the next batches while the application uses the current batch. PyMongo does not have this method.

        ::

            for order in orders.find(batch_size=1000).read_ahead():
                handle(order)

        A driver greenlet sends each ``getMore`` as soon as `batches` and `max_bytes` allow the next batch. The
        fetched batches stay in memory, mostly undecoded, until the application reads the batches or closes the
        cursor. If a ``getMore`` fails, the cursor raises the error after the documents of all earlier batches.

        :param batches: the maximum number of batches that the driver fetches ahead; 1 by default.
        :param max_bytes: the maximum total size of these batches in bytes, 32 MiB by default. The driver assumes that
            each batch is as large as the previous batch. The limit does not apply to the first ``getMore``.
        :raises ValueError: `batches` or `max_bytes` is less than 1.
        :raises InvalidOperation: the cursor is a tailable or exhaust cursor, or has an explicit
            session, which runs one command at a time.
        """
        self._check_unsent()
        limits = checked_read_ahead_limits(batches, max_bytes)
        self._check_read_ahead(self._session)
        self._read_ahead_limits = limits
        return self

    def _check_read_ahead(self, session: SessionHandle | None) -> None:
        check_not_explicit(session)
        if self._flags & (_TAILABLE | _EXHAUST):
            raise InvalidOperation("a tailable or exhaust cursor cannot read ahead")

    def hint(self, index: KeyOrList | None) -> Cursor[DocumentType]:
        """Choose the index that the server must use.

        :param index: an index name, or the keys as for ``create_index``; None sets no hint.
        """
        return self._set_option("hint", None if index is None else checked_hint(index))

    def comment(self, comment: Value) -> Cursor[DocumentType]:
        """Attach a comment to the query and its ``getMore`` commands.

        :param comment: the comment in the server's log (see :class:`~gmongo.collection.Collection`), or None.
        """
        return self._set_option("comment", comment)

    def max_time_ms(self, max_time_ms: int | None) -> Cursor[DocumentType]:
        """Limit the time that the server works on the query.

        After the time limit, an iteration raises :class:`~gmongo.errors.ExecutionTimeout`.
        :func:`gmongo.timeout` limits the time of the whole operation, including the network.

        :param max_time_ms: the time limit in milliseconds; None means no limit. A client-side time
            limit replaces `max_time_ms`.
        :raises ValueError: `max_time_ms` is negative.
        """
        limit = None if max_time_ms is None else checked_non_negative("max_time_ms", max_time_ms)
        return self._set_option("maxTimeMS", limit)

    def max_await_time_ms(self, max_await_time_ms: int | None) -> Cursor[DocumentType]:
        """Limit the server's wait for a new document. Only the type ``TAILABLE_AWAIT`` has this wait.

        :param max_await_time_ms: the waiting time in milliseconds; None uses the server's default (1,000 ms).
        :raises ValueError: `max_await_time_ms` is negative.
        """
        self._check_unsent()
        if max_await_time_ms is not None:
            checked_non_negative("max_await_time_ms", max_await_time_ms)
        if self._flags & _AWAIT_DATA:
            self._max_await_time_ms = max_await_time_ms
        return self

    def max_scan(self, max_scan: int | None) -> Cursor[DocumentType]:
        """Set the option ``maxScan``. Current servers do not support this option.

        :param max_scan: the value of the option; None omits the option.
        """
        return self._set_option("maxScan", max_scan)

    def max(self, spec: Bound) -> Cursor[DocumentType]:
        """Restrict the result to index keys below `spec`. The query needs a :meth:`hint`.

        :param spec: a mapping of fields to values, or ``(field, value)`` pairs, in the order of the index keys.
        :raises InvalidOperation: the hint is missing at the first iteration.
        """
        return self._set_option("max", _checked_bound("max", spec) or None)

    def min(self, spec: Bound) -> Cursor[DocumentType]:
        """Restrict the result to index keys at or above `spec`. The query needs a :meth:`hint`.

        :param spec: a mapping of fields to values, or ``(field, value)`` pairs, in the order of the index keys.
        :raises InvalidOperation: the hint is missing at the first iteration.
        """
        return self._set_option("min", _checked_bound("min", spec) or None)

    def collation(self, collation: Collation | Document | None) -> Cursor[DocumentType]:
        """Set the rules of string comparison for the query.

        :param collation: a :class:`~gmongo.collation.Collation` or a mapping; None uses the collection's collation.
        """
        return self._set_option("collation", validate_collation_or_none(collation))

    def allow_disk_use(self, allow_disk_use: bool) -> Cursor[DocumentType]:
        """Allow the server to use temporary files for a large sort, or forbid temporary files (MongoDB 4.4).

        :param allow_disk_use: True allows temporary files. False forbids temporary files.
        """
        return self._set_option("allowDiskUse", checked_flag("allow_disk_use", allow_disk_use))

    def where(self, code: str | Code) -> Cursor[DocumentType]:
        """Add a JavaScript expression that each result document must match. An equivalent ``$expr`` is faster.

        The expression refers to the document as ``this``. A later call replaces the expression.

        :param code: the expression: a string, or a :class:`~bson.code.Code` with its scope.
        """
        self._check_unsent()
        self._filter = {**self._filter, "$where": Code(code)}
        return self

    def add_option(self, mask: int) -> Cursor[DocumentType]:
        """Set flags of the query by their numbers in the wire protocol.

        The flags are 2 (tailable), 8 (oplog replay), 16 (no cursor timeout), 32 (await data), 64
        (exhaust) and 128 (partial results). New programs should pass options by name to
        :meth:`Collection.find <gmongo.collection.Collection.find>`.

        :param mask: the sum of the numbers of the flags.
        :raises InvalidOperation: an exhaust cursor has a limit.
        """
        self._check_unsent()
        self._flags |= checked_integer("mask", mask)
        self._check_exhaust()
        return self

    def remove_option(self, mask: int) -> Cursor[DocumentType]:
        """Clear flags of the query. :meth:`add_option` lists the flags.

        :param mask: the sum of the numbers of the flags.
        """
        self._check_unsent()
        self._flags &= ~checked_integer("mask", mask)
        return self

    def _build_find_fields(self) -> DocumentDict:
        fields = dict(self._fields)
        if self._skip:
            fields["skip"] = self._skip
        if self._limit:
            fields["limit"] = abs(self._limit)
        if self._limit < 0:
            fields["singleBatch"] = True
        if self._batch_size:
            # Avoid a first batch of exactly `limit` documents, after which the server keeps the cursor open.
            equals_limit = self._batch_size == self._limit
            fields["batchSize"] = self._batch_size + 1 if equals_limit else self._batch_size
        if self._flags:
            fields |= {name: True for flag, name in _FLAG_FIELDS.items() if self._flags & flag}
        return fields

    def _build_query(self) -> tuple[Document, DocumentDict]:
        """Return the filter, and the other fields of the ``find`` command.

        :raises InvalidOperation: `min` or `max` is set without `hint`.
        """
        filter, fields = without_modifiers(self._filter, self._build_find_fields())
        if ("min" in fields or "max" in fields) and "hint" not in fields:
            raise InvalidOperation("min and max are the bounds of an index: hint must name the index")
        return filter, fields

    def _create_operation(self, exhaust: bool) -> Find | Explain:
        collection = self._collection
        filter, fields = self._build_query()
        if "explain" in fields:
            return ExplainedQuery(collection._context, self._build_explain_command())
        # If the server receives maxTimeMS, the server counts the time of all later batches toward maxTimeMS.
        takes_max_time = bool(self._flags & _AWAIT_DATA) or not (self._limits_each_iteration or self._flags & _TAILABLE)
        kind = ExhaustFind if exhaust else Find
        return kind(collection._context, filter, fields, self._raw, takes_max_time)

    def _server_cursor(self) -> ServerCursor | None:
        """Return the server cursor, or None if `_empty` or `_closed` prevents the query of the first call."""
        while self._cursor is None and not (self._empty or self._closed):
            if self._turn is None:
                with Turn(self):
                    self._open()
            else:
                self._wait_for_turn(self._turn)
        return self._cursor

    def _wait_for_turn(self, turn: Turn) -> None:
        """Wait until another greenlet has sent the query. Ignore the other greenlet's timeout."""
        deadline = self._executor.deadline()
        try:
            turn.wait(deadline)
        except PyMongoError as error:
            if not error.timeout or has_passed(deadline):
                raise

    def _open(self) -> None:
        client = self._collection.database.client
        executor = self._executor
        session: SessionHandle = self._session or executor.implicit_session()
        if self._read_ahead_limits is not None:
            self._check_read_ahead(session)
        tailable = bool(self._flags & _TAILABLE)
        exhaust = self._is_exhaust(session)
        operation = self._create_operation(exhaust)
        deadline = executor.deadline()
        check_await_time(self._max_await_time_ms, deadline)
        try:
            reply = executor.run(operation, session, deadline)
        except BaseException as error:
            # After a BSON error, a second attempt to send the query would fail again.
            self._closed = self._closed or isinstance(error, BSONError)
            end_if_implicit(session)
            raise
        self._cursor = ServerCursor(
            executor,
            client._cursor_killer,
            reply,
            session,
            self._collection.codec_options,
            # A raw cursor does not count documents, and uses only a negative limit (a single batch).
            limit=min(self._limit, 0) if self._raw else self._limit,
            batch_size=self._batch_size,
            max_await_time_ms=self._max_await_time_ms,
            tailable=tailable,
            comment=self._fields.get("comment"),
            raw=self._raw,
            deadline=None if tailable or self._limits_each_iteration else deadline,
            exhaust=exhaust,
        )
        self._close_or_read_ahead(self._cursor)

    def _close_or_read_ahead(self, cursor: ServerCursor) -> None:
        if self._closed:  # another greenlet called close() during the query
            cursor.close()
        elif self._read_ahead_limits is not None:
            cursor.read_ahead(*self._read_ahead_limits)

    def explain(self) -> DocumentDict:
        """Run the query on the server, and return the query plan with execution statistics.

        To set the verbosity, use :meth:`Database.command <gmongo.database.Database.command>` with ``explain``.

        :returns: the server's reply.
        :raises InvalidOperation: `min` or `max` is set without `hint`.
        :raises OperationFailure: the server rejected the query.
        """
        operation = Explain(self._collection._context, self._build_explain_command())
        return self._executor.run(operation, self._session, self._executor.deadline())

    def _build_explain_command(self) -> DocumentDict:
        filter, fields = self._build_query()
        fields.pop("explain", None)
        return {"explain": {"find": self._collection.name, "filter": filter, **fields}}

    def distinct(self, key: str) -> list[Value]:
        """Return the distinct values of a field in the documents that match the query.

        This method uses only the filter, ``max_time_ms``, ``comment`` and ``collation`` of the query.

        :param key: the name of the field, with dots for nested fields.
        :returns: a list of the values, in no defined order.
        """
        options = {name: self._fields[name] for name in ("maxTimeMS", "comment", "collation") if name in self._fields}
        return self._collection.distinct(key, self._filter or None, session=self._session, **options)

    def __iter__(self) -> Iterator[DocumentType]:
        """Return an iterator over all remaining documents, or over the available documents of a tailable cursor.

        Several greenlets may share the iterator. An error does not end the iterator.
        """
        return chain.from_iterable(document_runs(self))

    def __next__(self) -> DocumentType:
        """Wait for the next document, and return the document.

        :raises StopIteration: no document remains, or a tailable cursor now has no new document.
        """
        cursor = self._cursor or self._server_cursor()
        if cursor is None:
            raise StopIteration
        for document in cursor.documents:
            return document
        return cursor.next_document()

    next = __next__

    def to_list(self, length: int | None = None) -> list[DocumentType]:
        """Return the remaining documents, or the available documents of a tailable cursor, as a list.

        :param length: the maximum number of documents; None (the default) means no maximum.
        :raises ValueError: `length` is less than 1.
        """
        return read_documents(self, length)

    @overload
    def __getitem__(self, index: int) -> DocumentType: ...

    @overload
    def __getitem__(self, index: slice) -> Cursor[DocumentType]: ...

    def __getitem__(self, index: int | slice) -> DocumentType | Cursor[DocumentType]:
        """For a slice, set skip and limit. For an index, return one document from a separate query."""
        self._check_unsent()
        if isinstance(index, slice):
            return self._apply_slice(index)
        if not isinstance(index, int):
            raise TypeError(f"index {short(index)} cannot be applied to Cursor instances")
        if index < 0:
            raise IndexError("Cursor instances do not support negative indices")
        with self.clone() as clone:
            # The server rejects a tailable query with a single batch.
            clone._flags &= ~(_TAILABLE | _AWAIT_DATA)
            for document in clone.skip(index + self._skip).limit(-1):
                return document
        raise IndexError("no such item for Cursor instance")

    def _apply_slice(self, index: slice) -> Cursor[DocumentType]:
        if index.step is not None:
            raise IndexError("Cursor instances do not support slice steps")
        start, stop = index.start or 0, index.stop
        if start < 0 or (stop is not None and stop < start):
            raise IndexError(f"stop index must be greater than start index for slice {short(index)}")
        self._skip = start
        self._limit = 0 if stop is None else stop - start
        self._empty = stop == start  # a limit of 0 means no limit
        return self

    def clone(self) -> Cursor[DocumentType]:
        """Return a copy of this cursor with the same session. The copy has not sent the query."""
        return self._copy(copy.copy)

    __copy__ = clone

    def __deepcopy__(self, memo: object) -> Cursor[DocumentType]:
        return self._copy(partial(_deep_copy, memo={}))

    def _copy(self, copier: Callable[[Value], Value]) -> Cursor[DocumentType]:
        clone = self.__class__.__new__(self.__class__)
        clone.__dict__.update(self.__dict__)
        clone._cursor = clone._turn = None
        clone._closed = False
        clone._filter, clone._fields = copier(self._filter), copier(self._fields)
        return clone

    def rewind(self) -> Cursor[DocumentType]:
        """Close and return this cursor. The next iteration sends the query again."""
        self.close()
        if self._cursor is not None:
            self._cursor.drop()  # a running iteration of another greenlet then also repeats the query
        self._cursor, self._closed = None, False
        return self

    collection: Collection[Value] = read_only("_collection", "The collection that the cursor queries.")

    @property
    def alive(self) -> bool:
        """True if the cursor may return more documents."""
        return not self._closed if self._cursor is None else self._cursor.alive

    @property
    def cursor_id(self) -> int | None:
        """The identifier of the cursor on the server: None before the query, 0 after the server closed the cursor."""
        return None if self._cursor is None else self._cursor.resources.cursor_id

    @property
    def address(self) -> Address | None:
        """The host and port of the server that has the cursor, as a pair. None before the query."""
        return None if self._cursor is None else self._cursor.resources.address

    @property
    def retrieved(self) -> int:
        """The number of decoded documents, including documents that the cursor has yet to return."""
        return 0 if self._cursor is None else self._cursor.retrieved

    session: ClientSession | None = read_only("_session", "The explicit session, or None.")

    def close(self) -> None:
        """Close the cursor in the client and on the server. Further calls do nothing."""
        self._closed = True
        if self._cursor is not None:
            self._cursor.close()

    def __enter__(self) -> Cursor[DocumentType]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._closed = True
        if self._cursor is not None:
            self._cursor.close_after_block(error)


_DEFAULT_OPTIONS = (*(Cursor.__init__.__defaults__ or ())[1:], None, None)
"""The default values of the options after `filter`, in the order of the parameters."""


class RawBatchCursor(Cursor[bytes]):
    """Iterator over batches of encoded documents. Each item is a whole batch as ``bytes``.

    :meth:`Collection.find_raw_batches <gmongo.collection.Collection.find_raw_batches>` creates the cursor. The
    class has the parameters and methods of :class:`Cursor`, but supports neither ``cursor[index]`` nor slices.
    """

    _raw = True

    def __getitem__(self, index: object) -> NoReturn:
        raise InvalidOperation("Cannot call __getitem__ on RawBatchCursor")


def _checked_bound(name: str, spec: object) -> Document:
    try:
        if isinstance(spec, (list, tuple, Mapping)):
            return dict(spec)
    except (TypeError, ValueError):  # an element is not a (field, value) pair
        pass
    raise TypeError(f"{name} must be a mapping or a list of (field, value) pairs, not {short(spec)}")


def _deep_copy(value: Value, memo: dict[int, Value]) -> Value:
    """Return a deep copy of a value. The copy shares compiled regular expressions with the value.

    :param memo: the copies of mappings and lists, with the ``id`` of the original as the key. A
        mapping may contain itself.
    """
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, Mapping):
        copied = memo[id(value)] = SON() if isinstance(value, SON) else {}
        copied.update((key, _deep_copy(item, memo)) for key, item in value.items())
        return copied
    if isinstance(value, list):
        items = memo[id(value)] = []
        items.extend(_deep_copy(item, memo) for item in value)
        return items
    return value if isinstance(value, re.Pattern) else copy.deepcopy(value)
