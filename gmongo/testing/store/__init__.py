"""The documents and the server-side state of a simulated deployment, without any sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bson.timestamp import Timestamp

from gmongo.testing.command import CommandError, Request
from gmongo.testing.store.commands import COMMANDS
from gmongo.testing.store.dispatch import execute
from gmongo.testing.store.end_transactions import abort, end_session, kill_session
from gmongo.testing.store.expiry import let_time_pass
from gmongo.testing.store.fields import ALIASES, without_alias
from gmongo.testing.store.state import State

__all__ = ["Store"]


class Store:
    """What all members of one deployment share; replication takes no time.

    :param version: the server's version; 4.2 and later are known.
    :param replicated: whether it is a replica set.
    :param sharded: whether it is a sharded cluster; the members are then mongos.
    """

    def __init__(self, *, version: tuple[int, int] = (8, 0), replicated: bool, sharded: bool) -> None:
        self._state = State((version[0], version[1]), replicated, sharded)

    @property
    def version(self) -> tuple[int, int]:
        """The version of the server."""
        return self._state.version

    def handles(self, name: str) -> bool:
        """Whether the store executes the command with this name."""
        return ALIASES.get(name, name) in COMMANDS

    def execute(self, request: Request) -> dict[str, Any]:
        """The reply to a command, without ``ok`` and the cluster's times.

        Others run while it works for long, or waits: for events, for a transaction to end, for its session. The reply
        shares documents with the store, and is not to be changed.

        :raises CommandError: if the command fails.
        """
        name = ALIASES.get(request.name, request.name)
        if name not in COMMANDS:
            raise CommandError(59, "CommandNotFound", f"no such command: '{request.name}'")
        if name != request.name:
            killed, request = request.killed, replace(request, name=name, body=without_alias(request))
            request.killed = killed
        self._state.settle()
        return execute(self._state, request)

    def has_done(self, request: Request) -> bool:
        """Whether the command is a retryable write that has been done, so that it is only answered again."""
        session = self._state.sessions.get(request.session) if request.session is not None else None
        return session is not None and session.number == request.transaction_number and session.reply is not None

    def note_sharding(self, database: str, name: str, key: Any) -> None:
        """A collection is sharded now, which change streams may show. It is made if it is not there."""
        state = self._state
        collection = state.catalog.get((database, name)) or state.create(database, name, {})
        state.tick()
        extra = {"operationDescription": {"shardKey": key}}
        state.publish("shardCollection", database, name, uuid=collection.uuid, extra=extra)

    def now(self) -> Timestamp:
        """The logical time, which advances with each write."""
        return self._state.now()

    def member_lost(self, member: str) -> None:
        """A member was killed, restarted, or is no longer primary.

        The cursors that were opened on it die, and the transactions that it received the statements of abort.
        """
        state = self._state
        state.losses[member] += 1
        state.cursors.kill_of_member(member)
        for session in state.sessions:
            transaction = session.transaction
            if transaction is not None and transaction.member == member:
                abort(state, session)
        state.wake()

    def connection_lost(self, connection: int) -> None:
        """A connection was closed behind a load balancer: the transaction that ran on it aborts."""
        for session in self._state.sessions:
            transaction = session.transaction
            if transaction is not None and transaction.connection == connection:
                abort(self._state, session)

    def wake(self) -> None:
        """Have commands that wait look whether they may go on, or have been killed."""
        self._state.wake()

    def end_cursor(self, cursor_id: int) -> None:
        """Kill a cursor, if it is still there."""
        self._state.cursors.close_number(cursor_id)

    def abort_transactions(self) -> None:
        """Abort every transaction in progress."""
        for session in self._state.sessions:
            abort(self._state, session)

    def kill_session(self, lsid: bytes) -> None:
        """Abort what a session is doing, and kill its cursors."""
        kill_session(self._state, lsid)
        self._state.wake()

    def end_sessions(self, lsids: list[bytes]) -> None:
        """Forget sessions, with their cursors and transactions."""
        for lsid in lsids:
            end_session(self._state, lsid)
        self._state.wake()

    def let_time_pass(self, parameters: Mapping[str, Any]) -> None:
        """Do what is due by now: documents of TTL indexes expire, and transactions that last too long abort.

        :param parameters: ``transactionLifetimeLimitSeconds``, ``ttlMonitorEnabled`` and ``ttlMonitorSleepSecs``.
        """
        self._state.settle()
        let_time_pass(self._state, parameters)

    def expire(self) -> None:
        """Let time pass: idle cursors are killed at once, and sessions that were not used for half an hour end."""
        self._state.cursors.expire()
        self.end_sessions(self._state.sessions.idle())
