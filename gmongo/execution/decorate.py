"""What goes on every command, whatever it is: the one place where that is done."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from time import monotonic
from typing import Any

import bson

from gmongo.cmap.connection import Connection
from gmongo.errors import ConfigurationError, ExecutionTimeout
from gmongo.execution.attempt import Attempt
from gmongo.execution.deadline import without_wtimeout
from gmongo.execution.operation import Operation
from gmongo.sdam.topology import Topology
from gmongo.topology_type import TOPOLOGY_TYPE

_PRIMARY_PREFERRED = {"mode": "primaryPreferred"}
_MAX_TIME_EXPIRED = 50


class Decorator:
    """Puts on commands what does not depend on their kind.

    :param topology: knows the cluster time and the Stable API.
    """

    __slots__ = ("_api", "_load_balanced", "_topology")

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._api = topology.settings.connection.server_api
        self._load_balanced = topology.settings.load_balanced

    def decorate(self, command: dict[str, Any], attempt: Attempt, connection: Connection) -> None:
        """Add the session, the transaction, times, concerns, the read preference and the API version."""
        operation, session = attempt.operation, attempt.session
        command["$db"] = operation.database
        if operation.read_concern:
            command["readConcern"] = operation.read_concern
        concern = operation.write_concern
        if concern and attempt.deadline is not None:
            concern = without_wtimeout(concern)
        if concern:
            command["writeConcern"] = concern
        if session is not None:
            if connection.hello.sessions_supported or self._load_balanced:
                self._add_session(command, attempt, connection)
            elif session.explicit is not None:
                raise ConfigurationError("Sessions are not supported by this MongoDB deployment")
        cluster_time = self._topology.cluster_time
        if session is not None and session.explicit is not None:
            cluster_time = _newer(cluster_time, session.explicit.cluster_time)
        if cluster_time is not None:
            command["$clusterTime"] = cluster_time
        self._add_read_preference(command, attempt.selector, operation, connection)
        if attempt.deadline is not None:
            _add_max_time(command, attempt, attempt.deadline)
        if self._api:
            command.update(self._api)

    def _add_session(self, command: dict[str, Any], attempt: Attempt, connection: Connection) -> None:
        operation, session, transaction = attempt.operation, attempt.session, attempt.transaction
        assert session is not None
        server_session = session.server_session
        server_session.last_used = monotonic()
        command["lsid"] = server_session.lsid
        if transaction is not None:
            command["txnNumber"] = bson.Int64(server_session.transaction_number)
            if operation.ends_transaction:
                command["autocommit"] = False
            else:
                assert session.explicit is not None
                transaction.decorate(command, session.explicit.operation_time_to_follow)
            return
        if session.explicit is not None:
            session.explicit.decorate(command, operation.follows_time, connection.hello)
        if attempt.numbered:
            if operation.transaction_number is None:
                server_session.transaction_number += 1
                operation.transaction_number = bson.Int64(server_session.transaction_number)
            command["txnNumber"] = operation.transaction_number

    def _add_read_preference(
        self, command: dict[str, Any], selector: Any, operation: Operation, connection: Connection
    ) -> None:
        if selector.mode != 0:
            if connection.hello.is_standalone and not self._load_balanced:
                return
            command["$readPreference"] = selector.document
        elif (
            not operation.is_write
            and not connection.hello.is_standalone
            and not connection.hello.is_mongos
            and self._topology.description.topology_type == TOPOLOGY_TYPE.Single
        ):
            # Asked of a member directly, any member answers.
            command["$readPreference"] = _PRIMARY_PREFERRED


def _add_max_time(command: dict[str, Any], attempt: Attempt, deadline: float) -> None:
    """Let the server give up in time for its reply to arrive.

    :raises ExecutionTimeout: there is no time left for the way there and back.
    """
    if deadline == inf:
        return
    left = deadline - monotonic() - attempt.min_round_trip_time
    if left <= 0:
        message = (
            f"{attempt.operation.name} was not sent: its time limit leaves less than the "
            f"{attempt.min_round_trip_time * 1000:.1f} ms that the network takes"
        )
        details = {"ok": 0, "errmsg": message, "code": _MAX_TIME_EXPIRED}
        raise ExecutionTimeout(message, _MAX_TIME_EXPIRED, details)
    if attempt.operation.takes_max_time:
        command["maxTimeMS"] = max(1, int(left * 1000))


def _newer(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The greater of two cluster times."""
    if one is None or other is None:
        return one or other
    return other if other["clusterTime"] > one["clusterTime"] else one
