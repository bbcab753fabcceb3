"""The class Database, whose methods are the operations on one database."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar, overload

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions
from bson.dbref import DBRef

from gmongo._documents import Document, DocumentDict, Value, plain, without_none
from gmongo._encryption.collections import INDEX_KEYS, create_state_collections, encrypted_fields_of, state_collections
from gmongo._inherited_options import InheritedOptions, executor_of, options_of
from gmongo._parameter_docs import SHARED_PARAMETERS, describes_parameters, read_only
from gmongo._traceback_scrub import clears_locals
from gmongo._truncated_repr import short
from gmongo.change_stream import DatabaseChangeStream, _Watched
from gmongo.client_session import ClientSession
from gmongo.collection import Collection, aggregate_cursor
from gmongo.command_cursor import CommandCursor
from gmongo.cursor import Cursor
from gmongo.errors import CollectionInvalid, InvalidName, NotPrimaryError, OperationFailure
from gmongo.execution.deadline import checked_timeout
from gmongo.execution.executor import Executor
from gmongo.execution.operation import OperationContext, required_field
from gmongo.execution.reply_errors import is_namespace_missing
from gmongo.execution.sessions import checked_session
from gmongo.operations.models import checked_mapping
from gmongo.operations.run_command import CursorCommand, RunCommand, RunCursorCommand, WriteCommand
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import Primary, _ReadPreference
from gmongo.wire.reply_schema import DOCUMENT, TEXT, TEXT_OR_LIST
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from gmongo.mongo_client import MongoClient

__all__ = ["Database"]

DocumentType = TypeVar("DocumentType", bound=Document)
OtherType = TypeVar("OtherType", bound=Document)
if TYPE_CHECKING:
    ReplyType = TypeVarWithDefault("ReplyType", bound=Document, default=DocumentDict)
else:
    ReplyType = OtherType

_FORBIDDEN_CHARACTERS = frozenset(' .$/\\\x00"')
_PRIMARY = Primary()
_FIELDS_OF_CONCERNS = {"read_concern": "readConcern", "write_concern": "writeConcern"}


# The decorator adds descriptions of parameters from SHARED_PARAMETERS and Cursor to the docstrings of the methods.
@describes_parameters(SHARED_PARAMETERS, Cursor)
class Database(InheritedOptions, _Watched[DatabaseChangeStream[DocumentType]], Generic[DocumentType]):
    """A database of a client. ``client.shop`` and ``client["shop"]`` return the database.

    The constructor sends no command. :class:`~gmongo.collection.Collection` lists the exceptions of every operation.
    Specifications: Collection Management, Enumerating Collections, Run Command, CRUD API (:meth:`aggregate`), DBRef.

    :param client: the client of the database. The client may belong to a library such as Ming, if the client's class or
        a base class has the name ``MongoClient``. Operations of gmongo do not run on such a client.
    :param name: the name of the database.
    :param timeout_ms: the time limit of each operation of the database and its collections, in milliseconds; 0 means no
        limit, None (the default) inherits the limit. :func:`gmongo.timeout` overrides `timeout_ms`.
    :raises TypeError: `client` is not a client, `name` is not a string, or an option's type is wrong.
    :raises InvalidName: `name` is empty, or contains a character that is not allowed.
    """

    _stream_class: type[DatabaseChangeStream[DocumentType]] = DatabaseChangeStream

    def _stream_target(self) -> tuple[Collection[Value], str | int]:
        return self["$cmd.aggregate"], 1

    def __init__(
        self,
        client: MongoClient[DocumentType],
        name: str,
        codec_options: CodecOptions[Value] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        overrides = (codec_options, read_preference, write_concern, read_concern)
        super().__init__(*options_of(client, "MongoClient", overrides))
        if not isinstance(name, str):
            raise TypeError(f"the name of a database must be a string, not {short(name)}")
        if name != "$external":
            _check_name(name)
        self._client = client
        self._name = name
        self._timeout_ms = timeout_ms
        self._executor: Executor = executor_of(client).with_timeout(checked_timeout("timeout_ms", timeout_ms))

    @property
    def _context(self) -> OperationContext:
        return OperationContext(self._name, "", self._codec_options, write_concern=self._write_concern.document)

    client: MongoClient[DocumentType] = read_only("_client", "The client to which the database belongs.")
    name: str = read_only("_name", "The name of the database, such as ``shop``.")

    @overload
    def with_options(
        self,
        codec_options: None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[DocumentType]: ...

    @overload
    def with_options(
        self,
        codec_options: CodecOptions[OtherType],
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[OtherType]: ...

    def with_options(
        self,
        codec_options: CodecOptions[Value] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[Value]:
        """Return a copy of this database object with the given options. An option that is None does not change.

        :param timeout_ms: the time limit of each operation in milliseconds; 0 means no limit, None inherits the limit.
        :raises TypeError: an option has the wrong type.
        """
        options = options_of(self, "Database", (codec_options, read_preference, write_concern, read_concern))
        return Database(self._client, self._name, *options, self._timeout_ms if timeout_ms is None else timeout_ms)

    @overload
    def get_collection(
        self,
        name: str,
        codec_options: None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Collection[DocumentType]: ...

    @overload
    def get_collection(
        self,
        name: str,
        codec_options: CodecOptions[OtherType],
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Collection[OtherType]: ...

    def get_collection(
        self,
        name: str,
        codec_options: CodecOptions[Value] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Collection[Value]:
        """Return a collection with the given options. For each option that is None, use the option of this database.

        ::

            database.get_collection("orders", write_concern=WriteConcern("majority"))

        :param name: the name of the collection.
        :param timeout_ms: the time limit of each operation in milliseconds; 0 means no limit, None inherits the limit.
        :raises TypeError: `name` is not a string, or an option has the wrong type.
        :raises InvalidName: `name` is not allowed for a collection.
        """
        options = (codec_options, read_preference, write_concern, read_concern)
        return Collection(self, name, False, *options, timeout_ms=timeout_ms)

    def __getitem__(self, name: str) -> Collection[DocumentType]:
        return Collection(self, name)

    def __getattr__(self, name: str) -> Collection[DocumentType]:
        if name.startswith("_"):
            raise AttributeError(
                f"Database has no attribute {name!r}. To access the {name} collection, use database[{name!r}]."
            )
        return self[name]

    @overload
    def create_collection(
        self,
        name: str,
        codec_options: None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        session: ClientSession | None = None,
        check_exists: bool | None = True,
        **kwargs: Value,
    ) -> Collection[DocumentType]: ...

    @overload
    def create_collection(
        self,
        name: str,
        codec_options: CodecOptions[OtherType],
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        session: ClientSession | None = None,
        check_exists: bool | None = True,
        **kwargs: Value,
    ) -> Collection[OtherType]: ...

    def create_collection(
        self,
        name: str,
        codec_options: CodecOptions[Value] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        session: ClientSession | None = None,
        check_exists: bool | None = True,
        **kwargs: Value,
    ) -> Collection[Value]:
        """Create and return a collection. Without this call, the first write creates the collection.

            >>> capped = database.create_collection("events", capped=True, size=100_000)
            >>> capped.name
            'events'

        :param name: the name of the collection.
        :param check_exists: True (the default) first checks that the collection does not exist,
            except in a transaction, because servers reject ``listCollections`` in transactions.
        :param kwargs: fields of the ``create`` command, such as ``capped``, ``size``, ``validator``, ``collation``,
            ``viewOn``, ``expireAfterSeconds``, ``timeseries`` (MongoDB 5.0) and ``clusteredIndex`` (MongoDB 5.3).
        :raises CollectionInvalid: the collection exists, and `check_exists` is True.
        :raises OperationFailure: the server rejected the command, for example because the collection exists.
        :raises InvalidName: `name` is not allowed for a collection.
        """
        if check_exists and not (session is not None and checked_session(session).in_transaction):
            descriptions = self.list_collections(session, {"name": name}, nameOnly=True)
            if any(each.get("name") == name for each in descriptions):
                raise CollectionInvalid(f"collection {name} already exists")
        encrypted_fields = kwargs.get("encryptedFields") or encrypted_fields_of(self, name, session, query_server=False)
        if encrypted_fields:
            checked_mapping("encryptedFields", encrypted_fields)
            create_state_collections(self, name, encrypted_fields, session)
            kwargs["encryptedFields"] = encrypted_fields
        collection: Collection[Value] = Collection(
            self, name, True, codec_options, read_preference, write_concern, read_concern, session, **kwargs
        )
        if encrypted_fields:
            collection.create_index(INDEX_KEYS, session=session)
        return collection

    def drop_collection(
        self,
        name_or_collection: str | Collection[Value],
        session: ClientSession | None = None,
        comment: Value = None,
        encrypted_fields: Document | None = None,
    ) -> DocumentDict:
        """Drop a collection and its indexes. Do nothing if the collection does not exist.

        :returns: the server's reply.
        """
        name = _get_collection_name(name_or_collection)
        if encrypted_fields is not None:
            checked_mapping("encrypted_fields", encrypted_fields)
        else:
            encrypted_fields = encrypted_fields_of(self, name, session, query_server=True)
        if encrypted_fields:
            for each in state_collections(name, encrypted_fields):
                self._drop_one(each, session, comment)
        return self._drop_one(name, session, comment)

    def _drop_one(self, name: str, session: ClientSession | None, comment: Value) -> DocumentDict:
        command = without_none({"drop": name}, comment=comment)
        try:
            return self._executor.run(WriteCommand(self._context, command), session)
        except OperationFailure as error:
            if not is_namespace_missing(error):
                raise
            return dict(error.details or {})

    def list_collections(
        self,
        session: ClientSession | None = None,
        filter: Document | None = None,
        comment: Value = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        **kwargs: Value,
    ) -> CommandCursor[DocumentDict]:
        """Return a cursor over descriptions of the database's collections.

            >>> [each["name"] for each in database.list_collections(filter={"type": "collection"})]
            ['notes']

        :param filter: a query for the descriptions; None (the default) matches every description.
        :param kwargs: further fields of the command, such as ``nameOnly=True`` and ``authorizedCollections=True``.
        :returns: a cursor over documents with the fields ``name``, ``type``, ``options`` and ``info``.
        """
        filter = None if filter is None else checked_mapping("filter", filter)
        command = without_none({"listCollections": 1, "cursor": {}, **kwargs}, filter=filter, comment=comment)
        operation = CursorCommand(self._context, command, DEFAULT_CODEC_OPTIONS)
        collection = self["$cmd.listCollections"]
        return CommandCursor._run(collection, operation, session, 0, None, comment, timeout_ms, timeout_mode)

    def list_collection_names(
        self,
        session: ClientSession | None = None,
        filter: Document | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> list[str]:
        """Return the names of the database's collections.

            >>> database.list_collection_names()
            ['notes']

        :param filter: a query as for :meth:`list_collections`; None (the default) matches all collections.
        :param kwargs: further fields of the ``listCollections`` command, such as ``authorizedCollections=True``.
        :returns: a list of the names, in no defined order.
        """
        if filter is not None:
            checked_mapping("filter", filter)
        if not filter or (len(filter) == 1 and "name" in filter):
            kwargs["nameOnly"] = True
        collections = self.list_collections(session, filter, comment, **kwargs)
        return [required_field(each, "name", TEXT) for each in collections]

    def validate_collection(
        self,
        name_or_collection: str | Collection[Value],
        scandata: bool = False,
        full: bool = False,
        session: ClientSession | None = None,
        background: bool | None = None,
        comment: Value = None,
    ) -> DocumentDict:
        """Validate the data and indexes of a collection. Unless `background` is True, the server locks the collection.

        :param scandata: True validates all documents; False by default.
        :param full: True runs a more thorough and slower validation; False by default.
        :param background: True allows writes to the collection during the validation (MongoDB 4.4); None by default.
        :returns: the server's reply.
        :raises CollectionInvalid: the server reports that the collection is not valid.
        """
        name = _get_collection_name(name_or_collection)
        command: DocumentDict = {"validate": name, "scandata": scandata, "full": full}
        command = without_none(command, comment=comment, background=background)
        result: DocumentDict = self._executor.run(RunCommand(OperationContext(self._name), command), session)
        replies_by_shard = required_field(result, "raw", DOCUMENT) if "raw" in result else {"": result}
        for name_of_shard in replies_by_shard:
            reply = required_field(replies_by_shard, name_of_shard, DOCUMENT)
            message = required_field(reply, "result", TEXT_OR_LIST) if "result" in reply else ""
            if "exception" in message or "corrupt" in message:
                raise CollectionInvalid(f"{name} invalid: {message}")
            if not reply.get("valid", True):
                raise CollectionInvalid(f"{name} invalid: {reply!r}")
        return result

    @clears_locals
    def command(
        self,
        command: str | Document,
        value: Value = 1,
        check: bool = True,
        allowable_errors: Sequence[str | int] | None = None,
        read_preference: _ReadPreference | None = None,
        codec_options: CodecOptions[ReplyType] | None = None,
        session: ClientSession | None = None,
        comment: Value = None,
        **kwargs: Value,
    ) -> ReplyType:
        """Run a command, and return the reply.

            >>> database.command("ping")["ok"]
            1.0

        The method applies neither the read preference nor the read concern nor the write concern of
        the database. The driver retries the command only after overload errors.

        :param check: True (the default) raises an exception for an error; False returns the reply.
        :param allowable_errors: error codes and messages for which the method returns the reply; None by default.
        :param read_preference: the command's read preference; None (the default) selects the primary.
        :param codec_options: the options for encoding and decoding; None (the default) uses the defaults of ``bson``.
        :param kwargs: further fields of the command. A field may be a ``ReadConcern`` or a ``WriteConcern``.
        :raises TypeError: `command` is neither a string nor a mapping.
        :raises ValueError: `command` is an empty document.
        :raises OperationFailure: the reply is an error, `check` is True, and the error is not in `allowable_errors`.
        """
        if allowable_errors is not None and (
            isinstance(allowable_errors, (str, bytes)) or not isinstance(allowable_errors, Container)
        ):
            raise TypeError(f"allowable_errors must be a list of codes and messages, not {short(allowable_errors)}")
        document = _build_command(command, value, comment, kwargs)
        options = DEFAULT_CODEC_OPTIONS if codec_options is None else codec_options
        context = OperationContext(self._name, codec_options=options, selector=_checked_selector(read_preference))
        operation = RunCommand(context, document, selector_is_explicit=read_preference is not None)
        try:
            return self._executor.run(operation, session)
        except (OperationFailure, NotPrimaryError) as error:
            reply: Value = error.details
            if isinstance(error.details, Mapping) and (not check or _is_allowed(error.details, allowable_errors)):
                return reply
            raise

    @overload
    def cursor_command(
        self,
        command: str | Document,
        value: Value = 1,
        read_preference: _ReadPreference | None = None,
        codec_options: None = None,
        session: ClientSession | None = None,
        comment: Value = None,
        max_await_time_ms: int | None = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        **kwargs: Value,
    ) -> CommandCursor[DocumentType]: ...

    @overload
    def cursor_command(
        self,
        command: str | Document,
        value: Value = 1,
        read_preference: _ReadPreference | None = None,
        codec_options: CodecOptions[OtherType] = ...,
        session: ClientSession | None = None,
        comment: Value = None,
        max_await_time_ms: int | None = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        **kwargs: Value,
    ) -> CommandCursor[OtherType]: ...

    def cursor_command(
        self,
        command: str | Document,
        value: Value = 1,
        read_preference: _ReadPreference | None = None,
        codec_options: CodecOptions[Value] | None = None,
        session: ClientSession | None = None,
        comment: Value = None,
        max_await_time_ms: int | None = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        **kwargs: Value,
    ) -> CommandCursor[Value]:
        """Run a command whose reply contains a cursor, and return the cursor.

            >>> database.cursor_command("find", "notes", filter={"tags": "b"}).to_list()
            [{'_id': 6, 'title': 'second', 'tags': ['a', 'b']}]

        :param read_preference: the command's read preference; None (the default) selects the primary.
        :param codec_options: the options for encoding and decoding; None (the default) uses the database's options.
        :param comment: a comment of the ``getMore`` commands: any BSON value (MongoDB 4.4); None by default.
        :param max_await_time_ms: the server's maximum wait for a document in milliseconds; None means 1,000 ms.
        :param kwargs: further fields of the command.
        :raises TypeError: `command` is neither a string nor a mapping.
        :raises ValueError: `command` is an empty document.
        :raises InvalidOperation: the reply contains no cursor.
        :raises OperationFailure: the reply is an error.
        """
        if max_await_time_ms is not None and not isinstance(max_await_time_ms, int):
            raise TypeError(f"max_await_time_ms must be an integer, not {short(max_await_time_ms)}")
        document = _build_command(command, value, None, kwargs)
        options = self._codec_options if codec_options is None else codec_options
        context = OperationContext(self._name, codec_options=options, selector=_checked_selector(read_preference))
        operation = RunCursorCommand(context, document, options)
        collection: Collection[Value] = Collection(self, "$cmd", codec_options=options)
        return CommandCursor._run(
            collection,
            operation,
            session,
            max_await_time_ms=max_await_time_ms,
            comment=comment,
            timeout_ms=timeout_ms,
            timeout_mode=timeout_mode,
            tailable=bool(document.get("tailable")),
            awaits=bool(document.get("awaitData")),
        )

    def aggregate(
        self,
        pipeline: Sequence[Document],
        session: ClientSession | None = None,
        timeout_ms: float | None = None,
        timeout_mode: str | None = None,
        **kwargs: Value,
    ) -> CommandCursor[DocumentType]:
        """Run an aggregation pipeline whose first stage reads no collection, and return a cursor over the result.

        Examples of the stage: ``$currentOp`` (only in the database ``admin``), ``$documents`` (MongoDB 5.1).

            >>> database.aggregate([{"$documents": [{"n": 1}, {"n": 2}]}, {"$match": {"n": 2}}]).to_list()
            [{'n': 2}]

        :param kwargs: the options of :meth:`.Collection.aggregate`, such as ``let`` and ``comment``.
        :raises TypeError: `pipeline` is not a list.
        :raises ConfigurationError: `kwargs` contains ``aggregate``, ``pipeline`` or ``explain``.
        """
        timeouts = (timeout_ms, timeout_mode)
        return aggregate_cursor(CommandCursor, self["$cmd.aggregate"], 1, pipeline, session, kwargs, timeouts=timeouts)

    def dereference(
        self, dbref: DBRef, session: ClientSession | None = None, comment: Value = None, **kwargs: Value
    ) -> DocumentType | None:
        """Return the document to which a database reference refers, or None if the document does not exist.

        :param dbref: the database reference.
        :param kwargs: further parameters of :meth:`Collection.find_one <gmongo.collection.Collection.find_one>`.
        :raises TypeError: `dbref` is not a :class:`~bson.dbref.DBRef`.
        :raises ValueError: the reference names another database.
        """
        if not isinstance(dbref, DBRef):
            raise TypeError(f"dbref must be a DBRef, not {type(dbref).__name__}")
        if dbref.database is not None and dbref.database != self._name:
            raise ValueError(
                f"the reference refers to the database {dbref.database!r}, but this database is {self._name!r}"
            )
        return self[dbref.collection].find_one({"_id": dbref.id}, session=session, comment=comment, **kwargs)

    def __bool__(self) -> NoReturn:
        raise NotImplementedError("compare with None instead: database is not None")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Database):
            return NotImplemented
        return self._client == other._client and self._name == other._name

    def __hash__(self) -> int:
        return hash((self._client, self._name))

    def __repr__(self) -> str:
        return f"Database({self._client!r}, {self._name!r})"


def _get_collection_name(name_or_collection: object) -> str:
    name = name_or_collection.name if isinstance(name_or_collection, Collection) else name_or_collection
    if not isinstance(name, str):
        raise TypeError(f"name_or_collection must be a string or a Collection, not {short(name_or_collection)}")
    return name


def _checked_selector(read_preference: _ReadPreference | None) -> _ReadPreference:
    if read_preference is not None and not isinstance(read_preference, _ReadPreference):
        raise TypeError(f"read_preference must be a read preference, not {short(read_preference)}")
    return _PRIMARY if read_preference is None else read_preference


def _check_name(name: str) -> None:
    if not name:
        raise InvalidName("the name of a database must not be empty")
    for character in name:
        if character in _FORBIDDEN_CHARACTERS:
            raise InvalidName(f"the name of a database must not contain {character!r}, was {short(name)}")


def _build_command(command: str | Document, value: Value, comment: Value, fields: Document) -> DocumentDict:
    if isinstance(command, str):
        document = {command: value}
    elif isinstance(command, Mapping):
        document = dict(command) if isinstance(command, dict) else plain(command)
    else:
        raise TypeError(f"command must be a string or a mapping, not {short(command)}")
    if comment is not None:
        document["comment"] = comment
    for name, value in fields.items():
        # As in PyMongo, the keywords read_concern and write_concern set the fields readConcern and writeConcern.
        if isinstance(value, (ReadConcern, WriteConcern)):
            if value.document:  # an empty read concern or write concern means the server's default
                document[_FIELDS_OF_CONCERNS.get(name, name)] = value.document
        else:
            document[name] = value
    if not document:
        raise ValueError("command must name the command in its first field, was an empty document")
    return document


def _is_allowed(reply: Document, allowable_errors: Sequence[str | int] | None) -> bool:
    allowed = allowable_errors or ()
    return reply.get("errmsg") in allowed or reply.get("code") in allowed
