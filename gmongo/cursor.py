"""Cursors of queries."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain
from operator import is_
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, TypeAlias, TypeVar, overload

from bson.code import Code
from bson.errors import BSONError
from bson.son import SON

from gmongo._cursor_type import CursorType
from gmongo._documents import Document, DocumentDict, Value
from gmongo._short_text import short
from gmongo.client_session import ClientSession
from gmongo.collation import Collation, validate_collation_or_none
from gmongo.command_cursor import take_list
from gmongo.engines.iteration import runs
from gmongo.engines.read_ahead import MAX_BYTES, check_session, checked_allowance
from gmongo.engines.server_cursor import ServerCursor
from gmongo.engines.timeout_mode import limits_each_iteration
from gmongo.engines.turn import Turn
from gmongo.errors import InvalidOperation
from gmongo.execution.deadline import check_await_time
from gmongo.execution.sessions import SessionHandle, checked_session, end_if_implicit, in_transaction
from gmongo.operations.find import ExhaustFind, Find, without_modifiers
from gmongo.operations.keys import Direction, KeyOrList, fields_document, index_document, sort_document
from gmongo.operations.models import checked_flag, checked_hint, checked_mapping
from gmongo.operations.run_command import Explain, ExplainedQuery
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.collection import Collection

__all__ = ["Cursor", "CursorType", "RawBatchCursor"]

DocumentType = TypeVar("DocumentType")
Bound: TypeAlias = Document | Sequence[tuple[str, Value]] | None
"""The bounds of an index: a mapping, or pairs of field and value, in the order of its keys."""

_TAILABLE, _OPLOG_REPLAY, _NO_TIMEOUT, _AWAIT_DATA, _EXHAUST, _PARTIAL = 2, 8, 16, 32, 64, 128
_FLAGS = {
    _TAILABLE: "tailable",
    _OPLOG_REPLAY: "oplogReplay",
    _NO_TIMEOUT: "noCursorTimeout",
    _AWAIT_DATA: "awaitData",
    _PARTIAL: "allowPartialResults",
}


class Cursor(Generic[DocumentType]):
    """Iterates over the documents that match a query; made by :meth:`Collection.find
    <gmongo.collection.Collection.find>`.

        >>> cursor = notes.find({"tags": "a"}).sort("title").limit(2)
        >>> [note["title"] for note in cursor]
        ['first', 'second']

    The query is sent when the first document is asked for; until then its options can be changed. After that, methods
    that change them raise :class:`~gmongo.errors.InvalidOperation`. Greenlets may share a cursor: each document goes to
    one of them.

    Iterating may raise what every operation may (see :class:`~gmongo.collection.Collection`), and
    :class:`~gmongo.errors.CursorNotFound` if the server no longer knows the cursor. A cursor that is dropped before its
    end is ended on the server in the background; :meth:`close` or a ``with`` does so at once.

    Specification: CRUD API, "Read"; Find, getMore and killCursors commands.

    :param collection: the collection that is queried.
    :param filter: a query; None or ``{}`` matches every document.
    :param projection: which fields to return: a list of names (``_id`` is always added), or a document such as
        ``{"title": 1, "_id": 0}``. None returns all.
    :param skip: how many documents to leave out at the beginning; 0 by default.
    :param limit: how many documents to return at most; 0 (the default) is without limit. A negative number is the same
        without its sign, in a single reply.
    :param no_cursor_timeout: True keeps the server from closing the cursor when it is unused for ten minutes; its
        session, which ends after thirty, ends it all the same.
    :param cursor_type: a value of :class:`~gmongo.cursor.CursorType`: what happens at the end of a capped
        collection.
    :param sort: the order: a list of ``(field, direction)``, or a mapping of fields to directions. None is the order in
        which the server finds them.
    :param allow_partial_results: True takes what there is when some shards cannot be reached, rather than fail.
    :param oplog_replay: of no effect since MongoDB 4.4.
    :param batch_size: how many documents a reply brings; 0 (the default) leaves it to the server, which begins with
        101.
    :param collation: by which rules strings are compared: a :class:`~gmongo.collation.Collation` or its document. None
        takes the collection's own.
    :param hint: the index to use: its name, or its keys in any form that ``create_index`` takes. None lets the server
        choose.
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
    :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is without.
    :param timeout_ms: the limit of time, in milliseconds, of what `timeout_mode` says; 0 is without limit, None (the
        default) takes the collection's. :func:`gmongo.timeout` around it can only shorten it.
    :param timeout_mode: ``"cursor_lifetime"`` (the default): the last document must have come in time; or
        ``"iteration"``, the only one of a tailable cursor: the query has its limit, and each iteration again.
    :raises TypeError: an argument has the wrong type.
    :raises ValueError: a number is negative that must not be, or `cursor_type` or `timeout_mode` is unknown.
    :raises ConfigurationError: `timeout_mode` is given without a limit, or a tailable cursor is to have a lifetime.
    :raises InvalidOperation: an exhaust cursor is given a `limit`; or the callback of ``with_transaction``, which has a
        limit for all, gives a single query another one.
    """

    _raw = False
    _flags = _skip = _limit = _batch_size = 0
    _cursor: ServerCursor | None = None
    _turn: Turn | None = None
    _empty = False
    _closed = False
    _max_await_time_ms: int | None = None
    _iterates = False  # whether its limit is for each iteration; that of a tailable one is, anyhow
    _ahead: tuple[int, int] | None = None

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
        self._filter: Document = {} if filter is None else checked_mapping("filter", filter)
        self._fields: DocumentDict = {}
        options: tuple[Value, ...] = (projection, skip, limit, no_cursor_timeout, cursor_type, sort)
        options += (allow_partial_results, oplog_replay, batch_size, collation, hint, max_scan, max_time_ms, max, min)
        options += (return_key, show_record_id, snapshot, comment, session, allow_disk_use, let)
        options += (timeout_ms, timeout_mode)
        if all(map(is_, options, _NO_OPTIONS)):
            return  # as most have none
        if let is not None and not isinstance(let, Mapping):
            raise TypeError(f"let must be a mapping, not {short(let)}")
        if cursor_type not in (0, _TAILABLE, _TAILABLE | _AWAIT_DATA, _EXHAUST):
            raise ValueError(f"not a valid value for cursor_type: {short(cursor_type)}")
        if timeout_ms is not None or timeout_mode is not None:
            self._limit_time(timeout_ms, timeout_mode, bool(cursor_type & _TAILABLE))
        self._flags = int(cursor_type)
        self._add_flag("no_cursor_timeout", _NO_TIMEOUT, no_cursor_timeout)
        self._add_flag("allow_partial_results", _PARTIAL, allow_partial_results)
        self._add_flag("oplog_replay", _OPLOG_REPLAY, oplog_replay)
        self._skip, self._limit = _natural("skip", skip), _integer("limit", limit)
        self._check_exhaust()
        self._batch_size = _natural("batch_size", batch_size)
        given = {
            "projection": None if projection is None else fields_document(projection) or None,
            "sort": sort_document(sort) if sort else None,
            "collation": validate_collation_or_none(collation),
            "hint": None if hint is None else checked_hint(hint),
            "maxScan": max_scan,
            "maxTimeMS": max_time_ms,
            "max": _bound("max", max) if max else None,
            "min": _bound("min", min) if min else None,
            "returnKey": return_key,
            "showRecordId": show_record_id,
            "snapshot": snapshot,
            "comment": comment,
            "allowDiskUse": None if allow_disk_use is None else checked_flag("allow_disk_use", allow_disk_use),
            "let": let,
        }
        self._fields = {field: value for field, value in given.items() if value is not None}

    def _limit_time(self, timeout_ms: float | None, timeout_mode: str | None, tailable: bool) -> None:
        self._executor = self._executor.for_operation(timeout_ms, self._session)
        self._iterates = limits_each_iteration(timeout_mode, self._executor, tailable)

    def _add_flag(self, name: str, flag: int, wanted: bool) -> None:
        self._flags |= flag if checked_flag(name, wanted) else 0

    def _set(self, field: str, value: object) -> None:
        if value is None:
            self._fields.pop(field, None)
        else:
            self._fields[field] = value

    def _check_exhaust(self) -> None:
        if self._flags & _EXHAUST and self._limit:
            raise InvalidOperation("an exhaust cursor cannot have a limit")

    def _streams(self, session: SessionHandle) -> bool:
        """Whether the server is to send all batches without being asked for each.

        :raises InvalidOperation: the client encrypts.
        """
        if not self._flags & _EXHAUST:
            return False
        client = self._collection.database.client
        if client._encrypter is not None:
            raise InvalidOperation("exhaust cursors do not support auto encryption")
        # The documents of a slice are counted; and a transaction runs one command at a time.
        return not self._flags & _TAILABLE and not self._limit and not in_transaction(client._executor, session)

    # Options, until the first document

    def _check_unsent(self) -> None:
        if self._cursor is not None:
            raise InvalidOperation("cannot set options after executing query")

    def _change(self, field: str, value: object) -> Cursor[DocumentType]:
        self._check_unsent()
        self._set(field, value)
        return self

    def sort(self, key_or_list: KeyOrList, direction: Direction | None = None) -> Cursor[DocumentType]:
        """Sort the result. The last call counts.

        ::

            notes.find().sort("title")
            notes.find().sort([("title", gmongo.ASCENDING), ("created", gmongo.DESCENDING)])

        :param key_or_list: a field; or a list of fields and ``(field, direction)`` pairs; or a mapping of fields to
            directions.
        :param direction: of a single field: :data:`gmongo.ASCENDING` (1, the default), :data:`gmongo.DESCENDING` (-1),
            or ``{"$meta": "textScore"}``.
        :returns: this cursor.
        :raises TypeError: the keys have the wrong type.
        :raises ValueError: there are no keys.
        :raises InvalidOperation: the query has been sent.
        """
        keys: Value = [(key_or_list, direction)] if direction is not None else key_or_list
        return self._change("sort", index_document(keys, "sort"))

    def skip(self, skip: int) -> Cursor[DocumentType]:
        """Leave out documents at the beginning.

        :param skip: how many; 0 or more.
        :returns: this cursor.
        :raises TypeError: `skip` is no integer.
        :raises ValueError: it is negative.
        :raises InvalidOperation: the query has been sent.
        """
        self._check_unsent()
        self._skip = _natural("skip", skip)
        return self

    def limit(self, limit: int) -> Cursor[DocumentType]:
        """Return no more than so many documents.

        :param limit: how many; 0 is without limit, and a negative number is the same without its sign, in a single
            reply.
        :returns: this cursor.
        :raises TypeError: `limit` is no integer.
        :raises InvalidOperation: the query has been sent, or is that of an exhaust cursor.
        """
        self._check_unsent()
        self._limit = _integer("limit", limit)
        self._empty = False
        if self._flags & _EXHAUST:
            raise InvalidOperation("an exhaust cursor cannot have a limit")
        return self

    def batch_size(self, batch_size: int) -> Cursor[DocumentType]:
        """Set how many documents a reply brings. This changes how often the server is asked, and not the result.

        :param batch_size: how many; 0 leaves it to the server.
        :returns: this cursor.
        :raises TypeError: `batch_size` is no integer.
        :raises ValueError: it is negative.
        :raises InvalidOperation: the query has been sent.
        """
        self._check_unsent()
        self._batch_size = _natural("batch_size", batch_size)
        return self

    def read_ahead(self, batches: int = 1, max_bytes: int = MAX_BYTES) -> Cursor[DocumentType]:
        """Have the next batches fetched while the application uses this one, so that it does not wait for them. PyMongo
        does not have this.

        ::

            for order in orders.find(batch_size=1000).read_ahead():
                handle(order)

        A greenlet of the driver's sends each ``getMore`` as soon as there is room for its batch. What comes ahead is
        held in memory, mostly undecoded, and is dropped when the cursor is closed, collected, or ended by an
        error. An error is raised where its batch would have begun. The results are those of a cursor that does not read
        ahead, except that the server runs each ``getMore`` earlier.

        :param batches: how many batches may wait for the application, or be on their way; 1 by default.
        :param max_bytes: how many bytes of them, by default 32 MiB. A batch is taken to be as large as the one before;
            one that has no room is fetched when it is asked for. The first getMore has room
            in any case.
        :returns: this cursor.
        :raises TypeError: a number is no integer.
        :raises ValueError: a number is less than 1.
        :raises InvalidOperation: the query has been sent. The cursor is tailable or exhaust, or is part of a session of
            the application's, which runs one command at a time; then the first document may raise it, too.
        """
        self._check_unsent()
        allowance = checked_allowance(batches, max_bytes)
        self._check_read_ahead(self._session)
        self._ahead = allowance
        return self

    def _check_read_ahead(self, session: SessionHandle | None) -> None:
        check_session(session)
        if self._flags & (_TAILABLE | _EXHAUST):
            raise InvalidOperation("a tailable or exhaust cursor cannot read ahead: the server sends what there is")

    def hint(self, index: KeyOrList | None) -> Cursor[DocumentType]:
        """Choose the index to use.

        :param index: its name, or its keys in any form that ``create_index`` takes; None lets the server choose.
        :returns: this cursor.
        :raises TypeError: the keys have the wrong type.
        :raises InvalidOperation: the query has been sent.
        """
        return self._change("hint", None if index is None else checked_hint(index))

    def comment(self, comment: Value) -> Cursor[DocumentType]:
        """Attach a comment to the query and what follows it.

        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: this cursor.
        :raises InvalidOperation: the query has been sent.
        """
        return self._change("comment", comment)

    def max_time_ms(self, max_time_ms: int | None) -> Cursor[DocumentType]:
        """Limit the server's work on the query. :func:`gmongo.timeout` limits the whole, the network included.

        :param max_time_ms: in milliseconds; None is without limit. A limit of the operation (``timeoutMS``,
            :func:`gmongo.timeout`) replaces it, even if it is shorter.
        :returns: this cursor. When the time is over, iterating raises :class:`~gmongo.errors.ExecutionTimeout`.
        :raises TypeError: `max_time_ms` is no integer.
        :raises ValueError: it is negative.
        :raises InvalidOperation: the query has been sent.
        """
        return self._change("maxTimeMS", None if max_time_ms is None else _natural("max_time_ms", max_time_ms))

    def max_await_time_ms(self, max_await_time_ms: int | None) -> Cursor[DocumentType]:
        """Set how long the server waits for new documents before it replies that there are none. Cursors of other types
        than ``TAILABLE_AWAIT`` ignore it.

        :param max_await_time_ms: in milliseconds; None leaves it to the server (a second).
        :returns: this cursor.
        :raises TypeError: `max_await_time_ms` is no integer.
        :raises ValueError: it is negative.
        :raises InvalidOperation: the query has been sent.
        """
        self._check_unsent()
        if max_await_time_ms is not None:
            _natural("max_await_time_ms", max_await_time_ms)
        if self._flags & _AWAIT_DATA:
            self._max_await_time_ms = max_await_time_ms
        return self

    def max_scan(self, max_scan: int | None) -> Cursor[DocumentType]:
        """Set ``maxScan``, which servers know no longer.

        :param max_scan: sent as it is given; None leaves it out.
        :returns: this cursor.
        :raises InvalidOperation: the query has been sent.
        """
        return self._change("maxScan", max_scan)

    def max(self, spec: Bound) -> Cursor[DocumentType]:
        """Return documents below these keys of the index that :meth:`hint` names.

        :param spec: a mapping, or ``(field, value)`` pairs, in the order of the keys of the index.
        :returns: this cursor.
        :raises TypeError: `spec` has the wrong type.
        :raises InvalidOperation: the query has been sent. So does iterating, without a hint.
        """
        return self._change("max", _bound("max", spec) or None)

    def min(self, spec: Bound) -> Cursor[DocumentType]:
        """Return documents from these keys on of the index that :meth:`hint` names.

        :param spec: a mapping, or ``(field, value)`` pairs, in the order of the keys of the index.
        :returns: this cursor.
        :raises TypeError: `spec` has the wrong type.
        :raises InvalidOperation: the query has been sent. So does iterating, without a hint.
        """
        return self._change("min", _bound("min", spec) or None)

    def collation(self, collation: Collation | Document | None) -> Cursor[DocumentType]:
        """Set the rules by which strings are compared.

        :param collation: a :class:`~gmongo.collation.Collation` or its document; None takes the collection's own.
        :returns: this cursor.
        :raises TypeError: it is something else.
        :raises InvalidOperation: the query has been sent.
        """
        return self._change("collation", validate_collation_or_none(collation))

    def allow_disk_use(self, allow_disk_use: bool) -> Cursor[DocumentType]:
        """Let the server sort on disk what does not fit into its memory (MongoDB 4.4), or forbid it.

        :param allow_disk_use: whether it may.
        :returns: this cursor.
        :raises TypeError: it is neither True nor False.
        :raises InvalidOperation: the query has been sent.
        """
        return self._change("allowDiskUse", checked_flag("allow_disk_use", allow_disk_use))

    def where(self, code: str | Code) -> Cursor[DocumentType]:
        """Return only documents for which JavaScript is true, in which ``this`` is the document. It replaces an earlier
        one. Where ``$expr`` can say the same, it is faster.

        :param code: text, or a :class:`~bson.code.Code` with its scope.
        :returns: this cursor.
        :raises TypeError: `code` is neither.
        :raises InvalidOperation: the query has been sent.
        """
        self._check_unsent()
        code = code if isinstance(code, Code) else Code(code)
        self._filter = {**self._filter, "$where": code}
        return self

    def add_option(self, mask: int) -> Cursor[DocumentType]:
        """Set flags of the query by their numbers, as old programs do: 2 tailable, 8 oplog replay, 16 no time-out, 32
        await data, 64 exhaust, 128 partial results. New ones give :meth:`Collection.find
        <gmongo.collection.Collection.find>` the options by name.

        :param mask: the sum of the flags.
        :returns: this cursor.
        :raises TypeError: `mask` is no integer.
        :raises InvalidOperation: the query has been sent; or it has a limit and is made exhaust.
        """
        self._check_unsent()
        self._flags |= _integer("mask", mask)
        self._check_exhaust()
        return self

    def remove_option(self, mask: int) -> Cursor[DocumentType]:
        """Clear flags of the query; see :meth:`add_option`.

        :param mask: the sum of the flags.
        :returns: this cursor.
        :raises TypeError: `mask` is no integer.
        :raises InvalidOperation: the query has been sent.
        """
        self._check_unsent()
        self._flags &= ~_integer("mask", mask)
        return self

    # The query

    def _find_fields(self) -> DocumentDict:
        """The fields of the command besides the filter."""
        fields = dict(self._fields)
        if self._skip:
            fields["skip"] = self._skip
        if self._limit:
            fields["limit"] = abs(self._limit)
        if self._limit < 0:
            fields["singleBatch"] = True
        if self._batch_size:
            # A first batch of all documents wanted would leave a cursor open that has nothing more.
            same = self._batch_size == self._limit
            fields["batchSize"] = self._batch_size + 1 if same else self._batch_size
        if self._flags:
            fields |= {name: True for flag, name in _FLAGS.items() if self._flags & flag}
        return fields

    def _query(self) -> tuple[Document, DocumentDict]:
        """The filter, and the other fields of the command.

        :raises InvalidOperation: the bounds of an index are given, but not the index.
        """
        filter, fields = without_modifiers(self._filter, self._find_fields())
        if ("min" in fields or "max" in fields) and "hint" not in fields:
            raise InvalidOperation("min and max are the bounds of an index: hint must name it")
        return filter, fields

    def _operation(self, exhaust: bool) -> Find | Explain:
        collection = self._collection
        filter, fields = self._query()
        if "explain" in fields:
            return ExplainedQuery(collection._context, self._explanation())
        # A server that knows of the limit counts all further batches in, too.
        takes_max_time = bool(self._flags & _AWAIT_DATA) or not (self._iterates or self._flags & _TAILABLE)
        kind = ExhaustFind if exhaust else Find
        return kind(collection._context, filter, fields, self._raw, takes_max_time)

    def _opened(self) -> ServerCursor | None:
        """The cursor on the server, opened with the first use; None if there is nothing to open."""
        while self._cursor is None and not (self._empty or self._closed):
            if self._turn is not None:
                self._turn.wait(self._executor.deadline())
                continue
            with Turn(self):
                self._open()
        return self._cursor

    def _open(self) -> None:
        client = self._collection.database.client
        executor = self._executor
        session: SessionHandle = self._session or executor.implicit_session()
        if self._ahead is not None:
            self._check_read_ahead(session)
        tailable = bool(self._flags & _TAILABLE)
        exhaust = self._streams(session)
        operation = self._operation(exhaust)
        deadline = executor.deadline()
        check_await_time(self._max_await_time_ms, deadline)
        try:
            reply = executor.run(operation, session, deadline)
        except BaseException as error:
            self._closed = self._closed or isinstance(error, BSONError)  # the same query would give the same error
            end_if_implicit(session)
            raise
        self._cursor = ServerCursor(
            executor,
            client._reaper,
            reply,
            session,
            self._collection.codec_options,
            limit=min(self._limit, 0) if self._raw else self._limit,  # below 0, there is but one batch
            batch_size=self._batch_size,
            max_await_time_ms=self._max_await_time_ms,
            tailable=tailable,
            comment=self._fields.get("comment"),
            raw=self._raw,
            deadline=None if tailable or self._iterates else deadline,
            exhaust=exhaust,
        )
        if self._ahead is not None:
            self._cursor.read_ahead(*self._ahead)

    def explain(self) -> DocumentDict:
        """Ask how the server would run the query, without running it for its documents. :meth:`Database.command
        <gmongo.database.Database.command>` with ``explain`` takes a verbosity.

        :returns: the reply of the server.
        :raises InvalidOperation: `min` or `max` are given without `hint`.
        :raises OperationFailure: the server refused the query.
        """
        operation = Explain(self._collection._context, self._explanation())
        return self._executor.run(operation, self._session, self._executor.deadline())

    def _explanation(self) -> DocumentDict:
        """The command that explains the query."""
        filter, fields = self._query()
        fields.pop("explain", None)
        return {"explain": {"find": self._collection.name, "filter": filter, **fields}}

    def distinct(self, key: str) -> list[Value]:
        """The distinct values of a field among the documents that match. Of the options of the query, the filter,
        ``max_time_ms``, ``comment`` and ``collation`` hold, and not ``hint``, ``skip`` and ``limit``. Servers before
        MongoDB 7.1 refuse a hint: :meth:`Collection.distinct <gmongo.collection.Collection.distinct>` takes one.

        :param key: the field, with dots for fields of fields.
        :returns: a list of the values, in no order.
        :raises TypeError: `key` is no string.
        """
        options = {name: self._fields[name] for name in ("maxTimeMS", "comment", "collation") if name in self._fields}
        return self._collection.distinct(key, self._filter or None, session=self._session, **options)

    # Documents

    def __iter__(self) -> Iterator[DocumentType]:
        """All documents that have not been taken, of a tailable cursor until there is none for now. Greenlets may share
        the iterator, and an error does not end it.
        """
        return chain.from_iterable(runs(self))

    def __next__(self) -> DocumentType:
        """The next document; waits for it.

        :raises StopIteration: there is none; of a tailable cursor, for now.
        """
        cursor = self._cursor or self._opened()
        if cursor is None:
            raise StopIteration
        for document in cursor.documents:
            return document
        return cursor.next_document()

    next = __next__

    def to_list(self, length: int | None = None) -> list[DocumentType]:
        """The remaining documents as a list.

        :param length: how many at most; None (the default) is all. Of a tailable cursor, those that are there.
        :raises TypeError: `length` is no integer.
        :raises ValueError: it is less than 1.
        """
        return take_list(self, length)

    @overload
    def __getitem__(self, index: int) -> DocumentType: ...

    @overload
    def __getitem__(self, index: slice) -> Cursor[DocumentType]: ...

    def __getitem__(self, index: int | slice) -> DocumentType | Cursor[DocumentType]:
        """A slice sets skip and limit; an index returns that one document, by a query of its own."""
        self._check_unsent()
        if isinstance(index, slice):
            return self._slice(index)
        if not isinstance(index, int):
            raise TypeError(f"index {short(index)} cannot be applied to Cursor instances")
        if index < 0:
            raise IndexError("Cursor instances do not support negative indices")
        with self.clone() as clone:
            clone._flags &= ~(_TAILABLE | _AWAIT_DATA)  # the server refuses them for a single document
            for document in clone.skip(index + self._skip).limit(-1):
                return document
        raise IndexError("no such item for Cursor instance")

    def _slice(self, index: slice) -> Cursor[DocumentType]:
        if index.step is not None:
            raise IndexError("Cursor instances do not support slice steps")
        start, stop = index.start or 0, index.stop
        if start < 0 or (stop is not None and stop < start):
            raise IndexError(f"stop index must be greater than start index for slice {short(index)}")
        self._skip = start
        self._limit = 0 if stop is None else stop - start
        self._empty = stop == start  # where limit 0 would be all
        return self

    # Copies

    def clone(self) -> Cursor[DocumentType]:
        """A copy of the query that has not been sent, whatever this cursor has done. It has the same session."""
        return self._copied(copy.copy)

    def __copy__(self) -> Cursor[DocumentType]:
        return self._copied(copy.copy)

    def __deepcopy__(self, memo: object) -> Cursor[DocumentType]:
        return self._copied(partial(_deepcopied, memo={}))

    def _copied(self, copier: Callable[[Value], Value]) -> Cursor[DocumentType]:
        clone = self.__class__.__new__(self.__class__)
        clone.__dict__.update(self.__dict__)
        clone._cursor = clone._turn = None
        clone._closed = False
        clone._filter, clone._fields = copier(self._filter), copier(self._fields)
        return clone

    def rewind(self) -> Cursor[DocumentType]:
        """Close the cursor and make the query unsent again.

        :returns: this cursor.
        """
        self.close()
        if self._cursor is not None:
            self._cursor.drop()  # an iteration that is going on begins again, too
        self._cursor, self._closed = None, False
        return self

    # The state

    @property
    def collection(self) -> Collection[Value]:
        """The collection that is queried."""
        return self._collection

    @property
    def alive(self) -> bool:
        """Whether there may be more documents. True does not promise that there is one."""
        return not self._closed if self._cursor is None else self._cursor.alive

    @property
    def cursor_id(self) -> int | None:
        """The server's number for the cursor; None before the query is sent, 0 when it is done."""
        return None if self._cursor is None else self._cursor.lease.cursor_id

    @property
    def address(self) -> Address | None:
        """The address of the server that answered, as host and port; None before the query is sent."""
        return None if self._cursor is None else self._cursor.lease.address

    @property
    def retrieved(self) -> int:
        """How many documents have arrived so far, those included that have not been iterated over."""
        return 0 if self._cursor is None else self._cursor.retrieved

    @property
    def session(self) -> ClientSession | None:
        """The session given by the application, if any."""
        return self._session

    def close(self) -> None:
        """End the cursor, on the server too. It may be called again."""
        self._closed = True
        if self._cursor is not None:
            self._cursor.close()

    def __enter__(self) -> Cursor[DocumentType]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._cursor is not None:
            self._closed = True
            self._cursor.leave(error)


