"""The client: the door to a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import repr as short
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions, TypeRegistry
from bson.errors import BSONError
from bson.timestamp import Timestamp
from gevent import Timeout

from gmongo._namespace import Defaults
from gmongo.change_stream import ClusterChangeStream
from gmongo.client_options import ClientOptions
from gmongo.client_session import ClientSession, SessionOptions, TransactionOptions
from gmongo.cmap.metadata import client_metadata
from gmongo.cmap.shape import DOCUMENTS, TEXT
from gmongo.collation import Collation
from gmongo.command_cursor import CommandCursor
from gmongo.database import Database
from gmongo.driver_info import DriverInfo
from gmongo.errors import ConfigurationError, InvalidOperation, PyMongoError
from gmongo.events.command import CommandEvents
from gmongo.execution.executor import Executor
from gmongo.execution.operation import required
from gmongo.execution.sessions import checked_session, in_transaction
from gmongo.operations.client_bulk import ClientBulk
from gmongo.operations.client_writes import Writes, checked_models
from gmongo.operations.end_sessions import EndSessions
from gmongo.operations.models import checked_flag, checked_let
from gmongo.operations.reaper import CursorReaper
from gmongo.operations.run_command import ReadCommand, WriteCommand
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import PrimaryPreferred, _ReadPreference
from gmongo.results import ClientBulkWriteResult
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.topology import Topology
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.server_type import SERVER_TYPE
from gmongo.topology_type import TOPOLOGY_TYPE
from gmongo.wire.address import Address
from gmongo.write_concern import WriteConcern

__all__ = ["MongoClient"]

_NOT_SHOWN = frozenset(
    {
        "authmechanismproperties",
        "connect",
        "document_class",
        "password",
        "proxypassword",
        "proxyusername",
        "tlscertificatekeyfilepassword",
        "tz_aware",
        "username",
    }
)
_REPLICA_SETS = (TOPOLOGY_TYPE.ReplicaSetNoPrimary, TOPOLOGY_TYPE.ReplicaSetWithPrimary)
# Closing a client waits no longer than this for a server, in seconds.
_FAREWELL = 1.0

DocumentType = TypeVar("DocumentType", bound=Mapping[str, Any])


class MongoClient(Defaults, Generic[DocumentType]):
    """A client for a MongoDB deployment, to be shared by all greenlets of a process.

    It looks for its servers from the moment it is made, in greenlets that never keep the process or ``hub.join()``
    waiting, and belongs to the native thread it is made in (with ``connect=False``, to the thread of its first use).
    It may be made before a fork: the child starts afresh by itself.

    :param host: a host name, an IP address, a path of a Unix domain socket, a ``mongodb://`` or ``mongodb+srv://``
        URI, or a list of these. ``localhost`` by default.
    :param port: of hosts given without one; 27017 by default.
    :param document_class: the class of documents that queries return; ``dict`` by default.
    :param tz_aware: whether datetimes are aware of their time zone (UTC).
    :param connect: look for servers at once (the default), or with the first operation.
    :param type_registry: how types of the application's are encoded and decoded.
    :param kwargs: any option of the URI, by the same name, and those that only a keyword can carry. Keywords override
        the URI.
    :raises ConfigurationError: an option is unknown, out of range, or contradicts another; the message names it.
    :raises InvalidURI: the URI could not be parsed.
    """

    HOST = "localhost"
    PORT = 27017
    _wrappers: tuple[DriverInfo, ...] = ()

    def __init__(
        self,
        host: str | Sequence[str] | None = None,
        port: int | None = None,
        document_class: type[DocumentType] | None = None,
        tz_aware: bool | None = None,
        connect: bool | None = None,
        type_registry: TypeRegistry | None = None,
        **kwargs: Any,
    ) -> None:
        named = {
            "document_class": document_class,
            "tz_aware": tz_aware,
            "connect": connect,
            "type_registry": type_registry,
        }
        self._given = {"host": host, "port": port, **kwargs}
        keywords = {**kwargs, **{name: value for name, value in named.items() if value is not None}}
        self._client_options = ClientOptions(
            self.HOST if host is None else host, self.PORT if port is None else port, keywords
        )
        self._client_options.refuse_what_is_missing()
        chosen = self._client_options
        codec_options = chosen.codec_options
        if codec_options == DEFAULT_CODEC_OPTIONS:
            codec_options = DEFAULT_CODEC_OPTIONS  # the very object, which is quickly recognised
        super().__init__(codec_options, chosen.read_preference, chosen.write_concern, chosen.read_concern)
        self._topology = Topology(chosen.topology())
        self._executor = Executor(self._topology, chosen.execution(), CommandEvents(chosen.listeners.command))
        self._reaper = CursorReaper(self._executor)
        if chosen.connect:
            self._topology.open()

    # Databases

    def get_database(
        self,
        name: str | None = None,
        codec_options: CodecOptions[Any] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
    ) -> Database[Any]:
        """A database; the URI's if `name` is None. Options that are None are the client's.

        :raises ConfigurationError: there is neither a name nor a default database.
        """
        if name is None:
            name = self._default_database_name(None)
        return Database(self, name, codec_options, read_preference, write_concern, read_concern)

    def get_default_database(
        self,
        default: str | None = None,
        codec_options: CodecOptions[Any] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
    ) -> Database[Any]:
        """The database that the URI names, or `default`.

        :raises ConfigurationError: neither is there.
        """
        name = self._default_database_name(default)
        return Database(self, name, codec_options, read_preference, write_concern, read_concern)

    def _default_database_name(self, default: str | None) -> str:
        name = self._client_options.default_database or default
        if name is None:
            raise ConfigurationError("No default database name defined or provided.")
        return name

    def __getitem__(self, name: str) -> Database[Any]:
        return Database(self, name)

    def __getattr__(self, name: str) -> Database[Any]:
        if name.startswith("_"):
            raise AttributeError(
                f"MongoClient has no attribute {name!r}. To access the {name} database, use client[{name!r}]."
            )
        return self[name]

    def list_databases(
        self, session: ClientSession | None = None, comment: Any = None, **kwargs: Any
    ) -> CommandCursor[dict[str, Any]]:
        """A cursor over descriptions of the databases.

        :param kwargs: further fields of the command, such as ``filter`` and ``nameOnly``.
        """
        command = {"listDatabases": 1, **kwargs}
        if comment is not None:
            command["comment"] = comment
        reply = self._executor.run(ReadCommand("admin", command, codec_options=self._codec_options), session)
        return CommandCursor._over(self.admin["$cmd"], required(reply, "databases", DOCUMENTS), session)

    def list_database_names(self, session: ClientSession | None = None, comment: Any = None) -> list[str]:
        """The names of the databases."""
        return [required(each, "name", TEXT) for each in self.list_databases(session, comment, nameOnly=True)]

    def drop_database(
        self, name_or_database: str | Database[Any], session: ClientSession | None = None, comment: Any = None
    ) -> None:
        """Drop a database.

        :raises TypeError: `name_or_database` is neither a name nor a database.
        :raises InvalidName: no database can have that name.
        """
        database = name_or_database if isinstance(name_or_database, Database) else self[name_or_database]
        command: dict[str, Any] = {"dropDatabase": 1}
        if comment is not None:
            command["comment"] = comment
        concern = self._write_concern.document or None
        self._executor.run(WriteCommand(database.name, command, self._codec_options, concern), session)

    # Several collections at a time

    def bulk_write(
        self,
        models: Sequence[Any],
        session: ClientSession | None = None,
        ordered: bool = True,
        verbose_results: bool = False,
        bypass_document_validation: bool | None = None,
        comment: Any = None,
        let: Mapping[str, Any] | None = None,
        write_concern: WriteConcern | None = None,
    ) -> ClientBulkWriteResult:
        """Run many writes on any collections (MongoDB 8.0), in as few messages as they fit in.

        :param models: a list of ``InsertOne``, ``UpdateOne``, ``DeleteOne``, …, each with its `namespace`.
        :param ordered: one after the other, stopping at the first error. Unacknowledged writes (``w=0``) need False.
        :param verbose_results: return the result of each write, not only the counts; not for unacknowledged writes.
        :param write_concern: what acknowledgement the writes ask for; the client's by default.
        :raises ClientBulkWriteException: some writes failed; it says which, and what was done.
        :raises InvalidOperation: there are no models, one has no namespace, or the server is older than MongoDB 8.0.
        :raises DocumentTooLarge: a write does not fit into a message.
        """
        writes = Writes(checked_models(models), self._codec_options)
        checked_session(session)
        if session is not None and session.in_transaction and write_concern is not None:
            raise InvalidOperation("Cannot set write concern after starting a transaction")
        concern = self._write_concern if write_concern is None else write_concern
        if not isinstance(concern, WriteConcern):
            raise TypeError(f"write_concern must be a WriteConcern, not {short(concern)}")
        acknowledged = concern.acknowledged or in_transaction(self._executor, session)
        _check_bulk(acknowledged, ordered, verbose_results)
        optional = {"bypassDocumentValidation": bypass_document_validation, "comment": comment, "let": checked_let(let)}
        bulk = ClientBulk(
            self._executor,
            self._reaper,
            self._codec_options,
            ordered=ordered,
            verbose=verbose_results,
            fields={name: value for name, value in optional.items() if value is not None},
            write_concern=concern.document or None,
            acknowledged=acknowledged,
            session=session,
        )
        return ClientBulkWriteResult(bulk.execute(writes), acknowledged, verbose_results)

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
    ) -> ClusterChangeStream[DocumentType]:
        """Watch the changes of all databases but ``admin``, ``config`` and ``local``.

        The parameters are those of :meth:`gmongo.collection.Collection.watch`.
        """
        return ClusterChangeStream(
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

    # Sessions

    def start_session(
        self,
        causal_consistency: bool | None = None,
        default_transaction_options: TransactionOptions | None = None,
        snapshot: bool | None = False,
    ) -> ClientSession:
        """A session, to be used in a ``with``, by one greenlet at a time.

        :param causal_consistency: whether reads see what the session has written and read before; true by default, but
            not with `snapshot`.
        :param default_transaction_options: for transactions that are started without options.
        :param snapshot: whether all reads see the data as of the first one.
        :raises ConfigurationError: both `causal_consistency` and `snapshot` are asked for.
        """
        options = SessionOptions(causal_consistency, default_transaction_options, snapshot)
        self._topology.open()
        return ClientSession(self, self._executor.sessions.acquire(), options)

    # What is known of the deployment

    @property
    def topology_description(self) -> TopologyDescription:
        """What the client knows of the deployment now: nothing before its first use, and after it was closed."""
        return self._topology.description

    @property
    def address(self) -> Address | None:
        """The server's address, for a standalone, a mongos or the primary; waits for it.

        :raises InvalidOperation: there are several mongos.
        """
        server = self._topology.select_server(WRITABLE, "address")
        kind = self._topology.description.topology_type
        if kind == TOPOLOGY_TYPE.Sharded and len(self._topology.description.server_descriptions()) > 1:
            raise InvalidOperation('Cannot use "address" property when load balancing among mongoses')
        return server.address

    @property
    def primary(self) -> Address | None:
        """The primary's address, if the deployment is a replica set and it is known now."""
        found = self._addresses_of(SERVER_TYPE.RSPrimary)
        return next(iter(found), None)

    @property
    def secondaries(self) -> set[Address]:
        """The secondaries' addresses, as far as they are known now."""
        return self._addresses_of(SERVER_TYPE.RSSecondary)

    @property
    def arbiters(self) -> set[Address]:
        """The arbiters' addresses, as far as they are known now."""
        return self._addresses_of(SERVER_TYPE.RSArbiter)

    def _addresses_of(self, server_type: int) -> set[Address]:
        description = self.topology_description
        if description.topology_type not in _REPLICA_SETS:
            return set()
        servers = description.server_descriptions()
        return {address for address, server in servers.items() if server.server_type == server_type}

    @property
    def nodes(self) -> frozenset[Address]:
        """The addresses of all servers known now; none before the first use of the client, and after it was closed."""
        if self._topology.closed:
            return frozenset()
        return frozenset(server.address for server in self.topology_description.known_servers)

    @property
    def is_primary(self) -> bool:
        """Whether the server takes writes; waits for one."""
        server = self._topology.select_server(WRITABLE, "is_primary")
        description = self._topology.description.get(server.address)
        return description is not None and description.is_writable

    @property
    def is_mongos(self) -> bool:
        """Whether the server is a mongos; waits for one."""
        server = self._topology.select_server(WRITABLE, "is_mongos")
        description = self._topology.description.get(server.address)
        return description is not None and description.mongos

    @property
    def options(self) -> ClientOptions:
        """The client's options."""
        return self._client_options

    def append_metadata(self, driver_info: DriverInfo) -> None:
        """Add the name of a library that wraps the driver to what new connections tell the server of the client.

        What was added before stays, and the same information is added only once.

        :raises TypeError: `driver_info` is not a DriverInfo.
        """
        if not isinstance(driver_info, DriverInfo):
            raise TypeError(f"driver_info must be a DriverInfo, not {short(driver_info)}")
        options = self._client_options.merged
        first: DriverInfo | None = options.get("driver")
        known = ((first,) if first else ()) + self._wrappers
        if any(_is_same_library(driver_info, each) for each in known):
            return
        self._wrappers += (driver_info,)
        metadata = self._topology.settings.connection.metadata
        assert isinstance(metadata, dict)  # every handshake reads it anew
        updated = client_metadata(options.get("appname"), (*known, driver_info))
        metadata.clear()
        metadata.update(updated)

    def server_info(self, session: ClientSession | None = None) -> dict[str, Any]:
        """What the server says of its build."""
        return self.admin.command("buildinfo", read_preference=PrimaryPreferred(), session=session)

    def pool_stats(self) -> list[dict[str, Any]]:
        """The state of the connection pools now, one mapping for each server.

        The keys are ``address``, ``state`` (paused, ready, closed), ``generation``, ``total``, ``available``,
        ``pending``, ``in_use``, ``in_use_by`` (a count for each purpose), ``held`` (who holds connections, the longest
        holder first: ``connection``, ``greenlet``, ``operation``, ``purpose``, ``seconds``), ``waiting``, and
        ``oldest_wait`` (in seconds, or None).
        """
        return [pool.stats() for pool in self._topology.pools()]

    def retry_stats(self) -> dict[str, float]:
        """What the client has done about overloaded servers since it was made.

        The keys are ``tokens`` (what is left for retries, of 1000), ``retries``, ``slept`` (before retries, in seconds)
        and ``exhausted`` (how often an operation failed because no token was left).
        """
        return self._executor.overload.stats()

    # Life

    def close(self) -> None:
        """End sessions and cursors on the server, stop all greenlets, and close all connections.

        The client cannot be used any more. A client that is not closed but dropped goes away quietly.

        :raises InvalidOperation: the client belongs to another native thread, whose greenlets it cannot end.
        """
        if self._topology.closed:
            return
        self._topology.check_thread()
        try:
            if self._topology.description.has_readable_server(EndSessions.selector):
                with Timeout(_FAREWELL, False):
                    self._reaper.reap()
                    for operation in EndSessions.batches(self._executor.sessions.drain()):
                        self._executor.run(operation)
        except (PyMongoError, BSONError):
            pass  # the server ends them by itself after a while
        finally:
            self._topology.close()

    def __enter__(self) -> MongoClient[DocumentType]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __next__(self) -> NoReturn:
        raise TypeError("'MongoClient' object is not iterable")

    next = __next__
    __iter__ = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle a MongoClient; make one in each process")

    def eq_props(self) -> tuple[Any, ...]:
        """What makes two clients equal: that they are for the same deployment."""
        options = self._client_options
        return tuple(sorted(options.seeds)), options.replica_set_name, options.srv_hostname, options.srv_service_name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MongoClient):
            return NotImplemented
        return self.eq_props() == other.eq_props()

    def __hash__(self) -> int:
        return hash(self.eq_props())

    def __repr__(self) -> str:
        chosen = self._client_options
        hosts = [f"{host}:{port}" if port else host for host, port in chosen.seeds]
        kind = chosen.codec_options.document_class
        shown = {
            "host": repr(hosts),
            "document_class": "dict" if kind is dict else f"{kind.__module__}.{kind.__name__}",
            "tz_aware": repr(chosen.codec_options.tz_aware),
            "connect": repr(chosen.connect),
            **{name: _shown(name, value) for name, value in chosen.merged.items() if name not in _NOT_SHOWN},
        }
        return f"MongoClient({', '.join(f'{name}={value}' for name, value in shown.items())})"


def _is_same_library(one: DriverInfo, other: DriverInfo) -> bool:
    """Whether two libraries name themselves alike; an empty field is one that is not there."""
    return all((mine or None) == (yours or None) for mine, yours in zip(one, other, strict=True))


def _shown(name: str, value: Any) -> str:
    """An option as it is given: times are kept in seconds, and most are given in milliseconds."""
    if name.endswith("ms") and name != "localthresholdms" and isinstance(value, (int, float)):
        return f"{value * 1000:g}"
    return repr(value)


def _check_bulk(acknowledged: bool, ordered: bool, verbose_results: bool) -> None:
    checked_flag("ordered", ordered)
    checked_flag("verbose_results", verbose_results)
    if acknowledged:
        return
    if verbose_results:
        raise InvalidOperation("Cannot request unacknowledged write concern and verbose results")
    if ordered:
        raise InvalidOperation("Cannot request unacknowledged write concern and ordered writes")
