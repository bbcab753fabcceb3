"""Common fields that the driver adds to commands, such as ``$db`` and ``lsid``."""

from __future__ import annotations

from math import inf

import bson

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo._server_facts import codes
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.cmap.connection import Connection
from gmongo.cmap.hello import Hello
from gmongo.errors import ConfigurationError, ExecutionTimeout
from gmongo.execution.attempt import Attempt
from gmongo.execution.deadline import without_wtimeout
from gmongo.execution.operation import Operation
from gmongo.execution.server_session import ServerSession, ServerSessionPool
from gmongo.execution.sessions import Session, newer_cluster_time
from gmongo.sdam.topology import Topology
from gmongo.wire.timeout import limit_text


class CommandFields:
    """Object that adds the common fields to the commands of one client."""

    def __init__(self, topology: Topology, sessions: ServerSessionPool) -> None:
        self._topology = topology
        self._sessions = sessions
        self._api = topology.settings.connection.server_api

    def add_fields(self, command: DocumentDict, attempt: Attempt, connection: Connection) -> None:
        """Add the fields of the session, concerns, read preference, deadline and Stable API."""
        operation = attempt.operation
        context = operation.context
        command["$db"] = context.database
        # In a transaction, only the first command has a read concern, and only the last has a write
        # concern.
        if operation.takes_read_concern and context.read_concern and attempt.transaction is None:
            command["readConcern"] = context.read_concern
        if operation.takes_write_concern and (attempt.transaction is None or operation.ends_transaction):
            concern = context.write_concern
            if concern and attempt.deadline is not None:
                concern = without_wtimeout(concern)
            if concern:
                command["writeConcern"] = concern
        cluster_time = self._topology.cluster_time
        hello = connection.hello
        session = attempt.session
        if session is not None:
            if hello.sessions_supported or self._topology.settings.load_balanced:
                _add_session(command, attempt, session, hello)
            elif session.explicit is not None:
                raise ConfigurationError("Sessions are not supported by this MongoDB deployment")
            if session.explicit is not None:
                cluster_time = newer_cluster_time(cluster_time, session.explicit.cluster_time)
        elif operation.takes_session and (hello.sessions_supported or self._topology.settings.load_balanced):
            # An operation acquires its implicit session after the check-out, because only the command
            # needs a session.
            server_session = attempt.server_session = attempt.server_session or self._sessions.acquire()
            command["lsid"] = server_session.lsid
            if attempt.is_retryable_write:
                command["txnNumber"] = _assign_transaction_number(operation, server_session)
        if cluster_time is not None:
            command["$clusterTime"] = cluster_time
        if not operation.is_write:
            selector = attempt.selector
            if selector._mode != 0:
                if not hello.is_standalone or self._topology.settings.load_balanced:
                    command["$readPreference"] = selector.document
            elif (
                not hello.is_standalone
                and not hello.is_mongos
                and self._topology.description.topology_type == TOPOLOGY_TYPE.Single
            ):
                # A directly connected secondary rejects reads without the field `$readPreference`.
                command["$readPreference"] = {"mode": "primaryPreferred"}
        if attempt.deadline is not None and attempt.deadline != inf:
            server = self._topology.description.get(connection.address)
            _add_max_time(command, operation, attempt.deadline, server.min_round_trip_time if server else 0.0)
        if self._api:
            command.update(self._api)


def _add_session(command: DocumentDict, attempt: Attempt, session: Session, hello: Hello) -> None:
    operation, transaction = attempt.operation, attempt.transaction
    server_session = session.server_session
    server_session.last_used = _clock.monotonic()
    command["lsid"] = server_session.lsid
    if transaction is not None:
        command["txnNumber"] = bson.Int64(server_session.transaction_number)
        if operation.ends_transaction:
            command["autocommit"] = False
        else:
            assert session.explicit is not None
            transaction.add_fields(command, session.explicit.after_cluster_time)
        return
    if session.explicit is not None:
        session.explicit.add_read_concern(command, operation.is_causally_consistent, hello)
    if attempt.is_retryable_write:
        command["txnNumber"] = _assign_transaction_number(operation, server_session)


def _assign_transaction_number(operation: Operation, server_session: ServerSession) -> int:
    """Return the transaction number of a retryable write. All attempts use this number."""
    if operation.transaction_number is None:
        server_session.transaction_number += 1
        operation.transaction_number = bson.Int64(server_session.transaction_number)
    return operation.transaction_number


def _add_max_time(command: DocumentDict, operation: Operation, deadline: float, min_round_trip_time: float) -> None:
    """Limit ``maxTimeMS`` to the time until the deadline, minus `min_round_trip_time` (seconds)."""
    seconds_left = deadline - _clock.monotonic() - min_round_trip_time
    if seconds_left <= 0:
        message = f"{limit_text(deadline)} ended before {operation.name} was sent"
        details = {"ok": 0, "errmsg": message, "code": codes.MAX_TIME_MS_EXPIRED}
        raise ExecutionTimeout(message, codes.MAX_TIME_MS_EXPIRED, details)
    max_time_ms = max(1, int(seconds_left * 1000))
    if operation.takes_max_time:
        command["maxTimeMS"] = max_time_ms
    elif "maxTimeMS" in command:
        if operation.waits_for_documents:
            command["maxTimeMS"] = min(command["maxTimeMS"], max_time_ms)
        else:  # the server would apply `maxTimeMS` to the whole lifetime of the cursor
            del command["maxTimeMS"]