_NO_OPTIONS = (*(Cursor.__init__.__defaults__ or ())[1:], None, None)
"""What the options of a cursor are that is given a filter at the most, in the order of its parameters."""


class RawBatchCursor(Cursor[bytes]):
    """Iterates over batches of encoded documents, each ``bytes`` of documents one after the other; made by
    :meth:`Collection.find_raw_batches <gmongo.collection.Collection.find_raw_batches>`. It has the parameters and
    methods of :class:`Cursor`, but takes no index or slice.
    """

    _raw = True

    def __getitem__(self, index: object) -> NoReturn:
        raise InvalidOperation("Cannot call __getitem__ on RawBatchCursor")


def _integer(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {short(value)}")
    return value


def _natural(name: str, value: object) -> int:
    number = _integer(name, value)
    if number < 0:
        raise ValueError(f"{name} must be >= 0, not {number}")
    return int(number)


def _bound(name: str, spec: object) -> Document:
    try:
        if isinstance(spec, (list, tuple, Mapping)):
            return dict(spec)
    except (TypeError, ValueError):  # what it holds is no pair
        pass
    raise TypeError(f"{name} must be a mapping or a list of (field, value) pairs, not {short(spec)}")


def _deepcopied(value: Value, memo: dict[int, Value]) -> Value:
    """A deep copy in which regular expressions, which cannot be copied by every Python, stay the same.

    :param memo: the copies of mappings and lists by the identity of the original, since a value may refer to itself.
    """
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, Mapping):
        copied = memo[id(value)] = SON() if isinstance(value, SON) else {}
        copied.update((key, _deepcopied(item, memo)) for key, item in value.items())
        return copied
    if isinstance(value, list):
        items = memo[id(value)] = []
        items.extend(_deepcopied(item, memo) for item in value)
        return items
    return value if isinstance(value, re.Pattern) else copy.deepcopy(value)
