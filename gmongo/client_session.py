"""Client sessions, which tie operations together (Driver Sessions, Causal Consistency)."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bson.timestamp import Timestamp

from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.execution.sessions import ServerSession

if TYPE_CHECKING:
    from gmongo.mongo_client import MongoClient

__all__ = ["ClientSession", "SessionOptions"]


class SessionOptions:
    """The options of a session.

    :param causal_consistency: whether reads see what the session has written and read before; true by default.
    """

    __slots__ = ("_causal_consistency",)

    def __init__(self, causal_consistency: bool | None = None) -> None:
        self._causal_consistency = True if causal_consistency is None else causal_consistency

    @property
    def causal_consistency(self) -> bool:
        """Whether reads see what the session has written and read before."""
        return self._causal_consistency


class ClientSession:
    """A session of the application's; made by :meth:`MongoClient.start_session`. One greenlet at a time uses it."""

    def __init__(self, client: MongoClient[Any], server_session: ServerSession, options: SessionOptions) -> None:
        self._client = client
        self._server_session: ServerSession | None = server_session
        self._epoch = client._executor.epoch
        self._options = options
        self._cluster_time: Mapping[str, Any] | None = None
        self._operation_time: Timestamp | None = None

    @property
    def client(self) -> MongoClient[Any]:
        """The client that made it."""
        return self._client

    @property
    def options(self) -> SessionOptions:
        """Its options."""
        return self._options

    @property
    def session_id(self) -> Mapping[str, Any]:
        """What the server knows it by.

        :raises InvalidOperation: the session has ended.
        """
        return self.server_session.lsid

    @property
    def has_ended(self) -> bool:
        """Whether :meth:`end_session` was called."""
        return self._server_session is None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is in progress."""
        return False

    @property
    def cluster_time(self) -> Mapping[str, Any] | None:
        """The newest cluster time that the session has seen."""
        return self._cluster_time

    @property
    def operation_time(self) -> Timestamp | None:
        """The time of the session's last operation."""
        return self._operation_time

    def advance_cluster_time(self, cluster_time: Mapping[str, Any]) -> None:
        """Take over the cluster time of another session, if it is newer."""
        if not isinstance(cluster_time, Mapping) or not isinstance(cluster_time.get("clusterTime"), Timestamp):
            raise ValueError(f"cluster_time must be a document with a clusterTime, not {cluster_time!r}")
        known = self._cluster_time
        if known is None or cluster_time["clusterTime"] > known["clusterTime"]:
            self._cluster_time = cluster_time

    def advance_operation_time(self, operation_time: Timestamp) -> None:
        """Take over the operation time of another session, if it is newer."""
        if not isinstance(operation_time, Timestamp):
            raise TypeError(f"operation_time must be a Timestamp, not {operation_time!r}")
        if self._operation_time is None or operation_time > self._operation_time:
            self._operation_time = operation_time

    def end_session(self) -> None:
        """End the session. It may be called again."""
        session, self._server_session = self._server_session, None
        if session is not None:
            self._client._executor.give_session_back(session)

    def __enter__(self) -> ClientSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_session()

    # What the executor needs

    @property
    def server_session(self) -> ServerSession:
        """The logical session on the server.

        :raises InvalidOperation: the session has ended.
        """
        if self._server_session is None:
            raise InvalidOperation("Cannot use ended session")
        return self._server_session

    def check_use(self, executor: object, acknowledged: bool) -> None:
        """Refuse an operation that must not run in the session.

        :raises InvalidOperation: the session is of another client, or has ended.
        :raises ConfigurationError: the operation is an unacknowledged write.
        """
        if self._client._executor is not executor:
            raise InvalidOperation("Can only use session with the MongoClient that started it")
        if self._epoch != self._client._executor.epoch:
            raise InvalidOperation("the session was started before a fork, and belongs to the parent process")
        if not acknowledged:
            raise ConfigurationError("Explicit sessions are incompatible with unacknowledged write concern: w=0")
        if self.has_ended:
            raise InvalidOperation("Cannot use ended session")

    def decorate_read(self, command: dict[str, Any]) -> None:
        """Make a read causally consistent."""
        if self._options.causal_consistency and self._operation_time is not None:
            command["readConcern"] = {
                **command.get("readConcern", {}),
                "afterClusterTime": self._operation_time,
            }

    def end_implicit(self) -> None:
        """The application ends it."""

    def observe(self, reply: Mapping[str, Any]) -> None:
        """Learn the times of a reply."""
        if "$clusterTime" in reply:
            self.advance_cluster_time(reply["$clusterTime"])
        if "operationTime" in reply:
            self.advance_operation_time(reply["operationTime"])
