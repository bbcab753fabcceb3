"""The documents and the other server-side state of a simulated deployment. The package does not use the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bson.timestamp import Timestamp

from gmongo.testing.command import Request, error
from gmongo.testing.store.commands import COMMANDS
from gmongo.testing.store.dispatch import execute
from gmongo.testing.store.end_transactions import abort, end_session, kill_session
from gmongo.testing.store.expiry import expire_data
from gmongo.testing.store.fields import ALIASES, replace_alias
from gmongo.testing.store.state import State

__all__ = ["Store"]


class Store:
    """The stored state of a deployment. All members share the state. Therefore replication takes no time."""

    def __init__(self, *, version: tuple[int, int] = (8, 0), replicated: bool, sharded: bool) -> None:
        self._state = State((version[0], version[1]), replicated, sharded)

    @property
    def version(self) -> tuple[int, int]:
        return self._state.version

    def supports(self, name: str) -> bool:
        return ALIASES.get(name, name) in COMMANDS

    def execute(self, request: Request) -> dict[str, Any]:
        """Execute a command. The reply has no ``ok`` and no cluster time. Do not change the reply."""
        name = ALIASES.get(request.name, request.name)
        if name not in COMMANDS:
            raise error(59, f"no such command: '{request.name}'")
        if name != request.name:
            killed, request = request.killed, replace(request, name=name, body=replace_alias(request))
            request.killed = killed
        return execute(self._state, request)

    def has_executed(self, request: Request) -> bool:
        """Return True if the command is a retryable write that the store has executed before."""
        session = self._state.sessions.get(request.session) if request.session is not None else None
        return session is not None and session.number == request.transaction_number and session.reply is not None

    def record_sharding(self, database: str, name: str, key: Any) -> None:
        """Create the collection if it is missing, and publish the event ``shardCollection``."""
        state = self._state
        collection = state.catalog.get((database, name)) or state.create(database, name, {})
        state.tick()
        extra = {"operationDescription": {"shardKey": key}}
        state.publish("shardCollection", database, name, uuid=collection.uuid, extra=extra)

    def describe_status(self) -> dict[str, Any]:
        """Return the sections of ``serverStatus`` that the store determines."""
        return {
            "metrics": {"cursor": {"open": {"total": self._state.cursors.count()}}},
            "logicalSessionRecordCache": {"activeSessionsCount": sum(1 for _ in self._state.sessions)},
        }

    def now(self) -> Timestamp:
        """Return the logical time, which advances with each write."""
        return self._state.now()

    def handle_member_loss(self, member: str) -> None:
        """Close the cursors and abort the transactions of a member that was killed."""
        state = self._state
        state.loss_counts[member] += 1
        state.cursors.kill_where(lambda cursor: cursor.member == member)
        for session in state.sessions:
            transaction = session.transaction
            if transaction is not None and transaction.member == member:
                abort(state, session)
        state.wake()

    def handle_connection_loss(self, connection: int) -> None:
        """Abort the open transaction of a closed connection, in a deployment with a load balancer."""
        for session in self._state.sessions:
            transaction = session.transaction
            if transaction is not None and transaction.connection == connection:
                abort(self._state, session)

    def wake(self) -> None:
        """Wake all waiting commands, which then check their conditions again."""
        self._state.wake()

    def close_cursor(self, cursor_id: int) -> None:
        self._state.cursors.close(cursor_id)

    def abort_transactions(self) -> None:
        for session in self._state.sessions:
            abort(self._state, session)

    def kill_session(self, lsid: bytes) -> None:
        """Abort the transaction of a session, and close the cursors of the session."""
        kill_session(self._state, lsid)
        self._state.wake()

    def end_sessions(self, lsids: list[bytes]) -> None:
        """Remove sessions. Close the cursors and abort the transactions of the sessions."""
        for lsid in lsids:
            end_session(self._state, lsid)
        self._state.wake()

    def run_due_work(self, parameters: Mapping[str, Any]) -> None:
        """Remove documents that expired because of TTL indexes. Abort transactions whose lifetime is over."""
        expire_data(self._state, parameters)

    def expire(self) -> None:
        """Close all cursors that have an idle timeout, and end the sessions that no command has used for 30 minutes."""
        self._state.cursors.expire()
        self.end_sessions(self._state.sessions.list_idle())
