"""A database of a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions
from bson.dbref import DBRef
from bson.timestamp import Timestamp

from gmongo._namespace import Defaults
from gmongo.change_stream import DatabaseChangeStream
from gmongo.client_session import ClientSession
from gmongo.cmap.shape import DOCUMENT, TEXT, TEXT_OR_LIST
from gmongo.collation import Collation
from gmongo.collection import Collection, aggregate_cursor
from gmongo.command_cursor import CommandCursor
from gmongo.errors import (
    CollectionInvalid,
    InvalidName,
    NotPrimaryError,
    OperationFailure,
)
from gmongo.execution.classify import is_namespace_missing
from gmongo.execution.operation import required
from gmongo.execution.sessions import checked_session
from gmongo.operations.models import checked_mapping
from gmongo.operations.run_command import CursorCommand, RunCommand, RunCursorCommand, WriteCommand
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import Primary, _ReadPreference
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from gmongo.mongo_client import MongoClient

__all__ = ["Database"]

DocumentType = TypeVar("DocumentType", bound=Mapping[str, Any])

_FORBIDDEN = frozenset(' .$/\\\x00"')
_PRIMARY = Primary()
_CONCERNS = {"read_concern": "readConcern", "write_concern": "writeConcern"}


class Database(Defaults, Generic[DocumentType]):
    """A database, by attribute or item of a client: ``client.shop``, ``client["shop"]``.

    :param client: of the deployment.
    :param name: of the database.
    :param codec_options: how documents are encoded and decoded; this and the next three default to the client's.
    :param read_preference: which servers reads go to.
    :param write_concern: what acknowledgement writes ask for.
    :param read_concern: what isolation reads ask for.
    :raises InvalidName: the name has a character that is not allowed.
    """

    def __init__(
        self,
        client: MongoClient[Any],
        name: str,
        codec_options: CodecOptions[Any] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
    ) -> None:
        super().__init__(*client._defaults(codec_options, read_preference, write_concern, read_concern))
        if not isinstance(name, str):
            raise TypeError(f"the name of a database must be a string, not {short(name)}")
        if name != "$external":
            _check_name(name)
        self._client = client
        self._name = name

    @property
    def client(self) -> MongoClient[Any]:
        """The client it was made with."""
        return self._client

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def with_options(
        self,
        codec_options: CodecOptions[Any] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
    ) -> Database[Any]:
        """The same database with other options; those that are None stay."""
        chosen = self._defaults(codec_options, read_preference, write_concern, read_concern)
        return Database(self._client, self._name, *chosen)

    # Collections

    def get_collection(
        self,
        name: str,
        codec_options: CodecOptions[Any] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
    ) -> Collection[Any]:
        """A collection. Options that are None are the database's."""
        return Collection(
            self,
            name,
            codec_options=codec_options,
            read_preference=read_preference,
            write_concern=write_concern,
            read_concern=read_concern,
        )

    def __getitem__(self, name: str) -> Collection[Any]:
        return Collection(self, name)

    def __getattr__(self, name: str) -> Collection[Any]:
        if name.startswith("_"):
            raise AttributeError(
                f"Database has no attribute {name!r}. To access the {name} collection, use database[{name!r}]."
            )
        return self[name]

    def create_collection(
        self,
        name: str,
        codec_options: CodecOptions[Any] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        session: ClientSession | None = None,
        check_exists: bool | None = True,
        **kwargs: Any,
    ) -> Collection[Any]:
        """Create a collection, and return it.

        :param check_exists: look first whether it is there; not in a transaction, where servers refuse that.
        :param kwargs: fields of the ``create`` command, such as ``capped``, ``size``, ``validator``.
        :raises CollectionInvalid: it exists already.
        """
        in_transaction = session is not None and checked_session(session).in_transaction
        if check_exists and not in_transaction and name in self.list_collection_names(session, {"name": name}):
            raise CollectionInvalid(f"collection {name} already exists")
        return Collection(
            self, name, True, codec_options, read_preference, write_concern, read_concern, session, **kwargs
        )

    def drop_collection(
        self,
        name_or_collection: str | Collection[Any],
        session: ClientSession | None = None,
        comment: Any = None,
        encrypted_fields: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Drop a collection, if it exists.

        :raises TypeError: `name_or_collection` is neither a name nor a collection.
        """
        name = name_or_collection.name if isinstance(name_or_collection, Collection) else name_or_collection
        if not isinstance(name, str):
            raise TypeError(f"name_or_collection must be a string or a Collection, not {short(name_or_collection)}")
        if encrypted_fields is not None:
            checked_mapping("encrypted_fields", encrypted_fields)
        command: dict[str, Any] = {"drop": name}
        if comment is not None:
            command["comment"] = comment
        operation = WriteCommand(self._name, command, self._codec_options, self._write_concern.document or None)
        try:
            return self._client._executor.run(operation, session)
        except OperationFailure as error:
            if not is_namespace_missing(error):
                raise
            return dict(error.details or {})

    def list_collections(
        self,
        session: ClientSession | None = None,
        filter: Mapping[str, Any] | None = None,
        comment: Any = None,
        **kwargs: Any,
    ) -> CommandCursor[dict[str, Any]]:
        """A cursor over descriptions of the collections.

        :param filter: which ones.
        :param kwargs: further fields of the command, such as ``nameOnly``.
        """
        command: dict[str, Any] = {"listCollections": 1, "cursor": {}, **kwargs}
        if filter is not None:
            command["filter"] = checked_mapping("filter", filter)
        if comment is not None:
            command["comment"] = comment
        operation = CursorCommand(self._name, command, self._codec_options, decoded_as=DEFAULT_CODEC_OPTIONS)
        return CommandCursor._run(self["$cmd.listCollections"], operation, session, comment=comment)

    def list_collection_names(
        self,
        session: ClientSession | None = None,
        filter: Mapping[str, Any] | None = None,
        comment: Any = None,
        **kwargs: Any,
    ) -> list[str]:
        """The names of the collections."""
        if not filter or (len(filter) == 1 and "name" in filter):
            kwargs["nameOnly"] = True
        return [required(each, "name", TEXT) for each in self.list_collections(session, filter, comment, **kwargs)]

    def validate_collection(
        self,
        name_or_collection: str | Collection[Any],
        scandata: bool = False,
        full: bool = False,
        session: ClientSession | None = None,
        background: bool | None = None,
        comment: Any = None,
    ) -> dict[str, Any]:
        """Have the server check a collection.

        :raises CollectionInvalid: it is not valid.
        """
        name = name_or_collection.name if isinstance(name_or_collection, Collection) else name_or_collection
        if not isinstance(name, str):
            raise TypeError(f"name_or_collection must be a string or a Collection, not {short(name_or_collection)}")
        command: dict[str, Any] = {"validate": name, "scandata": scandata, "full": full}
        if comment is not None:
            command["comment"] = comment
        if background is not None:
            command["background"] = background
        result: dict[str, Any] = self._client._executor.run(RunCommand(self._name, command), session)
        shards = required(result, "raw", DOCUMENT) if "raw" in result else {"": result}
        for name_of_shard in shards:
            shard = required(shards, name_of_shard, DOCUMENT)
            found = required(shard, "result", TEXT_OR_LIST) if "result" in shard else ""
            if "exception" in found or "corrupt" in found:
                raise CollectionInvalid(f"{name} invalid: {found}")
            if not shard.get("valid", True):
                raise CollectionInvalid(f"{name} invalid: {shard!r}")
        return result

    # Commands

    def command(
        self,
        command: str | Mapping[str, Any],
        value: Any = 1,
        check: bool = True,
        allowable_errors: Sequence[str | int] | None = None,
        read_preference: _ReadPreference | None = None,
        codec_options: CodecOptions[Any] | None = None,
        session: ClientSession | None = None,
        comment: Any = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Run a command and return the reply.

        :param command: its name, or the whole document.
        :param value: of the first field, if `command` is a name.
        :param check: raise an error if the reply is one.
        :param allowable_errors: codes or messages of errors that are returned rather than raised.
        :param read_preference: which servers suit; the primary by default, whatever the database's is.
        :param kwargs: further fields of the command.
        :raises OperationFailure: the reply is an error.
        """
        document = _command_document(command, value, comment, kwargs)
        options = DEFAULT_CODEC_OPTIONS if codec_options is None else codec_options
        operation = RunCommand(self._name, document, _selector(read_preference), options)
        operation.selector_is_explicit = read_preference is not None
        try:
            return self._client._executor.run(operation, session)
        except (OperationFailure, NotPrimaryError) as error:
            details = error.details
            if isinstance(details, dict) and (not check or _is_allowed(details, allowable_errors)):
                return details
            raise

    def cursor_command(
        self,
        command: str | Mapping[str, Any],
        value: Any = 1,
        read_preference: _ReadPreference | None = None,
        codec_options: CodecOptions[Any] | None = None,
        session: ClientSession | None = None,
        comment: Any = None,
        max_await_time_ms: int | None = None,
        **kwargs: Any,
    ) -> CommandCursor[Any]:
        """Run a command whose reply is a cursor, and return the cursor. The parameters are those of :meth:`command`.

        :param comment: of the commands that get further batches.
        :param max_await_time_ms: how long the server may wait for a further batch, in milliseconds.
        """
        if max_await_time_ms is not None and not isinstance(max_await_time_ms, int):
            raise TypeError(f"max_await_time_ms must be an integer, not {short(max_await_time_ms)}")
        document = _command_document(command, value, None, kwargs)
        options = self._codec_options if codec_options is None else codec_options
        operation = RunCursorCommand(self._name, document, options, _selector(read_preference))
        collection: Collection[Any] = Collection(self, "$cmd", codec_options=options)
        return CommandCursor._run(collection, operation, session, max_await_time_ms=max_await_time_ms, comment=comment)

    def aggregate(
        self, pipeline: Sequence[Mapping[str, Any]], session: ClientSession | None = None, **kwargs: Any
    ) -> CommandCursor[Any]:
        """Run a pipeline that begins without a collection, such as ``$currentOp`` or ``$documents``.

        :param kwargs: further fields of the command, and ``batchSize``.
        """
        collection: Collection[Any] = Collection(
            self, "$cmd.aggregate", read_preference=self._read_preference, write_concern=self._write_concern
        )
        return aggregate_cursor(CommandCursor, collection, 1, pipeline, session, kwargs)

    def watch(
        self,
        pipeline: Sequence[Mapping[str, Any]] | None = None,
        full_document: str | None = None,
        resume_after: Mapping[str, Any] | None = None,
        max_await_time_ms: int | None = None,
        batch_size: int | None = None,
        collation: Mapping[str, Any] | Collation | None = None,
        start_at_operation_time: Timestamp | None = None,
        session: ClientSession | None = None,
        start_after: Mapping[str, Any] | None = None,
        comment: Any = None,
        full_document_before_change: str | None = None,
        show_expanded_events: bool | None = None,
    ) -> DatabaseChangeStream[DocumentType]:
        """Watch the changes of all collections of the database.

        The parameters are those of :meth:`gmongo.collection.Collection.watch`.
        """
        return DatabaseChangeStream(
            self,
            pipeline,
            full_document,
            resume_after,
            max_await_time_ms,
            batch_size,
            collation,
            start_at_operation_time,
            session,
            start_after,
            comment,
            full_document_before_change,
            show_expanded_events,
        )._opened()

    def dereference(
        self, dbref: DBRef, session: ClientSession | None = None, comment: Any = None, **kwargs: Any
    ) -> Any:
        """The document that a reference points to, or None.

        :raises ValueError: the reference points into another database.
        """
        if not isinstance(dbref, DBRef):
            raise TypeError(f"cannot dereference a {type(dbref).__name__}")
        if dbref.database is not None and dbref.database != self._name:
            raise ValueError(f"reference points into database {dbref.database!r}, this is {self._name!r}")
        return self[dbref.collection].find_one({"_id": dbref.id}, session=session, comment=comment, **kwargs)

    # Being an object

    def __next__(self) -> NoReturn:
        raise TypeError("'Database' object is not iterable")

    next = __next__
    __iter__ = None

    def __bool__(self) -> NoReturn:
        raise NotImplementedError("compare with None instead: database is not None")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"'Database' object is not callable; {short(self._name)} is no method of MongoClient")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Database):
            return NotImplemented
        return self._client == other._client and self._name == other._name

    def __hash__(self) -> int:
        return hash((self._client, self._name))

    def __repr__(self) -> str:
        return f"Database({self._client!r}, {self._name!r})"


