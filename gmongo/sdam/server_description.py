"""What the client knows of one server, from its last hello or error. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from bson.objectid import ObjectId

from gmongo import _clock
from gmongo._server_facts import sizes, wire_versions
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address, parse_address

_WRITABLE = frozenset({SERVER_TYPE.RSPrimary, SERVER_TYPE.Standalone, SERVER_TYPE.Mongos, SERVER_TYPE.LoadBalancer})
_READABLE = _WRITABLE | {SERVER_TYPE.RSSecondary}
_EPOCH = datetime(1970, 1, 1)


def server_type_of(hello: Mapping[str, Any]) -> int:
    """The kind of server that sent this reply."""
    if not hello.get("ok"):
        return SERVER_TYPE.Unknown
    if hello.get("isreplicaset"):
        return SERVER_TYPE.RSGhost
    if hello.get("setName"):
        return _member_type_of(hello)
    if hello.get("msg") == "isdbgrid":
        return SERVER_TYPE.Mongos
    return SERVER_TYPE.Standalone


def _member_type_of(hello: Mapping[str, Any]) -> int:
    if hello.get("hidden"):
        return SERVER_TYPE.RSOther
    if hello.get("isWritablePrimary", hello.get("ismaster")):
        return SERVER_TYPE.RSPrimary
    if hello.get("secondary"):
        return SERVER_TYPE.RSSecondary
    if hello.get("arbiterOnly"):
        return SERVER_TYPE.RSArbiter
    return SERVER_TYPE.RSOther


class ServerDescription:
    """What the client knows of one server.

    Specification: Server Discovery and Monitoring, "ServerDescription".

    :param address: of the server, as host and port.
    :param hello: the reply to its last hello; None makes the server Unknown.
    :param round_trip_time: average, in seconds.
    :param error: why the server is Unknown.
    :param min_round_trip_time: the smallest of the last ten samples, in seconds.
    :param server_type: overrides the type that follows from `hello`.
    :param topology_version: overrides that of `hello`.
    :param last_update_time: when it was checked, on the clock of :mod:`gmongo._clock`; None is now.
    """

    __slots__ = (
        "_address",
        "_all_hosts",
        "_error",
        "_hello",
        "_last_update_time",
        "_min_round_trip_time",
        "_round_trip_time",
        "_server_type",
        "_topology_version",
    )

    def __init__(
        self,
        address: Address,
        hello: Mapping[str, Any] | None = None,
        round_trip_time: float | None = None,
        error: BaseException | None = None,
        min_round_trip_time: float = 0.0,
        *,
        server_type: int | None = None,
        topology_version: Mapping[str, Any] | None = None,
        last_update_time: float | None = None,
    ) -> None:
        self._address = address
        self._hello: Mapping[str, Any] = hello or {}
        self._round_trip_time = round_trip_time
        self._min_round_trip_time = min_round_trip_time
        self._error = error
        self._server_type = server_type_of(self._hello) if server_type is None else server_type
        self._last_update_time = _clock.monotonic() if last_update_time is None else last_update_time
        self._all_hosts = frozenset(
            parse_address(text) for field in ("hosts", "passives", "arbiters") for text in self._hello.get(field, ())
        )
        self._topology_version = topology_version or self._hello.get("topologyVersion")

    def to_unknown(self, error: BaseException | None = None) -> ServerDescription:
        """The description of the same server after an error.

        :param error: which one; None is none.
        """
        details = getattr(error, "details", None)
        version = details.get("topologyVersion") if isinstance(details, Mapping) else None
        return ServerDescription(self._address, error=error, topology_version=version)

    @property
    def address(self) -> Address:
        """Host and port."""
        return self._address

    @property
    def server_type(self) -> int:
        """One of :data:`~gmongo.server_type.SERVER_TYPE`."""
        return self._server_type

    @property
    def server_type_name(self) -> str:
        """The type by name, such as ``"RSPrimary"``."""
        return SERVER_TYPE._fields[self._server_type]

    @property
    def all_hosts(self) -> frozenset[Address]:
        """All members this server knows: hosts, passives and arbiters."""
        return self._all_hosts

    @property
    def tags(self) -> Mapping[str, Any]:
        """The member's tags."""
        tags: Mapping[str, Any] = self._hello.get("tags", {})
        return tags

    @property
    def replica_set_name(self) -> str | None:
        """The name of its replica set."""
        return self._hello.get("setName")

    @property
    def primary(self) -> Address | None:
        """Whom the server takes for the primary."""
        text = self._hello.get("primary")
        return parse_address(text) if text else None

    @property
    def me(self) -> Address | None:
        """The server's own idea of its address."""
        text = self._hello.get("me")
        return parse_address(text) if text else None

    @property
    def set_version(self) -> int | None:
        """The version of the replica set's configuration."""
        return self._hello.get("setVersion")

    @property
    def election_id(self) -> ObjectId | None:
        """Which election made this server primary."""
        return self._hello.get("electionId")

    @property
    def election_tuple(self) -> tuple[int | None, ObjectId | None]:
        """Set version and election ID."""
        return self.set_version, self.election_id

    @property
    def max_bson_size(self) -> int:
        """The largest document in bytes."""
        size: int = self._hello.get("maxBsonObjectSize", sizes.MAX_BSON_SIZE)
        return size

    @property
    def max_message_size(self) -> int:
        """The largest message in bytes."""
        size: int = self._hello.get("maxMessageSizeBytes", sizes.MAX_MESSAGE_SIZE)
        return size

    @property
    def max_write_batch_size(self) -> int:
        """The most writes in one command."""
        most: int = self._hello.get("maxWriteBatchSize", sizes.MAX_WRITE_BATCH_SIZE)
        return most

    @property
    def min_wire_version(self) -> int:
        """The oldest wire protocol version the server speaks."""
        version: int = self._hello.get("minWireVersion", 0)
        return version

    @property
    def max_wire_version(self) -> int:
        """The newest wire protocol version the server speaks."""
        version: int = self._hello.get("maxWireVersion", 0)
        return version

    @property
    def logical_session_timeout_minutes(self) -> int | None:
        """How long an unused session lives; None without sessions."""
        return self._hello.get("logicalSessionTimeoutMinutes")

    @property
    def cluster_time(self) -> Mapping[str, Any] | None:
        """The cluster time of the reply."""
        return self._hello.get("$clusterTime")

    @property
    def last_write_date(self) -> float | None:
        """When the member last applied a write, in seconds since 1970."""
        date: datetime | None = self._hello.get("lastWrite", {}).get("lastWriteDate")
        if date is None:
            return None
        if date.tzinfo is not None:
            date = date.astimezone(timezone.utc).replace(tzinfo=None)
        return (date - _EPOCH).total_seconds()

    @property
    def last_update_time(self) -> float:
        """When the server was last checked, on the clock of :mod:`gmongo._clock`."""
        return self._last_update_time

    @property
    def round_trip_time(self) -> float | None:
        """The average, in seconds."""
        return self._round_trip_time

    @property
    def min_round_trip_time(self) -> float:
        """The smallest of the last ten, in seconds; 0 with fewer than two."""
        return self._min_round_trip_time

    @property
    def topology_version(self) -> Mapping[str, Any] | None:
        """Orders the replies of one server process: a newer one has a larger counter."""
        return self._topology_version

    @property
    def error(self) -> BaseException | None:
        """Why the server is Unknown."""
        return self._error

    @property
    def is_server_type_known(self) -> bool:
        """Whether the last check succeeded."""
        return self._server_type != SERVER_TYPE.Unknown

    @property
    def is_writable(self) -> bool:
        """Whether writes may go there."""
        return self._server_type in _WRITABLE

    @property
    def is_readable(self) -> bool:
        """Whether reads may go there."""
        return self._server_type in _READABLE

    @property
    def mongos(self) -> bool:
        """Whether it is a mongos."""
        return self._server_type == SERVER_TYPE.Mongos

    @property
    def retryable_reads_supported(self) -> bool:
        """Whether reads may be retried on it."""
        return self.max_wire_version >= wire_versions.RETRYABLE_READS or self._server_type == SERVER_TYPE.LoadBalancer

    @property
    def retryable_writes_supported(self) -> bool:
        """Whether writes may be retried on it."""
        if self._server_type == SERVER_TYPE.LoadBalancer:
            return True
        return self.logical_session_timeout_minutes is not None and self._server_type in (
            SERVER_TYPE.Mongos,
            SERVER_TYPE.RSPrimary,
        )

    def _identity(self) -> tuple[Any, ...]:
        """What makes two descriptions equal; times do not."""
        return (
            self._address,
            self._server_type,
            self.min_wire_version,
            self.max_wire_version,
            self.me,
            self.all_hosts,
            self.tags,
            self.replica_set_name,
            self.set_version,
            self.election_id,
            self.primary,
            self.logical_session_timeout_minutes,
            self._topology_version,
            None if self._error is None else (type(self._error), str(self._error)),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ServerDescription):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((self._address, self._server_type))

    def __repr__(self) -> str:
        rtt = self._round_trip_time
        error = f", error={self._error!r}" if self._error is not None else ""
        return f"<ServerDescription {self._address} server_type: {self.server_type_name}, rtt: {rtt}{error}>"
