"""The client: the entry point of the API."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar, overload

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions, TypeRegistry
from bson.errors import BSONError
from gevent import Timeout

from gmongo._documents import Document, DocumentDict, Value
from gmongo._inherited_options import InheritedOptions
from gmongo._locals import forgets_locals
from gmongo._short_text import short
from gmongo._telemetry.observers import observers_of
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.change_stream import ClusterChangeStream, _Watched
from gmongo.client_options import ClientOptions
from gmongo.client_session import ClientSession, SessionOptions, TransactionOptions
from gmongo.collection import Collection
from gmongo.command_cursor import CommandCursor
from gmongo.database import Database
from gmongo.driver_info import DriverInfo
from gmongo.engines.client_bulk import ClientBulk
from gmongo.engines.reaper import CursorReaper
from gmongo.engines.session_reaper import SessionReaper
from gmongo.errors import ConfigurationError, InvalidOperation, PyMongoError
from gmongo.events.command import CommandEvents
from gmongo.execution.context import OperationContext
from gmongo.execution.executor import Executor
from gmongo.execution.operation import required
from gmongo.execution.sessions import checked_session, in_transaction
from gmongo.operations.client_writes import Writes, check_unacknowledged_models, checked_models
from gmongo.operations.end_sessions import ANY_SERVER, EndSessions
from gmongo.operations.models import WriteModel, checked_flag, checked_let
from gmongo.operations.run_command import ReadCommand, WriteCommand
from gmongo.options.structured import SHOWN_PROPERTIES
from gmongo.options.table import SECRET
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import PrimaryPreferred, _ReadPreference
from gmongo.results import ClientBulkWriteResult
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.topology import Topology
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address
from gmongo.wire.reply_schema import DOCUMENTS, TEXT
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from gmongo._encryption.automatic import Encrypter
    from gmongo.execution.account import Observers

__all__ = ["MongoClient"]

_REPLICA_SETS = (TOPOLOGY_TYPE.ReplicaSetNoPrimary, TOPOLOGY_TYPE.ReplicaSetWithPrimary)
# Closing a client waits no longer than this for a server, in seconds.
_CLOSE_TIMEOUT = 1.0

DocumentType = TypeVar("DocumentType", bound=Document)
OtherType = TypeVar("OtherType", bound=Document)


class MongoClient(InheritedOptions, _Watched[ClusterChangeStream[DocumentType]], Generic[DocumentType]):
    r"""A client for a MongoDB deployment, to be shared by all greenlets of a process::

        client = MongoClient("mongodb://localhost:27017/?maxPoolSize=50", timeoutMS=10_000)
        orders = client.shop.orders

    It looks for its servers from the moment it is made, in greenlets that never keep the process or ``hub.join()``
    waiting, and belongs to the native thread it is made in (with ``connect=False``, to the thread of its first use). It
    may be made before a fork: the child starts afresh by itself. :meth:`close` or a ``with`` ends it; so does dropping
    it.

    What every operation may raise is listed at :class:`~gmongo.collection.Collection`.

    **Options** may be in the URI or keywords, in any case; keywords override the URI. Those marked \* can only be
    keywords. Times are in milliseconds.

    *The pool of each server:*

    - ``maxPoolSize``: the most connections; 100 by default, 0 is without limit.
    - ``minPoolSize``: how many are kept open; 0 by default.
    - ``maxIdleTimeMS``: how long a connection may be unused; without limit by default.
    - ``maxConnecting``: how many are established at a time; 2 by default.
    - ``waitQueueTimeoutMS``: how long an operation may wait for one; without limit by default.
    - ``drainLateReplies``: True keeps the connection of an operation that was interrupted (by a time-out, a
      ``gevent.Timeout``, a kill) while it waited for its reply: the reply is read when it comes, and then the
      connection is used again. False by default: such a connection is closed.
    - ``drainLateRepliesMS``, ``drainLateRepliesBytes``: how long such a reply is waited for, and how long it may be;
      1,000 and 1,048,576 by default. Beyond that the connection is closed.

    *Times:*

    - ``timeoutMS``: the limit of each operation as a whole; without limit by default, and so with 0.
      :func:`gmongo.timeout` sets another in a block.
    - ``connectTimeoutMS``: the limit of each attempt to connect to one address, with all handshakes; 20,000 by default,
      0 is without limit.
    - ``socketTimeoutMS``: the limit of a request with its reply; without limit by default. ``timeoutMS`` is better.
    - ``serverSelectionTimeoutMS``: how long an operation waits for a suitable server; 30,000 by default.
    - ``heartbeatFrequencyMS``: the time between two checks of a server; 10,000 by default, 500 at the least.
    - ``localThresholdMS``: how much slower than the nearest server another may be to be chosen; 15 by default.

    *Servers:*

    - ``replicaSet``: the name that the replica set must have.
    - ``directConnection``: True talks to the one given host only, whatever it is part of.
    - ``loadBalanced``: True if the host is a load balancer (MongoDB 5.0).
    - ``serverMonitoringMode``: ``"auto"`` (the default), ``"stream"`` or ``"poll"``.
    - ``srvServiceName``, ``srvMaxHosts``, ``srvAllowedHostsSuffix``: which hosts are taken from DNS with
      ``mongodb+srv``: ``"mongodb"``, 0 (all), and those of the URI's own domain by default.
    - ``srv_host_validator`` \*: a function that says whether to take a host from DNS.
    - ``server_selector`` \*: a function from a list of descriptions of suitable servers to those that may be chosen.

    *Connections:*

    - ``appName``: the application's name, of up to 128 bytes, which the server logs.
    - ``compressors``: which of ``zstd``, ``snappy`` and ``zlib`` to use, in the order of preference; none by default.
    - ``zlibCompressionLevel``: 0 to 9; -1 (the default) is zlib's own choice.
    - ``proxyHost``, ``proxyPort``, ``proxyUsername``, ``proxyPassword``: a SOCKS5 proxy; its port is 1080 by default.
    - ``driver`` \*: a :class:`~gmongo.driver_info.DriverInfo` of the library that makes the client.
    - ``server_api`` \*: a :class:`~gmongo.server_api.ServerApi`.
    - ``event_listeners`` \*: a list of listeners (:mod:`gmongo.monitoring`).

    *TLS:*

    - ``tls`` (or ``ssl``): whether connections are encrypted; False by default, but True with ``mongodb+srv``.
    - ``tlsCAFile``: the certificates of authorities to trust; the system's by default.
    - ``tlsCRLFile``: a list of revoked certificates.
    - ``tlsCertificateKeyFile``, ``tlsCertificateKeyFilePassword``: the client's certificate with its key.
    - ``tlsInsecure``, ``tlsAllowInvalidCertificates``, ``tlsAllowInvalidHostnames``: True takes what should be refused.
    - ``tlsDisableOCSPEndpointCheck``: True has OCSP, which takes the extra ``gmongo[ocsp]``, look at stapled responses
      only; False, the default, has it ask responders, too.
    - ``tlsDisableCertificateRevocationCheck``: True leaves out OCSP and ``tlsCRLFile``.

    *Authentication:*

    - ``username`` \*, ``password`` \*: in a URI, they stand before the host.
    - ``authSource``: the database that has the user; that of the URI or ``"admin"`` by default.
    - ``authMechanism``, ``authMechanismProperties``: which proof to give; with a user name, the server names a SCRAM by
      default.
    - ``auto_encryption_opts`` \*: an :class:`~gmongo.encryption_options.AutoEncryptionOpts`, to encrypt fields and
      decrypt them.

    *Retries:*

    - ``retryReads``, ``retryWrites``: whether anything is tried again; True by default.
    - ``maxAdaptiveRetries``: how often an operation is tried again on an overloaded server; 5 by default.
    - ``baseBackoffMS``: the longest wait before the first of these; 100 by default.
    - ``enableOverloadRetargeting``: whether they pass over an overloaded member of a replica set; False by default.

    *Reads and writes:*

    - ``readPreference``, ``readPreferenceTags``, ``maxStalenessSeconds``: which servers reads go to; ``"primary"`` by
      default.
    - ``read_preference`` \*: the same as an object (:mod:`gmongo.read_preferences`).
    - ``readConcernLevel``: which isolation reads ask for; the server's default.
    - ``w``, ``wTimeoutMS``, ``journal``, ``fsync``: see :class:`~gmongo.write_concern.WriteConcern`.

    *Observation:*

    - ``tracing`` \*: a mapping for the traces of OpenTelemetry, with ``enabled`` (False by default, or as the
      environment variable ``OTEL_PYTHON_INSTRUMENTATION_MONGODB_ENABLED`` says), ``query_text_max_length`` (how many
      characters of a command are shown; 0, none, by default) and ``tracer_provider`` (the global one by default).
    - ``metrics`` \*: whether there are metrics of OpenTelemetry, False by default; or a mapping with ``enabled`` and
      ``meter_provider``.
    - ``slow_operation_ms`` \*: an operation that takes this long is logged, with where the time went; None by default.

    *Documents* (see :class:`bson.codec_options.CodecOptions`):

    - ``uuidRepresentation``: how UUIDs are stored; ``"unspecified"`` by default, which refuses to encode them.
    - ``unicode_decode_error_handler``: ``"strict"`` (the default), ``"replace"`` or ``"ignore"``.
    - ``datetime_conversion``: how datetimes are decoded; ``"DATETIME"`` by default.
    - ``tzinfo`` \*: the time zone of datetimes, with ``tz_aware``; UTC by default.

    Specification: URI Options; Connection String; the pool's: Connection Monitoring and Pooling, "Connection Pool
    Options".

    :param host: a host name, an IP address, a path of a Unix domain socket, a ``mongodb://`` or ``mongodb+srv://`` URI,
        or a list of these. None is ``localhost``.
    :param port: of hosts given without one; None is 27017.
    :param document_class: the class of documents that queries return; None is ``dict``.
    :param tz_aware: whether datetimes are aware of their time zone (UTC, or `tzinfo`); False by default.
    :param connect: True (the default) looks for servers at once, False with the first operation. With ``mongodb+srv``,
        True queries DNS in the constructor. False has the first operation query DNS, within
        ``serverSelectionTimeoutMS`` and ``timeoutMS``; if the query fails, the next operation queries again.
    :param type_registry: how types of the application's are encoded and decoded; None knows no others than ``bson``.
    :param kwargs: the options above.
    :raises ConfigurationError: an option is unknown, out of range, or contradicts another; the message names it. Or DNS
        failed for a ``mongodb+srv`` URI.
    :raises InvalidURI: the URI could not be parsed.
    :raises TypeError: an argument has the wrong type.
    """

    _changes: type[ClusterChangeStream[DocumentType]] = ClusterChangeStream

    def _watched(self) -> tuple[Collection[Value], str | int]:
        return self["admin"]["$cmd.aggregate"], 1

    HOST = "localhost"
    PORT = 27017
    _is_silent = False

    @forgets_locals
    def __init__(
        self,
        host: str | Sequence[str] | None = None,
        port: int | None = None,
        document_class: type[DocumentType] | None = None,
        tz_aware: bool | None = None,
        connect: bool | None = None,
        type_registry: TypeRegistry | None = None,
        **kwargs: object,
    ) -> None:
        named = {
            "document_class": document_class,
            "tz_aware": tz_aware,
            "connect": connect,
            "type_registry": type_registry,
        }
        self._given = {"host": host, "port": port, **kwargs}
        keywords = {**kwargs, **{name: value for name, value in named.items() if value is not None}}
        self._options = ClientOptions(
            self.HOST if host is None else host,
            self.PORT if port is None else port,
            keywords,
            silent=self._is_silent,
        )
        chosen = self._options
        codec_options = chosen.codec_options
        if codec_options == DEFAULT_CODEC_OPTIONS:
            codec_options = DEFAULT_CODEC_OPTIONS  # the very object, which is quickly recognised
        super().__init__(codec_options, chosen.read_preference, chosen.write_concern, chosen.read_concern)
        observers = observers_of(chosen.telemetry())
        self._topology = Topology(chosen.topology(None if observers is None else observers.connection_made))
        self._encrypter: Encrypter | None = None
        if chosen.auto_encryption_opts is not None:
            # It brings libmongocrypt with it, which other clients need not load.
            from gmongo._encryption.automatic import Encrypter

            construction = {"host": host, "port": port, **keywords}
            self._encrypter = Encrypter(self, chosen.auto_encryption_opts, MongoClient, _SilentClient, construction)
        self._executor = self._make_executor(chosen, observers)
        self._reaper = CursorReaper(self._executor)
        self._session_reaper = SessionReaper(self._executor)
        if chosen.connect:
            self._topology.open()

    def _make_executor(self, chosen: ClientOptions, observers: Observers | None) -> Executor:
        """The executor that the options ask for: what a client does not use is not on the way of its operations."""
        kind: type[Executor] = Executor
        if self._encrypter is not None:
            from gmongo._encryption.executor import EncryptingExecutor

            kind = EncryptingExecutor
        encrypters = () if self._encrypter is None else (self._encrypter,)
        if observers is None:
            events = CommandEvents(chosen.listeners.command, silent=chosen.silent)
            return kind(self._topology, chosen.execution(), events, *encrypters)
        from gmongo.execution.observed import ObservedCommands, observed

        observed_events = ObservedCommands(chosen.listeners.command, observers)
        executor = observed(kind)(self._topology, chosen.execution(), observed_events, *encrypters)
        executor.observers = observers
        return executor

    # Databases

    @overload
    def get_database(
        self,
        name: str | None = None,
        codec_options: None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[DocumentType]: ...

    @overload
    def get_database(
        self,
        name: str | None = None,
        *,
        codec_options: CodecOptions[OtherType],
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[OtherType]: ...

    @overload
    def get_database(
        self,
        name: str | None,
        codec_options: CodecOptions[OtherType],
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[OtherType]: ...

    def get_database(
        self,
        name: str | None = None,
        codec_options: CodecOptions[Value] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[Value]:
        """A database, with options of its own.

            >>> client.get_database("shop", read_preference=ReadPreference.NEAREST).name
            'shop'

        :param name: its name; None takes that of the URI.
        :param codec_options: how documents are encoded and decoded; None takes the client's, here and below.
        :param read_preference: which servers reads go to.
        :param write_concern: which acknowledgement writes wait for.
        :param read_concern: which isolation reads ask for.
        :param timeout_ms: the limit of each operation, in milliseconds; 0 is without limit, None takes the client's
            ``timeoutMS``. :func:`gmongo.timeout` overrides it.
        :raises ConfigurationError: there is neither a name nor a database in the URI.
        :raises InvalidName: no database can have that name.
        """
        if name is None:
            name = self._default_database_name(None)
        return Database(self, name, codec_options, read_preference, write_concern, read_concern, timeout_ms)

    @overload
    def get_default_database(
        self,
        default: str | None = None,
        codec_options: None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[DocumentType]: ...

    @overload
    def get_default_database(
        self,
        default: str | None = None,
        *,
        codec_options: CodecOptions[OtherType],
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[OtherType]: ...

    @overload
    def get_default_database(
        self,
        default: str | None,
        codec_options: CodecOptions[OtherType],
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[OtherType]: ...

    def get_default_database(
        self,
        default: str | None = None,
        codec_options: CodecOptions[Value] | None = None,
        read_preference: _ReadPreference | None = None,
        write_concern: WriteConcern | None = None,
        read_concern: ReadConcern | None = None,
        timeout_ms: float | None = None,
    ) -> Database[Value]:
        """The database that the URI names.

        :param default: a name to take if the URI has none; None is an error then.
        :param codec_options: how documents are encoded and decoded; None takes the client's, here and below.
        :param read_preference: which servers reads go to.
        :param write_concern: which acknowledgement writes wait for.
        :param read_concern: which isolation reads ask for.
        :param timeout_ms: the limit of each operation, in milliseconds; 0 is without limit, None takes the client's
            ``timeoutMS``. :func:`gmongo.timeout` overrides it.
        :raises ConfigurationError: neither is there.
        :raises InvalidName: no database can have that name.
        """
        name = self._default_database_name(default)
        return Database(self, name, codec_options, read_preference, write_concern, read_concern, timeout_ms)

    def _default_database_name(self, default: str | None) -> str:
        name = self._options.default_database or default
        if name is None:
            raise ConfigurationError("No default database name defined or provided.")
        return name

    def __getitem__(self, name: str) -> Database[DocumentType]:
        return Database(self, name)

    def __getattr__(self, name: str) -> Database[DocumentType]:
        if name.startswith("_"):
            raise AttributeError(
                f"MongoClient has no attribute {name!r}. To access the {name} database, use client[{name!r}]."
            )
        return self[name]

    def list_databases(
        self, session: ClientSession | None = None, comment: Value = None, **kwargs: object
    ) -> CommandCursor[DocumentDict]:
        """A cursor over descriptions of the databases.

        Specification: Enumerating Databases.

        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param kwargs: further fields of the command, such as ``filter``, ``nameOnly`` and ``authorizedDatabases``.
        :returns: a cursor over documents with ``name``, ``sizeOnDisk`` and ``empty``.
        """
        command = {"listDatabases": 1, **kwargs}
        if comment is not None:
            command["comment"] = comment
        context = OperationContext("admin", codec_options=self._codec_options)
        reply = self._executor.run(ReadCommand(context, command), session)
        return CommandCursor._over(self.admin["$cmd"], required(reply, "databases", DOCUMENTS), session)

    def list_database_names(self, session: ClientSession | None = None, comment: Value = None) -> list[str]:
        """The names of the databases.

        Specification: Enumerating Databases.

        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :returns: a list, in no order.
        """
        return [required(each, "name", TEXT) for each in self.list_databases(session, comment, nameOnly=True)]

    def drop_database(
        self, name_or_database: str | Database[Value], session: ClientSession | None = None, comment: Value = None
    ) -> None:
        """Drop a database with its collections. That it does not exist is no error.

        :param name_or_database: its name, or the database.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :raises TypeError: `name_or_database` is neither a name nor a database.
        :raises InvalidName: no database can have that name.
        """
        database = name_or_database if isinstance(name_or_database, Database) else self[name_or_database]
        command: DocumentDict = {"dropDatabase": 1}
        if comment is not None:
            command["comment"] = comment
        self._executor.run(WriteCommand(self._context_in(database.name, self._write_concern), command), session)

    def _context_in(self, database: str, write_concern: WriteConcern) -> OperationContext:
        """The context of writes of the client in a database."""
        return OperationContext(database, "", self._codec_options, write_concern=write_concern.document or None)

    # Several collections at a time

    def bulk_write(
        self,
        models: Sequence[WriteModel[Value]],
        session: ClientSession | None = None,
        ordered: bool = True,
        verbose_results: bool = False,
        bypass_document_validation: bool | None = None,
        comment: Value = None,
        let: Document | None = None,
        write_concern: WriteConcern | None = None,
    ) -> ClientBulkWriteResult:
        """Run many writes on any collections (MongoDB 8.0), in as few messages as they fit in. Other greenlets run
        while they are encoded::

            client.bulk_write(
                [
                    InsertOne({"_id": 1, "total": 12}, namespace="shop.orders"),
                    UpdateOne({"_id": "ann"}, {"$inc": {"orders": 1}}, namespace="shop.customers"),
                ]
            )

        Specification: Bulk Write.

        :param models: a list of :class:`~gmongo.operations.InsertOne`, :class:`~gmongo.operations.UpdateOne`,
            :class:`~gmongo.operations.UpdateMany`, :class:`~gmongo.operations.ReplaceOne`,
            :class:`~gmongo.operations.DeleteOne` and :class:`~gmongo.operations.DeleteMany`, each with its `namespace`.
        :param session: to run in; None (the default) takes one for this operation alone.
        :param ordered: True (the default) runs one after the other and stops at the first error; False runs them all,
            in any order. Unacknowledged writes (``w=0``) need False.
        :param verbose_results: True returns the result of each write, and not only the counts; not for unacknowledged
            writes.
        :param bypass_document_validation: True writes what the collection's validator would refuse; None leaves the
            field out, and the server validates.
        :param comment: for the server's log, as :class:`~gmongo.collection.Collection` says; None is without.
        :param let: variables, by name: expressions in the command read them as ``"$$name"`` (MongoDB 5.0). None is
            without.
        :param write_concern: which acknowledgement the writes wait for; None takes the client's.
        :raises ClientBulkWriteException: some writes failed; it says which, and what was done.
        :raises InvalidOperation: there are no models, one has no namespace, the server is older than MongoDB 8.0, or
            the client has ``auto_encryption_opts``.
        :raises DocumentTooLarge: a write does not fit into a message.
        :raises TypeError: a model is none, or an argument has the wrong type.
        """
        if self._encrypter is not None:
            raise InvalidOperation("MongoClient.bulk_write does not currently support automatic encryption")
        models = checked_models(models)
        checked_session(session)
        if session is not None and session.in_transaction and write_concern is not None:
            raise InvalidOperation("Cannot set write concern after starting a transaction")
        concern = self._write_concern if write_concern is None else write_concern
        if not isinstance(concern, WriteConcern):
            raise TypeError(f"write_concern must be a WriteConcern, not {short(concern)}")
        acknowledged = concern.acknowledged or in_transaction(self._executor, session)
        _check_bulk(models, acknowledged, ordered, verbose_results)
        optional = {"bypassDocumentValidation": bypass_document_validation, "comment": comment, "let": checked_let(let)}
        bulk = ClientBulk(
            self._executor,
            self._reaper,
            self._context_in("admin", concern),
            ordered=ordered,
            verbose=verbose_results,
            fields={name: value for name, value in optional.items() if value is not None},
            acknowledged=acknowledged,
            session=session,
        )
        return ClientBulkWriteResult(bulk.execute(Writes(models, self._codec_options)), acknowledged, verbose_results)

    # Sessions

    def start_session(
        self,
        causal_consistency: bool | None = None,
        default_transaction_options: TransactionOptions | None = None,
        snapshot: bool | None = False,
        default_timeout_ms: float | None = None,
    ) -> ClientSession:
        """A session, to be used in a ``with``, by one greenlet at a time::

            with client.start_session() as session, session.start_transaction():
                orders.insert_one(order, session=session)
                stock.update_one(filter, update, session=session)

        Specification: Driver Sessions; Causal Consistency; Snapshot Reads.

        :param causal_consistency: whether reads see what the session has written and read before; None is True, but
            False with `snapshot`.
        :param default_transaction_options: for transactions that are started without options; None takes the client's.
        :param snapshot: True lets all reads see the data as of the first one (MongoDB 5.0); False by default.
        :param default_timeout_ms: the limit of ``with_transaction``, and of each commit, abort and end of the session,
            in milliseconds; 0 is without limit, None takes the client's ``timeoutMS``. Operations in the session have
            the limits of their collections.
        :raises ConfigurationError: both `causal_consistency` and `snapshot` are asked for.
        :raises TypeError: `default_transaction_options` are no :class:`~gmongo.client_session.TransactionOptions`.
        """
        options = SessionOptions(causal_consistency, default_transaction_options, snapshot, default_timeout_ms)
        self._topology.open()
        return ClientSession(self, self._executor.sessions.acquire(), options)

    # What is known of the deployment

    @property
    def topology_description(self) -> TopologyDescription:
        """What the client knows of the deployment now: nothing before its first use, and after it was closed."""
        return self._topology.description

    @property
    def address(self) -> Address | None:
        """The server's address as host and port, for a standalone, a mongos or the primary; waits for it.

        :raises InvalidOperation: there are several mongos.
        :raises ServerSelectionTimeoutError: there is no such server within ``serverSelectionTimeoutMS``.
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
        """Whether the server takes writes; waits for one.

        :raises ServerSelectionTimeoutError: there is none within ``serverSelectionTimeoutMS``.
        """
        server = self._topology.select_server(WRITABLE, "is_primary")
        description = self._topology.description.get(server.address)
        return description is not None and description.is_writable

    @property
    def is_mongos(self) -> bool:
        """Whether the server is a mongos; waits for one.

        :raises ServerSelectionTimeoutError: there is none within ``serverSelectionTimeoutMS``.
        """
        server = self._topology.select_server(WRITABLE, "is_mongos")
        description = self._topology.description.get(server.address)
        return description is not None and description.mongos

    @property
    def options(self) -> ClientOptions:
        """The client's options, with their defaults."""
        return self._options

    def append_metadata(self, driver_info: DriverInfo) -> None:
        """Add the name of a library that wraps the driver to what new connections say to the server of the client.

        What was added before stays, and the same information is added only once.

        Specification: MongoDB Handshake, "Supporting Wrapping Libraries".

        :param driver_info: the library's name, version and platform.
        :raises TypeError: `driver_info` is not a DriverInfo.
        """
        if not isinstance(driver_info, DriverInfo):
            raise TypeError(f"driver_info must be a DriverInfo, not {short(driver_info)}")
        if any(_is_same_library(driver_info, each) for each in self._options.libraries):
            return
        self._options.libraries += (driver_info,)
        metadata = self._topology.settings.connection.metadata
        assert isinstance(metadata, dict)  # every handshake reads it anew
        metadata.clear()
        metadata.update(self._options.metadata())

    def server_info(self, session: ClientSession | None = None) -> DocumentDict:
        """What the server says of its build: the reply to ``buildInfo``, such as ``{"version": "8.0.4", …}``.

        :param session: to run in; None (the default) takes one for this operation alone.
        """
        return self.admin.command("buildinfo", read_preference=PrimaryPreferred(), session=session)

    def pool_stats(self) -> list[DocumentDict]:
        """The state of the connection pools now: one mapping for each server, with these keys.

        - ``address``: of the server.
        - ``state``: ``"paused"`` (nothing is handed out until the server is known to be there), ``"ready"`` or
          ``"closed"``.
        - ``generation``: how often the pool was cleared.
        - ``total``, ``available``, ``pending``, ``in_use``, ``draining``: how many connections there are, and how many
          of them are free, being established, checked out, and waiting for a late reply (``drainLateReplies``).
        - ``in_use_by``: the last one by purpose.
        - ``held``: what holds connections, the longest holder first; each a mapping with ``connection`` (its number),
          ``greenlet``, ``operation`` (the last command), ``purpose`` and ``seconds``.
        - ``waiting``: how many greenlets wait for a connection.
        - ``oldest_wait``: for how long the first of them has waited, in seconds, or None.

        Nothing is sent. Counts of the specification: Connection Monitoring and Pooling, "Connection Pool".
        """
        return [pool.stats() for pool in self._topology.pools()]

    def retry_stats(self) -> dict[str, float]:
        """What the client has done about overloaded servers since it was made, as a mapping with these keys.

        - ``tokens``: what is left for retries, of 1000.
        - ``retries``: how many there were.
        - ``slept``: for how long they waited, in seconds.
        - ``exhausted``: how often an operation failed because no token was left.

        Nothing is sent. Specification: Client Backpressure.
        """
        return self._executor.overload.stats()

    # Life

    def close(self) -> None:
        """End sessions and cursors on the server, stop all greenlets, and close all connections.

        The client cannot be used any more. A client that is only dropped ends its greenlets and connections
        by itself, and sends nothing.

        Operations of other greenlets that are in progress have ten more seconds; then they end with
        :class:`~gmongo.errors.AutoReconnect`, or :class:`~gmongo.errors.InvalidOperation` if they retry.
        While the interpreter ends, this does nothing.

        :raises InvalidOperation: the client belongs to another native thread, whose greenlets it cannot end.
        """
        # While the interpreter ends, no greenlet can run, and the process closes the sockets.
        if self._topology.closed or sys.is_finalizing():
            return
        self._topology.check_thread()
        try:
            if self._topology.description.has_readable_server(ANY_SERVER):
                with Timeout(_CLOSE_TIMEOUT, False):
                    self._reaper.reap()
                    self._session_reaper.reap(inf)
                    for operation in EndSessions.batches(self._executor.sessions.drain()):
                        self._executor.run(operation)
        except (PyMongoError, BSONError):
            pass  # the server ends them by itself after a while
        finally:
            self._reaper.stop_reading()
            self._topology.close()
            if self._encrypter is not None:
                self._encrypter.close()

    def __enter__(self) -> MongoClient[DocumentType]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __next__(self) -> NoReturn:
        """Not possible: :meth:`list_databases` makes what can be iterated over.

        :raises TypeError: always.
        """
        raise TypeError("'MongoClient' object is not iterable")

    next = __next__
    __iter__ = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle a MongoClient; make one in each process")

    def __copy__(self) -> MongoClient[DocumentType]:
        return self  # one client with one pool, which one close() ends

    def eq_props(self) -> tuple[object, ...]:
        """What makes two clients equal: that they are for the same deployment."""
        return self._options.identity

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MongoClient):
            return NotImplemented
        return self.eq_props() == other.eq_props()

    def __hash__(self) -> int:
        return hash(self.eq_props())

    def __repr__(self) -> str:
        chosen = self._options
        hosts = [f"{host}:{port}" if port else host for host, port in chosen.seeds]
        kind = chosen.codec_options.document_class
        shown = {
            "host": repr(f"mongodb+srv://{chosen.srv_hostname}" if chosen.is_unresolved else hosts),
            "document_class": "dict" if kind is dict else f"{kind.__module__}.{kind.__name__}",
            "tz_aware": repr(chosen.codec_options.tz_aware),
            "connect": repr(chosen.connect),
        }
        for name, value in chosen.merged.items():
            if name not in SECRET or name == "authmechanismproperties":
                shown.setdefault(name, _shown(name, value))
        return f"MongoClient({', '.join(f'{name}={value}' for name, value in shown.items())})"


