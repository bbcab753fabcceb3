"""The class MongoClient, the entry point of the API."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar, overload
from weakref import WeakSet

from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions, TypeRegistry
from bson.errors import BSONError
from gevent import Timeout, sleep

from gmongo._documents import Document, DocumentDict, Value, without_none
from gmongo._inherited_options import InheritedOptions
from gmongo._parameter_docs import SHARED_PARAMETERS, describes_parameters
from gmongo._telemetry.settings import create_observers
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo._traceback_scrub import clears_locals
from gmongo._truncated_repr import short
from gmongo.change_stream import ClusterChangeStream, _Watched
from gmongo.client_options import ClientOptions
from gmongo.client_session import ClientSession, SessionOptions, TransactionOptions
from gmongo.collection import Collection
from gmongo.command_cursor import CommandCursor
from gmongo.cursor import Cursor
from gmongo.database import Database
from gmongo.driver_info import DriverInfo
from gmongo.engines.client_bulk import ClientBulk
from gmongo.engines.cursor_killer import CursorKiller
from gmongo.engines.session_reaper import SessionReaper
from gmongo.errors import AutoReconnect, ConfigurationError, InvalidOperation, PyMongoError, ServerSelectionTimeoutError
from gmongo.events.command import CommandEvents
from gmongo.execution.deadline import checked_seconds, current_deadline, deadline_after, until
from gmongo.execution.executor import Executor
from gmongo.execution.operation import OperationContext, required_field
from gmongo.execution.sessions import bind_session, checked_session, in_transaction
from gmongo.operations.client_bulk import Writes, check_unacknowledged_models, checked_models
from gmongo.operations.end_sessions import ANY_SERVER, EndSessions
from gmongo.operations.models import WriteModel, checked_flag, checked_let
from gmongo.operations.run_command import ReadCommand, WriteCommand
from gmongo.options.structured import SHOWN_PROPERTIES
from gmongo.options.table import SECRET_OPTION_NAMES
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import PrimaryPreferred, _ReadPreference
from gmongo.results import ClientBulkWriteResult
from gmongo.sdam.selection import WRITABLE
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.topology import Topology
from gmongo.sdam.topology_description import TopologyDescription
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address, address_text
from gmongo.wire.reply_schema import DOCUMENTS, TEXT
from gmongo.wire.timeout import limit_text, remaining
from gmongo.write_concern import WriteConcern

if TYPE_CHECKING:
    from gmongo._encryption.automatic import Encrypter
    from gmongo.execution.operation_trace import Observers

__all__ = ["MongoClient"]

_REPLICA_SET_TYPES = (TOPOLOGY_TYPE.ReplicaSetNoPrimary, TOPOLOGY_TYPE.ReplicaSetWithPrimary)
_CLOSE_TIMEOUT = 1.0  # the total time limit of the commands that close() sends, in seconds
_READY_INTERVAL = 0.01  # seconds between two checks of wait_until_ready()

DocumentType = TypeVar("DocumentType", bound=Document)
OtherType = TypeVar("OtherType", bound=Document)


# The decorator completes the docstrings of the methods with descriptions of parameters.
@describes_parameters(SHARED_PARAMETERS, Cursor, SessionOptions)
class MongoClient(InheritedOptions, _Watched[ClusterChangeStream[DocumentType]], Generic[DocumentType]):
    r"""A client of a MongoDB deployment. All greenlets of a native thread can share one client.

    ::

        client = MongoClient("mongodb://localhost:27017/?maxPoolSize=50", timeoutMS=10_000)
        orders = client.shop.orders

    The constructor starts the monitors of the servers, unless `connect` is False. The greenlets of a
    client do not delay the end of the process or of ``hub.join()``. A client belongs to the native
    thread that creates the client. With ``connect=False``, the client belongs to the native thread
    that first uses the client. After a fork, the client opens new connections in the child. To close
    a client, call :meth:`close`, use a ``with`` statement, or drop the last reference.

    :class:`~gmongo.collection.Collection` lists the exceptions that every operation may raise.

    **Options** may be parameters of the URI or keywords. Option names are not case-sensitive. A
    keyword overrides the option of the URI, but must not be less secure than the option of the URI.
    Options marked \* can only be keywords. Times are in milliseconds, except ``maxStalenessSeconds``.

    *Connection pool of each server:*

    - ``maxPoolSize``: the maximum number of connections. The default is 100, and 0 means no limit.
    - ``minPoolSize``: the minimum number of open connections. The default is 0.
    - ``maxIdleTimeMS``: the maximum idle time of a connection. The default is no limit.
    - ``maxConnecting``: the maximum number of connections that the pool establishes concurrently. The default is 2.
    - ``waitQueueTimeoutMS``: the time limit of an operation's wait for a connection. The default is no limit.
    - ``drainLateReplies``: True keeps a connection if a timeout, a ``gevent.Timeout`` or a kill
      interrupted the wait for a reply. The pool reads the late reply, and then reuses the connection.
      False (the default) closes the connection. Only if ``timeoutMS`` ended the wait, the pool still
      reads a reply that arrives within 0.25 seconds.
    - ``drainLateRepliesMS``, ``drainLateRepliesBytes``: the maximum wait for a late reply, and the maximum size of a
      late reply. The defaults are 1,000 ms and 1,048,576 bytes. The pool closes a connection that exceeds a limit.

    *Time limits:*

    - ``timeoutMS``: the time limit of each operation including its retries. 0 and the default mean no limit.
      :func:`gmongo.timeout` overrides the limit in a block of code.
    - ``connectTimeoutMS``: the time limit of each attempt to connect to one address, including all handshakes. The
      default is 20,000, and 0 means no limit.
    - ``socketTimeoutMS``: the time limit of a request and its reply. The default is no limit. Prefer ``timeoutMS``.
    - ``serverSelectionTimeoutMS``: the time limit of an operation's wait for a suitable server. The default is 30,000.
    - ``heartbeatFrequencyMS``: the interval between two checks of a server. The default is 10,000, the minimum is 500.
    - ``localThresholdMS``: the width of the latency window of server selection. The default is 15.

    *Servers:*

    - ``replicaSet``: the name that the replica set must have.
    - ``directConnection``: True connects only to the given host. The host may have any server type.
    - ``loadBalanced``: True if the host is a load balancer (MongoDB 5.0).
    - ``serverMonitoringMode``: ``"auto"`` (the default), ``"stream"`` or ``"poll"``.
    - ``srvServiceName``, ``srvMaxHosts``, ``srvAllowedHostsSuffix``: the service name of the SRV
      records, the maximum number of hosts, and the required suffix of the host names. Only a
      ``mongodb+srv`` URI supports these options. The defaults are ``"mongodb"``, 0 (all hosts), and
      the domain of the URI.
    - ``srv_host_validator`` \*: a function that returns True if the client may use a host from DNS.
    - ``server_selector`` \*: a function that receives the list of suitable servers, and returns the servers that the
      client may use.

    *Connections:*

    - ``appName``: the name of the application, of at most 128 bytes. The server logs this name.
    - ``compressors``: a list of ``zstd``, ``snappy`` and ``zlib``, in the order of preference. The default is no
      compression.
    - ``zlibCompressionLevel``: the compression level of zlib, from 0 to 9. -1 (the default) uses zlib's default level.
    - ``proxyHost``, ``proxyPort``, ``proxyUsername``, ``proxyPassword``: the address and the credential of a SOCKS5
      proxy. The default port is 1080.
    - ``driver`` \*: a :class:`~gmongo.driver_info.DriverInfo` with the metadata of a library that wraps the driver.
    - ``server_api`` \*: a :class:`~gmongo.server_api.ServerApi`, which declares a version of the Stable API.
    - ``event_listeners`` \*: a list of event listeners (:mod:`gmongo.monitoring`).

    *TLS:*

    - ``tls`` (or ``ssl``): True encrypts connections. The default is True for ``mongodb+srv`` and
      with any other TLS option, and otherwise False.
    - ``tlsCAFile``: the path of the file with trusted certificate authorities. The default is the system's authorities.
    - ``tlsCRLFile``: the path of the file with certificate revocation lists. The default is no file.
    - ``tlsCertificateKeyFile``, ``tlsCertificateKeyFilePassword``: the path of the file with the client's certificate
      and private key, and the password of the private key.
    - ``tlsInsecure``, ``tlsAllowInvalidCertificates``, ``tlsAllowInvalidHostnames``: False by
      default. ``tlsInsecure`` and ``tlsAllowInvalidCertificates`` disable all checks of the server's
      certificate. ``tlsAllowInvalidHostnames`` disables only the check of the host name.
    - ``tlsDisableOCSPEndpointCheck``: True restricts OCSP to stapled responses. False (the default)
      also queries OCSP responders, unless ``tlsCRLFile`` is set. OCSP needs ``gmongo[ocsp]``.
    - ``tlsDisableCertificateRevocationCheck``: True disables OCSP and ``tlsCRLFile``.

    *Authentication:*

    - ``username`` \*, ``password`` \*: the credential. A URI contains the user name and the password before the host.
    - ``authSource``: the user's database. The default of SCRAM is the URI's database or ``"admin"``.
    - ``authMechanism``, ``authMechanismProperties``: the authentication mechanism and its properties. If a user name is
      given, the default is a SCRAM mechanism that the client negotiates with the server.
    - ``auto_encryption_opts`` \*: an :class:`~gmongo.encryption_options.AutoEncryptionOpts`.

    *Retries:*

    - ``retryReads``, ``retryWrites``: True (the default) retries reads or writes.
    - ``maxAdaptiveRetries``: the maximum number of retries of an operation after errors of overloaded servers. The
      default is 5.
    - ``baseBackoffMS``: the maximum backoff before the first overload retry. The default is 100.
    - ``enableOverloadRetargeting``: True lets an overload retry avoid the overloaded replica set member. The default is
      False.

    *Reads and writes:*

    - ``readPreference``, ``readPreferenceTags``, ``maxStalenessSeconds``: the servers to which the client sends reads.
      The default is ``"primary"``.
    - ``read_preference`` \*: the read preference as an object (:mod:`gmongo.read_preferences`).
    - ``readConcernLevel``: the isolation level of reads. The default is the server's default.
    - ``w``, ``wTimeoutMS``, ``journal``, ``fsync``: the :class:`~gmongo.write_concern.WriteConcern`.

    *Observation:*

    - ``tracing`` \*: a mapping with options of OpenTelemetry traces. The default of ``enabled`` is
      the environment variable ``OTEL_PYTHON_INSTRUMENTATION_MONGODB_ENABLED``, or else False.
      ``query_text_max_length`` is the maximum number of characters of a command in a span. The
      default is ``OTEL_PYTHON_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH``, or else 0. The default
      of ``tracer_provider`` is the global provider.
    - ``metrics`` \*: True, False, or a mapping (``enabled``, ``meter_provider``) for OpenTelemetry.
      The default is ``OTEL_PYTHON_INSTRUMENTATION_MONGODB_METRICS_ENABLED``, or else False.
    - ``slow_operation_ms`` \*: the minimum duration of a slow operation. The client logs each slow operation with its
      phases. The default is None, which logs no slow operations.

    *Documents* (see :class:`bson.codec_options.CodecOptions`):

    - ``uuidRepresentation``: the encoding of UUIDs. ``"unspecified"`` (the default) refuses UUIDs.
    - ``unicode_decode_error_handler``: the treatment of strings that are not valid UTF-8: ``"strict"`` (the default),
      ``"replace"`` or ``"ignore"``.
    - ``datetime_conversion``: the Python type of decoded datetimes. The default is ``"DATETIME"``.
    - ``tzinfo`` \*: the time zone of decoded datetimes if ``tz_aware`` is True. The default is UTC.

    Specifications: URI Options, Connection String, and Connection Monitoring and Pooling ("Connection Pool Options").

    :param host: a host name, an IP address, a path of a Unix domain socket, a ``mongodb://`` or
        ``mongodb+srv://`` URI, or a list of hosts. None (the default) means ``localhost``.
    :param port: the port of each host that is given without a port; None (the default) means 27017.
    :param document_class: the class of returned documents; None (the default) means ``dict``.
    :param tz_aware: True returns datetimes with a time zone: `tzinfo` or UTC. None (the default) means False.
    :param connect: False starts the monitors with the first operation. None (the default) means True,
        which starts the monitors in the constructor. For ``mongodb+srv``, the client first queries
        DNS. If the DNS query of an operation fails, the next operation repeats the query.
    :param type_registry: the encoders and decoders of custom types; None (the default) means no custom types.
    :param kwargs: the options that this docstring describes.
    :raises ConfigurationError: an option is unknown, out of range, or contradicts another option; the message names the
        option. The constructor also raises ConfigurationError if a DNS query for a ``mongodb+srv`` URI fails.
    :raises InvalidURI: the URI is malformed.
    :raises TypeError: an argument has the wrong type.
    """

    _stream_class: type[ClusterChangeStream[DocumentType]] = ClusterChangeStream

    def _stream_target(self) -> tuple[Collection[Value], str | int]:
        return self["admin"]["$cmd.aggregate"], 1

    HOST = "localhost"
    PORT = 27017
    _is_silent = False

    @clears_locals
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
        named_options = {"document_class": document_class, "tz_aware": tz_aware, "connect": connect}
        keywords = without_none(kwargs, **named_options, type_registry=type_registry)
        host_and_port = (self.HOST if host is None else host, self.PORT if port is None else port)
        self._options = options = ClientOptions(*host_and_port, keywords, silent=self._is_silent)
        # Use the object DEFAULT_CODEC_OPTIONS if possible, because comparisons of identical objects are fast.
        is_default = options.codec_options == DEFAULT_CODEC_OPTIONS
        codec_options = DEFAULT_CODEC_OPTIONS if is_default else options.codec_options
        super().__init__(codec_options, options.read_preference, options.write_concern, options.read_concern)
        observers = create_observers(options.telemetry())
        self._topology = Topology(options.topology(None if observers is None else observers.connection_made))
        self._encrypter: Encrypter | None = None
        if options.auto_encryption_opts is not None:
            # Import the class only if necessary, because its module loads libmongocrypt.
            from gmongo._encryption.automatic import Encrypter

            arguments = {"host": host, "port": port, **keywords}
            self._encrypter = Encrypter(self, options.auto_encryption_opts, MongoClient, _SilentClient, arguments)
        self._executor = self._make_executor(options, observers)
        self._cursor_killer = CursorKiller(self._executor)
        self._session_reaper = SessionReaper(self._executor)
        self._sessions: WeakSet[ClientSession] = WeakSet()  # explicit sessions, whose transactions close() aborts
        if options.connect:
            self._topology.open()

    def _make_executor(self, options: ClientOptions, observers: Observers | None) -> Executor:
        """Create an executor, with encryption and telemetry if the options require them."""
        executor_class: type[Executor] = Executor
        if self._encrypter is not None:
            from gmongo._encryption.operation import EncryptingExecutor

            executor_class = EncryptingExecutor
        encrypters = () if self._encrypter is None else (self._encrypter,)
        if observers is None:
            events = CommandEvents(options.listeners.command, silent=options.silent)
            return executor_class(self._topology, options.execution(), events, *encrypters)
        from gmongo.execution.traced_executor import TracedCommands, with_observers

        observed_events = TracedCommands(options.listeners.command, observers)
        executor = with_observers(executor_class)(self._topology, options.execution(), observed_events, *encrypters)
        executor.observers = observers
        return executor

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
        codec_options: CodecOptions[OtherType] = ...,
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
        """Return a database with the given options. For each option that is None, use the option of this client.

            >>> client.get_database("shop", read_preference=ReadPreference.NEAREST).name
            'shop'

        :param name: the name of the database; None (the default) uses the database in the URI.
        :param timeout_ms: the time limit of each operation in milliseconds; 0 means no limit, None inherits the limit.
        :raises ConfigurationError: `name` is None, and the URI names no database.
        :raises InvalidName: the name is not allowed for a database.
        """
        name = self._options.default_database if name is None else name
        if name is None:
            raise ConfigurationError("No default database name defined or provided.")
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
        codec_options: CodecOptions[OtherType] = ...,
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
        """Return the database that the URI names. For each option that is None, use the option of this client.

        :param default: the name of the database if the URI names no database; None by default.
        :param timeout_ms: the time limit of each operation in milliseconds; 0 means no limit, None inherits the limit.
        :raises ConfigurationError: the URI names no database, and `default` is None.
        :raises InvalidName: the name is not allowed for a database.
        """
        name = self._options.default_database or default
        return self.get_database(name, codec_options, read_preference, write_concern, read_concern, timeout_ms)

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
        """Return a cursor over the descriptions of the databases.

        Specification: Enumerating Databases.

        :param kwargs: further command fields: ``filter``, ``nameOnly`` and ``authorizedDatabases``.
        :returns: documents with ``name``; without ``nameOnly``, also ``sizeOnDisk`` and ``empty``.
        """
        command = without_none({"listDatabases": 1, **kwargs}, comment=comment)
        context = OperationContext("admin", codec_options=self._codec_options)
        reply = self._executor.run(ReadCommand(context, command), session)
        return CommandCursor._from_documents(self.admin["$cmd"], required_field(reply, "databases", DOCUMENTS), session)

    def list_database_names(self, session: ClientSession | None = None, comment: Value = None) -> list[str]:
        """Return the names of the databases.

        Specification: Enumerating Databases.

        :returns: a list of the names, in no defined order.
        """
        return [required_field(each, "name", TEXT) for each in self.list_databases(session, comment, nameOnly=True)]

    def drop_database(
        self, name_or_database: str | Database[Value], session: ClientSession | None = None, comment: Value = None
    ) -> None:
        """Drop a database and its collections. Do nothing if the database does not exist.

        :param name_or_database: the name of the database, or a :class:`~gmongo.database.Database`.
        :raises InvalidName: the name is not allowed for a database.
        """
        database = name_or_database if isinstance(name_or_database, Database) else self[name_or_database]
        command = without_none({"dropDatabase": 1}, comment=comment)
        self._executor.run(WriteCommand(self._make_write_context(database.name, self._write_concern), command), session)

    def _make_write_context(self, database_name: str, write_concern: WriteConcern) -> OperationContext:
        return OperationContext(database_name, "", self._codec_options, write_concern=write_concern.document)

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
        """Run many writes to any collections in as few messages as possible (MongoDB 8.0).

        Other greenlets run while the client encodes the writes::

            client.bulk_write(
                [
                    InsertOne({"_id": 1, "total": 12}, namespace="shop.orders"),
                    UpdateOne({"_id": "ann"}, {"$inc": {"orders": 1}}, namespace="shop.customers"),
                ]
            )

        Specification: Bulk Write.

        :param models: a list of write models, as for :meth:`.Collection.bulk_write`. Each model must
            have a `namespace`.
        :param ordered: True (the default) stops at the first error. False runs all writes, in any
            order. Unacknowledged writes (``w=0``) must be unordered.
        :param verbose_results: True returns the result of each write. False (the default) returns
            only the numbers of written documents. Unacknowledged writes require False.
        :param write_concern: the write concern; None (the default) uses the client's write concern.
        :raises ClientBulkWriteException: some writes failed. The exception contains the errors and the partial result.
        :raises InvalidOperation: `models` is empty, a model has no namespace, the server is older
            than MongoDB 8.0, or the client has ``auto_encryption_opts``.
        :raises DocumentTooLarge: a write is larger than the maximum size of a message.
        :raises TypeError: an element of `models` is no write model, or an argument's type is wrong.
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
        _check_unacknowledged_bulk(models, acknowledged, ordered, verbose_results)
        fields = {"bypassDocumentValidation": bypass_document_validation, "comment": comment, "let": checked_let(let)}
        bulk = ClientBulk(
            self._executor,
            self._cursor_killer,
            self._make_write_context("admin", concern),
            ordered=ordered,
            verbose=verbose_results,
            fields=without_none({}, **fields),
            acknowledged=acknowledged,
            session=session,
        )
        return ClientBulkWriteResult(bulk.execute(Writes(models, self._codec_options)), acknowledged, verbose_results)

    def start_session(
        self,
        causal_consistency: bool | None = None,
        default_transaction_options: TransactionOptions | None = None,
        snapshot: bool | None = False,
        default_timeout_ms: float | None = None,
    ) -> ClientSession:
        """Start a session.

        Use the session in a ``with`` statement. Only one greenlet at a time may use a session.

        ::

            with client.start_session() as session, session.start_transaction():
                orders.insert_one(order, session=session)
                stock.update_one(filter, update, session=session)

        Specifications: Driver Sessions, Causal Consistency, Snapshot Reads.

        :raises ConfigurationError: both `causal_consistency` and `snapshot` are True.
        :raises TypeError: `default_transaction_options` is not a :class:`~gmongo.client_session.TransactionOptions`.
        """
        options = SessionOptions(causal_consistency, default_transaction_options, snapshot, default_timeout_ms)
        self._topology.open()
        session = ClientSession(self, self._executor.sessions.acquire(), options)
        self._sessions.add(session)
        return session

    @property
    def topology_description(self) -> TopologyDescription:
        """The current topology description. Servers are unknown before the first use and absent after :meth:`close`."""
        return self._topology.description

    @property
    def address(self) -> Address | None:
        """The address of the standalone, the mongos or the primary, as host and port.

        The property waits until the client has discovered a writable server.

        :raises InvalidOperation: the client knows several mongos servers.
        :raises ServerSelectionTimeoutError: no writable server within ``serverSelectionTimeoutMS`` or ``timeoutMS``.
        """
        server = self._topology.select_server(WRITABLE, "address", self._executor.deadline())
        topology_type = self._topology.description.topology_type
        if topology_type == TOPOLOGY_TYPE.Sharded and len(self._topology.description.server_descriptions()) > 1:
            raise InvalidOperation('Cannot use "address" property when load balancing among mongoses')
        return server.address

    @property
    def primary(self) -> Address | None:
        """The address of the primary as host and port. None if the client knows no primary of a replica set."""
        return next(iter(self._find_addresses(SERVER_TYPE.RSPrimary)), None)

    @property
    def secondaries(self) -> set[Address]:
        """The addresses of the secondaries that the client currently knows."""
        return self._find_addresses(SERVER_TYPE.RSSecondary)

    @property
    def arbiters(self) -> set[Address]:
        """The addresses of the arbiters that the client currently knows."""
        return self._find_addresses(SERVER_TYPE.RSArbiter)

    def _find_addresses(self, server_type: int) -> set[Address]:
        description = self.topology_description
        if description.topology_type not in _REPLICA_SET_TYPES:
            return set()
        servers = description.server_descriptions()
        return {address for address, server in servers.items() if server.server_type == server_type}

    @property
    def nodes(self) -> frozenset[Address]:
        """The addresses of the known servers, empty before the first use and after :meth:`close`."""
        return frozenset(server.address for server in self.topology_description.known_servers)

    @property
    def is_primary(self) -> bool:
        """True if the selected server accepts writes. The property waits for a writable server.

        :raises ServerSelectionTimeoutError: no writable server within ``serverSelectionTimeoutMS`` or ``timeoutMS``.
        """
        description = self._selected_description("is_primary")
        return description is not None and description.is_writable

    @property
    def is_mongos(self) -> bool:
        """True if the selected server is a mongos. The property waits for a writable server.

        :raises ServerSelectionTimeoutError: no writable server within ``serverSelectionTimeoutMS`` or ``timeoutMS``.
        """
        description = self._selected_description("is_mongos")
        return description is not None and description.mongos

    def _selected_description(self, name: str) -> ServerDescription | None:
        server = self._topology.select_server(WRITABLE, name, self._executor.deadline())
        return self._topology.description.get(server.address)

    @property
    def options(self) -> ClientOptions:
        """The options of the client, including the defaults of options that the application did not set."""
        return self._options

    def append_metadata(self, driver_info: DriverInfo) -> None:
        """Add the metadata of a wrapping library to the client metadata, which new connections send in the handshake.

        The metadata of earlier calls remains. The client adds equal metadata only once.
        Specification: MongoDB Handshake, "Supporting Wrapping Libraries".

        :param driver_info: the name, the version and the platform of the library.
        :raises TypeError: `driver_info` is not a :class:`~gmongo.driver_info.DriverInfo`.
        """
        if not isinstance(driver_info, DriverInfo):
            raise TypeError(f"driver_info must be a DriverInfo, not {short(driver_info)}")
        if any(_is_same_library(driver_info, each) for each in self._options.libraries):
            return
        self._options.libraries += (driver_info,)
        metadata = self._topology.settings.connection.metadata
        assert isinstance(metadata, dict)  # each handshake reads this dict, so that a change applies to new connections
        metadata.clear()
        metadata.update(self._options.metadata())

    def server_info(self, session: ClientSession | None = None) -> DocumentDict:
        """Return the build information of a server, such as ``{"version": "8.0.4", …}``."""
        return self.admin.command("buildinfo", read_preference=PrimaryPreferred(), session=session)

    def pool_stats(self) -> list[DocumentDict]:
        """Return the state of each server's connection pool: a list of mappings with these keys.

        - ``address``: the address of the server.
        - ``state``: ``"ready"``, ``"closed"``, or ``"paused"``. A paused pool hands out no connections until the server
          is available.
        - ``generation``: the pool generation. Each clear of the whole pool increments the generation.
        - ``total``: the number of connections. ``available``: the number of idle connections. ``pending``: the number
          of connections that the pool is establishing. ``in_use``: the number of checked-out
          connections. ``draining``: the number of connections that wait for a late reply.
        - ``in_use_by``: the number of checked-out connections for each purpose.
        - ``held``: a list of mappings, one for each checked-out connection. The connection with the longest check-out
          is the first. The keys are ``connection`` (the connection ID), ``greenlet``, ``operation``
          (the last command), ``purpose`` and ``seconds`` (the time since the check-out).
        - ``waiting``: the number of greenlets in the wait queue.
        - ``oldest_wait``: the seconds that the first greenlet in the wait queue has waited. None if the queue is empty.

        This method sends no command. Specification: Connection Monitoring and Pooling, "Connection Pool".
        """
        return [pool.stats() for pool in self._topology.pools()]

    def retry_stats(self) -> dict[str, float]:
        """Return statistics of the overload retries of the client, as a mapping with these keys.

        - ``tokens``: the number of remaining tokens for retries. The maximum is 1000.
        - ``retries``: the number of overload retries since the creation of the client.
        - ``slept``: the total backoff since the creation of the client, in seconds.
        - ``exhausted``: the number of operations that failed because no token remained.

        This method sends no command. Specification: Client Backpressure.
        """
        return self._executor.overload.stats()

    def wait_until_ready(self, timeout: float | None = None) -> None:
        """Wait until a server replies and each available server has ``minPoolSize`` connections.

        ::

            client = MongoClient(uri, minPoolSize=5)
            client.wait_until_ready(timeout=10)

        A call at the start of a program reports a wrong URI or password before the first operation. The method sends
        ``ping`` with the client's read preference, and repeats ``ping`` after network errors.

        :param timeout: the time limit in seconds, which overrides ``timeoutMS``. 0 means no limit,
            and None (the default) uses ``serverSelectionTimeoutMS``.
        :raises ServerSelectionTimeoutError: the client was not ready in time. The message says why.
        :raises OperationFailure: the authentication failed.
        :raises ConfigurationError: the server or the DNS records contradict the options.
        """
        limit_and_option = checked_seconds(timeout), "timeout of wait_until_ready"
        if timeout is None:
            limit_and_option = self._options.server_selection_timeout, "serverSelectionTimeoutMS"
        with until(deadline_after(*limit_and_option)):
            deadline = current_deadline()
            for check in (self._send_ping, self._describe_missing_connections):
                while reason := check():
                    time_left = remaining(deadline)
                    if time_left is not None and time_left <= _READY_INTERVAL:
                        raise ServerSelectionTimeoutError(f"not ready within {limit_text(deadline)}: {reason}")
                    sleep(_READY_INTERVAL)

    def _send_ping(self) -> str | None:
        """Send a ``ping``. Return None, or an error text if a later ``ping`` may succeed."""
        try:
            self.admin.command("ping", read_preference=self.read_preference)
        except PyMongoError as error:
            if isinstance(error, ServerSelectionTimeoutError) or not (
                error.timeout or isinstance(error, AutoReconnect)
            ):
                raise
            return str(error)
        return None

    def _describe_missing_connections(self) -> str | None:
        """Return None if the client is ready. Otherwise return the reason as a text."""
        min_pool_size = self._options.pool_options.min_pool_size
        counts = {
            address_text(pool["address"]): pool["total"] - pool["pending"]
            for pool in self.pool_stats()
            if pool["state"] == "ready" and pool["address"] in self.nodes
        }
        shortages = [f"{address} has {count} of them" for address, count in counts.items() if count < min_pool_size]
        if not counts:
            return "the server is not available any more"
        return f"minPoolSize is {min_pool_size} connections, and {', '.join(shortages)}" if shortages else None

    def close(self) -> None:
        """End idle sessions and dropped cursors, stop the client's greenlets, and close connections.

        After this method, the application cannot use the client. If the application drops the last reference instead,
        the client stops its greenlets and closes its connections without a command.

        Operations in progress in other greenlets continue for up to ten seconds, and then raise
        :class:`~gmongo.errors.AutoReconnect`. Retries raise :class:`~gmongo.errors.InvalidOperation`.
        The method aborts open transactions, except transactions with an operation in progress in
        another greenlet. The method kills each interrupted command, at least 0.1 seconds after the
        interruption. During interpreter shutdown, this method does nothing.

        :raises InvalidOperation: the client belongs to another native thread.
        """
        # During interpreter shutdown no greenlet can run. The end of the process closes the sockets.
        if self._topology.closed or sys.is_finalizing():
            return
        self._topology.check_thread()
        try:
            if self._topology.description.has_readable_server(ANY_SERVER):
                with Timeout(_CLOSE_TIMEOUT, False), bind_session(None):
                    self._cursor_killer.reap()
                    for session in list(self._sessions):
                        session._abort_at_close()
                    interrupted_lsids = self._session_reaper.end_all()
                    for operation in EndSessions.batches(interrupted_lsids + self._executor.sessions.drain()):
                        self._executor.run(operation)
        except (PyMongoError, BSONError):
            pass  # without the command, the server ends the sessions after a timeout
        finally:
            self._cursor_killer.stop_reading()
            self._session_reaper.close()
            self._topology.close()
            if self._encrypter is not None:
                self._encrypter.close()

    def __enter__(self) -> MongoClient[DocumentType]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle a MongoClient; create a client in each process")

    def __copy__(self) -> MongoClient[DocumentType]:
        return self  # a copy would share the pools, and its close() would close the original's pools

    def eq_props(self) -> tuple[object, ...]:
        """Return a tuple that identifies the deployment. Clients with equal tuples are equal."""
        return self._options.identity

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MongoClient):
            return NotImplemented
        return self.eq_props() == other.eq_props()

    def __hash__(self) -> int:
        return hash(self.eq_props())

    def __repr__(self) -> str:
        options = self._options
        hosts = [f"{host}:{port}" if port else host for host, port in options.seeds]
        kind = options.codec_options.document_class
        shown_options = {
            "host": repr(f"mongodb+srv://{options.srv_hostname}" if options.is_unresolved else hosts),
            "document_class": "dict" if kind is dict else f"{kind.__module__}.{kind.__name__}",
            "tz_aware": repr(options.codec_options.tz_aware),
            "connect": repr(options.connect),
        }
        for name, value in options.merged.items():
            if name not in SECRET_OPTION_NAMES or name == "authmechanismproperties":
                shown_options.setdefault(name, _format_option(name, value))
        return f"MongoClient({', '.join(f'{name}={value}' for name, value in shown_options.items())})"


