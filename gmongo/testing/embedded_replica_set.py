"""Run a replica set of MongoDB's own server in child processes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import monotonic
from typing import Any

import gevent

from gmongo.testing.mongod.connection import CommandFailedError
from gmongo.testing.mongod.program import EmbeddedDatabaseError, find_program
from gmongo.testing.mongod.server import Server
from gmongo.testing.mongod.settings import Settings

_CHECK_INTERVAL = 0.05  # seconds
_ALREADY_INITIALIZED_CODE = 23


class EmbeddedReplicaSet:
    """A replica set of `mongod` processes on the loopback interface, with temporary data.

    Use the class in a ``with`` block, or call :meth:`start` and :meth:`close`. All processes end with
    this process, even if this process is killed. While a method waits for the members, other
    greenlets run. MongoDB's server is under the Server Side Public License (SSPL). gmongo runs the
    server as a separate program.

    Each member is a :class:`~gmongo.testing.mongod.server.Server` with the methods `kill` (SIGKILL),
    `stop` (SIGSTOP), `resume` (SIGCONT), `step_down` and `restart`.

    :param members: the number of members; 3 by default.
    :param name: the name of the replica set; ``"rs0"`` by default.
    :param program: the path of `mongod`. By default the class searches the environment variable
        ``GMONGO_MONGOD``, the wheel that ``gmongo[mongod]`` installs, and ``PATH``, in this order.
    :param election_timeout: seconds without a primary before an election; 2 by default.
    :param start_timeout: seconds until a primary must be elected; 120 by default.
    :param settings: the settings of all members, which :class:`~gmongo.testing.EmbeddedDatabase`
        describes. `port` is the port of the first member, and the other members have the next ports.
    :raises ValueError: the number of members is not from 1 to 7, a setting is invalid, or
        `require_api_version` is True without `users`.
    :raises TypeError: a keyword argument is not the name of a setting.

    :ivar members: the members; empty before the start.
    """

    def __init__(
        self,
        members: int = 3,
        *,
        name: str = "rs0",
        program: str | os.PathLike[str] | None = None,
        election_timeout: float = 2.0,
        start_timeout: float = 120.0,
        **settings: Any,
    ) -> None:
        if not 1 <= members <= 7:
            raise ValueError(f"members must be from 1 to 7, not {members!r:.20}")
        self._member_count, self.name, self._program = members, name, program
        self._election_timeout, self._start_timeout = election_timeout, start_timeout
        self._settings = Settings.create("EmbeddedReplicaSet", settings)
        if self._settings.require_api_version and not self._settings.users:
            # Without users, the members have no key file. Then `require_api_version` also applies
            # to the commands of other members, and replication stops.
            raise ValueError("require_api_version needs users in a replica set")
        self.members: list[Server] = []

    @property
    def uri(self) -> str:
        """The connection string, with the first user and the options that the members require.

        :raises EmbeddedDatabaseError: the replica set is not running.
        """
        if not self.members:
            raise EmbeddedDatabaseError("the replica set is not running: call start() or use a with block")
        return self._settings.uri(*(member.address for member in self.members), replica_set=self.name)

    @property
    def primary(self) -> Server:
        """The current primary of the replica set.

        If there is no primary, the property waits up to `start_timeout` seconds for an election.

        :raises EmbeddedDatabaseError: the members elected no primary in time.
        """
        deadline = monotonic() + self._start_timeout
        while True:
            for member in self.members:
                if self._hello(member).get("isWritablePrimary"):
                    return member
            if monotonic() > deadline:
                raise EmbeddedDatabaseError(f"the members elected no primary within {self._start_timeout:g} seconds")
            gevent.sleep(_CHECK_INTERVAL)

    @property
    def secondaries(self) -> list[Server]:
        """The members that reply to a hello command and are secondaries."""
        return [member for member in self.members if self._hello(member).get("secondary")]

    def start(self) -> EmbeddedReplicaSet:
        """Start all members, initiate the replica set, create the users, and wait for a primary and secondaries.

        :raises EmbeddedDatabaseError: no usable `mongod` is installed, the replica set is running
            already, a member ended, or the members elected no primary in time. If a member ended, the
            error message contains the last lines of the member's log. Except in a running replica
            set, a failed start leaves no process and no temporary folder.
        """
        if self.members:
            raise EmbeddedDatabaseError("the replica set is running already")
        program = find_program(self._program)
        first_port, deadline = self._settings.port, monotonic() + self._start_timeout
        try:
            self.members = [
                Server(program, self._settings, replica_set=self.name, port=first_port and first_port + number)
                for number in range(self._member_count)
            ]
            for member in self.members:
                member.launch()
            for member in self.members:
                member.await_connections(deadline)
            self._initiate()
            self.primary.create_users(self._member_count)
            self.await_members(deadline - monotonic())
            for member in self.members:
                member.require_api_version()
        except CommandFailedError as error:
            self.close()
            raise EmbeddedDatabaseError(f"the replica set could not be initiated: {error}") from error
        except BaseException:
            self.close()
            raise
        return self

    def _initiate(self) -> None:
        member_configs = [{"_id": number, "host": member.address} for number, member in enumerate(self.members)]
        timing = {"electionTimeoutMillis": int(1000 * self._election_timeout), "heartbeatIntervalMillis": 500}
        config = {"_id": self.name, "version": 1, "members": member_configs, "settings": timing}
        try:
            self.members[0].command({"replSetInitiate": config}, without_credentials=True)
        except CommandFailedError as error:
            if error.reply.get("code") != _ALREADY_INITIALIZED_CODE:
                raise

    def await_members(self, timeout: float = 60.0) -> None:
        """Wait until one member is primary and all other members are secondaries.

        :param timeout: seconds until all other members must be secondaries; 60 by default.
        :raises EmbeddedDatabaseError: the members elected no primary within `start_timeout` seconds,
            or a member is neither primary nor secondary after `timeout` seconds.
        """
        deadline = monotonic() + timeout
        while not self.primary or len(self.secondaries) < self._member_count - 1:
            if monotonic() > deadline:
                raise EmbeddedDatabaseError(f"not all members are primary or secondary after {timeout:g} seconds")
            gevent.sleep(_CHECK_INTERVAL)

    def _hello(self, member: Server) -> Mapping[str, Any]:
        if not member.is_running or member.is_stopped:
            return {}
        try:
            return member.command({"hello": 1}, without_credentials=True)
        except CommandFailedError:
            return {}

    def close(self) -> None:
        """End all members, and remove their data. The method does nothing if the replica set is not running."""
        members, self.members = self.members, []
        for member in members:
            member.end()

    def __enter__(self) -> EmbeddedReplicaSet:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<EmbeddedReplicaSet {self.uri if self.members else 'not running'}>"