class _SilentClient(MongoClient[Value]):
    """A client of the driver's own for what is sent in plaintext: nothing of it is logged, published, traced, measured
    or shown, whatever is registered for all clients or asked for by the environment.
    """

    _is_silent = True


def _is_same_library(one: DriverInfo, other: DriverInfo) -> bool:
    """Whether two libraries name themselves alike; an empty field is one that is not there."""
    return all((mine or None) == (yours or None) for mine, yours in zip(one, other, strict=True))


def _shown(name: str, value: object) -> str:
    """An option as it is given: times are kept in seconds, and most are given in milliseconds."""
    if name == "authmechanismproperties" and isinstance(value, dict):
        return repr({each: kept if each in SHOWN_PROPERTIES else "<redacted>" for each, kept in value.items()})
    if name.endswith("ms") and name != "localthresholdms" and isinstance(value, (int, float)):
        return f"{value * 1000:.10g}"
    return repr(value)


def _check_bulk(models: list[Value], acknowledged: bool, ordered: bool, verbose_results: bool) -> None:
    checked_flag("ordered", ordered)
    checked_flag("verbose_results", verbose_results)
    if acknowledged:
        return
    if verbose_results:
        raise InvalidOperation("Cannot request unacknowledged write concern and verbose results")
    if ordered:
        raise InvalidOperation("Cannot request unacknowledged write concern and ordered writes")
    check_unacknowledged_models(models)
