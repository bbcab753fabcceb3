"""Histories of hello replies: one to three servers, whose hello replies change at each period.

The servers are scripted, the client is a MongoClient, and time is virtual. In each period, each
server has one role, which determines its hello replies. In some histories, an operation waits for a
primary during each period. The invariants are:

- A server receives at most two checks in each minimum interval of 500 ms.
- Each heartbeat has exactly one end event, before the next heartbeat of the connection starts.
- The previous description in each description event is the new description of the preceding event.
- In the last period, all servers are members of one replica set. If the client still knows a
  server, the client discovers the primary within one heartbeat interval.
- After the close of the client, no server has an open connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import gevent
from bson import ObjectId

from gmongo import MongoClient
from gmongo.errors import PyMongoError
from tests.support.clients import Client
from tests.support.recorder import Recorder, short_name
from tests.support.server import Fault, ScriptedServer, cut_reply, send_no_reply

PERIOD = 25.0  # Seconds. A period contains two or three heartbeats.
HEARTBEAT = 10.0
LIMIT = 2.0  # Time limit of a connection attempt in seconds.
# A server may receive two checks in half a second: a requested check, and a check after a lost connection.
MOST_CHECKS = 4 * PERIOD + 10
MANY = 10_000
ALIAS = "other name"

Role = Callable[["HelloHistory", ScriptedServer], None]


class HelloHistory:
    """A history: a client, and servers whose roles change.

    :param roles: for each server, the names of its roles, one for each period.
    :param streams: True if the servers stream hello replies.
    :param waits: True if an operation waits for a primary in each period.
    :param options: the options of the client.
    """

    def __init__(self, roles: Sequence[Sequence[str]], streams: bool, waits: bool, **options: Any) -> None:
        self.roles = roles
        self.waits = waits
        self.violations: list[str] = []
        self.servers = [ScriptedServer(streams=streams) for _ in roles]
        self.recorder = Recorder()
        self._options = options
        # Server -> the name of the server in the member lists of hello replies.
        self._names: dict[ScriptedServer, str] = {}
        self._elections = 1
        self._hellos: Counter[int] = Counter()

    def run(self) -> list[str]:
        """Run all periods, and return a text for each violated invariant."""
        for server in self.servers:
            server.start()
        self._assign_roles([roles[0] for roles in self.roles])
        client: Client = MongoClient(
            [server.name for server in self.servers],
            event_listeners=[self.recorder],
            connectTimeoutMS=LIMIT * 1000,
            heartbeatFrequencyMS=HEARTBEAT * 1000,
            serverSelectionTimeoutMS=PERIOD * 1000,
            **self._options,
        )
        try:
            for number in range(len(self.roles[0])):
                self._run_period(client, number)
            self._check_recovery(client)
        finally:
            client.close()
        gevent.sleep(LIMIT)
        self._check_events()
        for server in self.servers:
            if server.peers:
                self.violations.append(f"{len(server.peers)} connections are left")
            server.close()
        return self.violations

    def _run_period(self, client: Client, number: int) -> None:
        if number:
            self._assign_roles([roles[number] for roles in self.roles])
        waiting = gevent.spawn(_ping_repeatedly, client) if self.waits else None
        gevent.sleep(PERIOD)
        for server, roles in zip(self.servers, self.roles, strict=True):
            if self._hellos[server.port] > MOST_CHECKS:
                self.violations.append(f"{roles[number]} receives more than {MOST_CHECKS} checks in period {number}")
        if waiting is not None:
            waiting.kill()

    def _check_recovery(self, client: Client) -> None:
        """Make all servers members of one replica set, and check that the client finds the primary."""
        self._assign_roles(["primary", *["secondary"] * (len(self.servers) - 1)])
        known = client.topology_description.server_descriptions()
        if not any(server.address in known for server in self.servers):
            return  # the client has removed all servers from its topology
        gevent.sleep(HEARTBEAT)
        try:
            with gevent.Timeout(LIMIT):
                client.db.command("ping")
        except (PyMongoError, gevent.Timeout) as error:
            self.violations.append(f"the primary is not found: {error!r}, {client.topology_description}")

    def _assign_roles(self, roles: Sequence[str]) -> None:
        for number, (server, role) in enumerate(zip(self.servers, roles, strict=True), 1):
            self._names[server] = server.name if role != ALIAS else f"127.0.0.1:{number}"
        for server, role in zip(self.servers, roles, strict=True):
            self._hellos[server.port] = 0
            server.faults.clear()
            if server._listener is None:
                server.start()
            server.hello_edit = self._hello_counter(server)
            server.hello_extra = self._member(server, secondary=True)
            ROLES[role](self, server)
            server.changed()

    def _hello_counter(self, server: ScriptedServer) -> Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]:
        def count(_command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
            self._hellos[server.port] += 1
            if self._hellos[server.port] > 2 * MOST_CHECKS:
                # Even if the client checks without pauses, virtual time must advance to the end of the period.
                gevent.sleep(PERIOD)
            return reply

        return count

    def _member(self, server: ScriptedServer, **fields: Any) -> dict[str, Any]:
        return {
            "setName": "scripted", "setVersion": 1, "hosts": list(self._names.values()), "me": self._names[server],
            "isWritablePrimary": False, "ismaster": False, "secondary": False, **fields,
        }  # fmt: skip

    def become_new_primary(self, server: ScriptedServer) -> None:
        """Make the server a primary whose election ID is greater than all earlier election IDs."""
        self._elections += 1
        self._make_primary(server, self._elections)

    def _make_primary(self, server: ScriptedServer, election: int) -> None:
        number = ObjectId(f"{election:024x}")
        server.hello_extra = self._member(server, isWritablePrimary=True, ismaster=True, electionId=number)

    def become_old_primary(self, server: ScriptedServer) -> None:
        """Make the server a primary whose election ID is less than all other election IDs."""
        self._make_primary(server, 0)

    def _check_events(self) -> None:
        begun: Counter[Any] = Counter()
        last: dict[Any, Any] = {}
        for event in self.recorder.events:
            name = short_name(event)
            if name.startswith("Heartbeat"):
                begun[event.connection_id] += 1 if name == "HeartbeatStarted" else -1
                if begun[event.connection_id] not in (0, 1):
                    self.violations.append(f"{name} without its start or end event")
            elif name == "ServerDescriptionChanged":
                before = last.get(event.server_address, event.previous_description)
                if event.previous_description != before:
                    self.violations.append("a change starts at a wrong description")
                last[event.server_address] = event.new_description
            # If a new primary replaces a primary, the old primary has no server event. The topology
            # event contains its new description.
            elif name == "TopologyDescriptionChanged":
                last = event.new_description.server_descriptions()
        if any(begun.values()):
            self.violations.append(f"heartbeats without an end: {begun}")


def _ping_repeatedly(client: Client) -> None:
    while True:
        try:
            client.db.command("ping")
        except PyMongoError:
            pass
        gevent.sleep(PERIOD / 5)


def _with_hello_fields(**fields: Any) -> Role:
    def assign_role(history: HelloHistory, server: ScriptedServer) -> None:
        server.hello_extra = {**history._member(server, secondary=True), **fields}

    return assign_role


def _with_fault(fault: Fault, *names: str) -> Role:
    def assign_role(history: HelloHistory, server: ScriptedServer) -> None:
        for name in names:
            server.fail(name, *[fault] * MANY)

    return assign_role


def _standalone(history: HelloHistory, server: ScriptedServer) -> None:
    server.hello_extra = {}


ROLES: dict[str, Role] = {
    "primary": HelloHistory.become_new_primary,
    "secondary": _with_hello_fields(),
    "old primary": HelloHistory.become_old_primary,
    "member of other set": _with_hello_fields(setName="other"),
    ALIAS: _with_hello_fields(),
    "starting": lambda history, server: setattr(server, "hello_extra", {"isreplicaset": True, "ismaster": False}),
    "standalone": _standalone,
    "unsupported version": _with_hello_fields(minWireVersion=99, maxWireVersion=99),
    "shutting down": _with_hello_fields(ok=0, code=11600, errmsg="shutting down"),
    "down": lambda history, server: server.stop(),
    "closing": _with_fault(cut_reply(0), "handshake", "hello"),
    "closing after handshake": _with_fault(cut_reply(1 << 20), "handshake"),
    "silent": _with_fault(send_no_reply, "handshake", "hello"),
}