class _SilentClient(MongoClient[Value]):
    """Client without logs, events and telemetry, for plaintext commands of automatic encryption."""

    _is_silent = True


def _is_same_library(first: DriverInfo, second: DriverInfo) -> bool:
    """Return True if two libraries have equal metadata. The function treats None as an empty text."""
    return all((left or None) == (right or None) for left, right in zip(first, second, strict=True))


def _format_option(name: str, value: object) -> str:
    """Return the ``repr`` of the value of an option. Convert times from seconds to milliseconds."""
    if name == "authmechanismproperties" and isinstance(value, dict):
        return repr({each: item if each in SHOWN_PROPERTIES else "<redacted>" for each, item in value.items()})
    if name.endswith("ms") and name not in ("localthresholdms", "wtimeoutms") and isinstance(value, (int, float)):
        return f"{value * 1000:.10g}"
    return repr(value)


def _check_unacknowledged_bulk(models: list[Value], acknowledged: bool, ordered: bool, verbose_results: bool) -> None:
    checked_flag("ordered", ordered)
    checked_flag("verbose_results", verbose_results)
    if acknowledged:
        return
    if verbose_results:
        raise InvalidOperation("Cannot request unacknowledged write concern and verbose results")
    if ordered:
        raise InvalidOperation("Cannot request unacknowledged write concern and ordered writes")
    check_unacknowledged_models(models)
