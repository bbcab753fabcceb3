"""Immutable description of one server after its last hello or error."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from operator import attrgetter
from typing import Any

from bson.objectid import ObjectId

from gmongo import _clock
from gmongo._documents import Document
from gmongo._parameter_docs import read_only
from gmongo._server_facts import sizes, wire_versions
from gmongo.errors import (
    AutoReconnect,
    NotPrimaryError,
    PoolClearedError,
    ServerSelectionTimeoutError,
    WriteConcernError,
)
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address, parse_address

_WRITE_TYPES = frozenset({SERVER_TYPE.RSPrimary, SERVER_TYPE.Standalone, SERVER_TYPE.Mongos, SERVER_TYPE.LoadBalancer})
_READ_TYPES = _WRITE_TYPES | {SERVER_TYPE.RSSecondary}
# Servers of these types support retryable writes if they support sessions.
_RETRY_TYPES = frozenset({SERVER_TYPE.Mongos, SERVER_TYPE.RSPrimary})
_EPOCH = datetime(1970, 1, 1)
_get_compared_attributes = attrgetter(
    *("address", "server_type", "min_wire_version", "max_wire_version", "me", "all_hosts", "tags"),
    *("replica_set_name", "set_version", "election_id", "primary", "logical_session_timeout_minutes"),
    "topology_version",
)


def parse_server_type(hello: Document) -> int:
    """Return the type of the server that sent a hello reply."""
    if not hello.get("ok"):
        return SERVER_TYPE.Unknown
    if hello.get("isreplicaset"):
        return SERVER_TYPE.RSGhost
    if hello.get("setName"):
        return _parse_member_type(hello)
    if hello.get("msg") == "isdbgrid":
        return SERVER_TYPE.Mongos
    return SERVER_TYPE.Standalone


def _parse_member_type(hello: Document) -> int:
    if hello.get("hidden"):
        return SERVER_TYPE.RSOther
    if hello.get("isWritablePrimary", hello.get("ismaster")):
        return SERVER_TYPE.RSPrimary
    if hello.get("secondary"):
        return SERVER_TYPE.RSSecondary
    if hello.get("arbiterOnly"):
        return SERVER_TYPE.RSArbiter
    return SERVER_TYPE.RSOther


def _hello_field(name: str, doc: str, default: object = None) -> Any:
    """Return a read-only property for the field `name` of the hello reply."""
    return property(lambda description: description._hello.get(name, default), doc=doc)


class ServerDescription:
    """State of one server after its last hello reply or error.

    Specification: Server Discovery and Monitoring, "ServerDescription".

    :param address: address of the server: host and port.
    :param hello: reply to the last hello; None makes the type Unknown, unless `server_type` is set.
    :param round_trip_time: average round trip time in seconds.
    :param error: error that made the server Unknown.
    :param min_round_trip_time: minimum of the last ten round trip times in seconds.
    :param server_type: server type; None means the type from `hello`.
    :param topology_version: topology version; None means the topology version from `hello`.
    :param last_update_time: time of the hello or the error, as measured by :mod:`gmongo._clock`; None
        means now.
    """

    def __init__(
        self,
        address: Address,
        hello: Document | None = None,
        round_trip_time: float | None = None,
        error: BaseException | None = None,
        min_round_trip_time: float = 0.0,
        *,
        server_type: int | None = None,
        topology_version: Document | None = None,
        last_update_time: float | None = None,
    ) -> None:
        hello = hello or {}
        self._address = address
        self._hello: Document = hello
        self._round_trip_time = round_trip_time
        self._min_round_trip_time = min_round_trip_time
        self._error = error
        self._server_type = kind = parse_server_type(hello) if server_type is None else server_type
        self._is_server_type_known = kind != SERVER_TYPE.Unknown
        self._is_writable = kind in _WRITE_TYPES
        self._is_readable = kind in _READ_TYPES
        self._last_update_time = _clock.monotonic() if last_update_time is None else last_update_time
        self._topology_version = topology_version or hello.get("topologyVersion")
        host_lists = (hello.get(field, ()) for field in ("hosts", "passives", "arbiters"))
        self._all_hosts = frozenset(parse_address(host) for hosts in host_lists for host in hosts)
        primary, me = hello.get("primary"), hello.get("me")
        self._primary = parse_address(primary) if primary else None
        self._me = parse_address(me) if me else None
        has_sessions = hello.get("logicalSessionTimeoutMinutes") is not None
        self._retryable_writes_supported = kind == SERVER_TYPE.LoadBalancer or (has_sessions and kind in _RETRY_TYPES)

    address: Address = read_only("_address", "Host and port.")
    server_type: int = read_only("_server_type", "One of :data:`~gmongo.server_type.SERVER_TYPE`.")
    all_hosts: frozenset[Address] = read_only("_all_hosts", "Members in the hello reply: hosts, passives and arbiters.")
    tags: Document = _hello_field("tags", "Tags of the member.", {})
    replica_set_name: str | None = _hello_field("setName", "Name of the replica set of the server.")
    primary: Address | None = read_only("_primary", "Address of the primary according to this server.")
    me: Address | None = read_only("_me", "Address of the server in its replica set configuration.")
    set_version: int | None = _hello_field("setVersion", "Version of the replica set configuration.")
    election_id: ObjectId | None = _hello_field("electionId", "ID of the election that made this server primary.")
    max_bson_size: int = _hello_field("maxBsonObjectSize", "Maximum size of a document in bytes.", sizes.MAX_BSON_SIZE)
    max_message_size: int = _hello_field(
        "maxMessageSizeBytes", "Maximum size of a message in bytes.", sizes.MAX_MESSAGE_SIZE
    )
    max_write_batch_size: int = _hello_field(
        "maxWriteBatchSize", "Maximum number of writes in one command.", sizes.MAX_WRITE_BATCH_SIZE
    )
    min_wire_version: int = _hello_field("minWireVersion", "Lowest wire version that the server supports.", 0)
    max_wire_version: int = _hello_field("maxWireVersion", "Highest wire version that the server supports.", 0)
    logical_session_timeout_minutes: int | None = _hello_field(
        "logicalSessionTimeoutMinutes",
        "Minutes after which the server deletes an unused session; None without sessions.",
    )
    cluster_time: Document | None = _hello_field("$clusterTime", "Cluster time of the hello reply.")
    last_update_time: float = read_only("_last_update_time", "Time of the last hello or error (:mod:`gmongo._clock`).")
    round_trip_time: float | None = read_only("_round_trip_time", "Average round trip time in seconds.")
    min_round_trip_time: float = read_only(
        "_min_round_trip_time", "Minimum of the last ten round trip times in seconds; 0 with fewer than two times."
    )
    topology_version: Document | None = read_only(
        "_topology_version", "Topology version, whose counter orders the replies of one server process."
    )
    error: BaseException | None = read_only("_error", "Error that made the server Unknown.")
    is_server_type_known: bool = read_only("_is_server_type_known", "True if the server type is not Unknown.")
    is_writable: bool = read_only("_is_writable", "True if the server accepts writes.")
    retryable_writes_supported: bool = read_only("_retryable_writes_supported", "True if writes may be retried.")
    is_readable: bool = read_only("_is_readable", "True if the server accepts reads.")

    def to_unknown(self, error: BaseException | None = None) -> ServerDescription:
        """Return a description of type Unknown, with the topology version of the error reply or None.

        :param error: error that made the server Unknown, or None.
        """
        return ServerDescription(self._address, error=error, topology_version=find_topology_version(error))

    @property
    def server_type_name(self) -> str:
        """Name of the server type, such as ``"RSPrimary"``."""
        return SERVER_TYPE._fields[self._server_type]

    @property
    def election_tuple(self) -> tuple[int | None, ObjectId | None]:
        """Pair of the set version and the election ID."""
        return self.set_version, self.election_id

    @property
    def last_write_date(self) -> float | None:
        """Time of the last write that this member has applied, in seconds since 1970."""
        date: datetime | None = self._hello.get("lastWrite", {}).get("lastWriteDate")
        if date is None:
            return None
        if date.tzinfo is not None:
            date = date.astimezone(timezone.utc).replace(tzinfo=None)
        return (date - _EPOCH).total_seconds()

    @property
    def mongos(self) -> bool:
        """True if the server is a mongos."""
        return self._server_type == SERVER_TYPE.Mongos

    @property
    def retryable_reads_supported(self) -> bool:
        """True if the server supports retryable reads."""
        return self.max_wire_version >= wire_versions.RETRYABLE_READS or self._server_type == SERVER_TYPE.LoadBalancer

    def _make_comparison_key(self) -> tuple[object, ...]:
        """Return the values that ``==`` compares. Two equal descriptions may have different times."""
        error = self._error
        text = error and (getattr(error, "_stable_text", None) or str(error))
        return *_get_compared_attributes(self), type(error), text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ServerDescription):
            return NotImplemented
        return self._make_comparison_key() == other._make_comparison_key()

    def __hash__(self) -> int:
        return hash((self._address, self._server_type))

    def __repr__(self) -> str:
        rtt = self._round_trip_time
        error = f", error={self._error!r}" if self._error is not None else ""
        return f"<ServerDescription {self._address} server_type: {self.server_type_name}, rtt: {rtt}{error}>"


def find_topology_version(error: BaseException | None) -> Document | None:
    """Return the topology version of the reply that caused an error, or None."""
    if isinstance(error, WriteConcernError):
        return error._topology_version
    details = getattr(error, "details", None)
    return details.get("topologyVersion") if isinstance(details, Mapping) else None


def is_network_error(error: BaseException) -> bool:
    """Return True if an error is a network error or a network timeout (SDAM specification)."""
    excluded_errors = (NotPrimaryError, PoolClearedError, ServerSelectionTimeoutError)
    return isinstance(error, AutoReconnect) and not isinstance(error, excluded_errors)