def _selector(read_preference: _ReadPreference | None) -> _ReadPreference:
    """Which servers suit a command: the primary, whatever the database's read preference is."""
    if read_preference is not None and not isinstance(read_preference, _ReadPreference):
        raise TypeError(f"read_preference must be a read preference, not {short(read_preference)}")
    return _PRIMARY if read_preference is None else read_preference


def _check_name(name: str) -> None:
    if not name:
        raise InvalidName("the name of a database must not be empty")
    for character in name:
        if character in _FORBIDDEN:
            raise InvalidName(f"the name of a database must not contain {character!r}, was {short(name)}")


def _command_document(
    command: str | Mapping[str, Any], value: Any, comment: Any, fields: Mapping[str, Any]
) -> dict[str, Any]:
    if isinstance(command, str):
        document = {command: value}
    elif isinstance(command, Mapping):
        document = dict(command)
    else:
        raise TypeError(f"command must be a string or a mapping, not {short(command)}")
    if comment is not None:
        document["comment"] = comment
    for name, value in fields.items():
        # By PyMongo's names, these two are options of a command, too.
        if isinstance(value, (ReadConcern, WriteConcern)):
            document[_CONCERNS.get(name, name)] = value.document
        else:
            document[name] = value
    if not document:
        raise ValueError("command must name the command in its first field, was an empty document")
    return document


def _is_allowed(reply: Mapping[str, Any], allowable_errors: Sequence[str | int] | None) -> bool:
    allowed = allowable_errors or ()
    return reply.get("errmsg") in allowed or reply.get("code") in allowed
