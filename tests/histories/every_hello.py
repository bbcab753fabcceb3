"""Every history of a few servers, up to a length: what each of them answers to hellos, period by period.

The servers are scripted, the client is a whole one, and time is virtual. In each period every server plays one role,
and an operation may wait for a primary all the while. What must hold in each: no server is asked more often than twice
in the minimum between two checks; each heartbeat has its end, one at a time; each change of a description begins at
the one before. At the end the servers are a replica set in order: if the client still knows one of them, it finds the
primary within one heartbeat. And closing the client leaves no connection.
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
from tests.support.server import Fault, ScriptedServer, cut, silent

PERIOD = 25.0  # seconds, in which two or three heartbeats come
HEARTBEAT = 10.0
LIMIT = 2.0  # of a connection attempt
MOST_CHECKS = 4 * PERIOD + 10  # two in half a second: what is asked for, and once after a loss
MANY = 10_000
ALIAS = "under another name"

Role = Callable[["Play", ScriptedServer], None]


class Play:
    """A client and its servers.

    :param roles: for each server, what it is in each period.
    :param streams: whether the servers stream.
    :param waits: whether operations wait for a primary in each period.
    :param options: of the client.
    """

    def __init__(self, roles: Sequence[Sequence[str]], streams: bool, waits: bool, **options: Any) -> None:
        self.roles = roles
        self.waits = waits
        self.faults: list[str] = []
        self.servers = [ScriptedServer(streams=streams) for _ in roles]
        self.recorder = Recorder()
        self._options = options
        self._names: dict[ScriptedServer, str] = {}  # by which the members know each other
        self._elections = 1
        self._hellos: Counter[int] = Counter()

    def run(self) -> list[str]:
        """Play all periods; returns what did not hold."""
        for server in self.servers:
            server.start()
        self._assign([roles[0] for roles in self.roles])
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
                self._play_period(client, number)
            self._come_to_order(client)
        finally:
            client.close()
        gevent.sleep(LIMIT)
        self._check_events()
        for server in self.servers:
            if server.peers:
                self.faults.append(f"{len(server.peers)} connections are left")
            server.close()
        return self.faults

    def _play_period(self, client: Client, number: int) -> None:
        if number:
            self._assign([roles[number] for roles in self.roles])
        waiting = gevent.spawn(_ask, client) if self.waits else None
        gevent.sleep(PERIOD)
        for server, roles in zip(self.servers, self.roles, strict=True):
            if self._hellos[server.port] > MOST_CHECKS:
                self.faults.append(f"{roles[number]} is asked more than {MOST_CHECKS} times in period {number}")
        if waiting is not None:
            waiting.kill()

    def _come_to_order(self, client: Client) -> None:
        """All are a replica set now."""
        self._assign(["primary", *["secondary"] * (len(self.servers) - 1)])
        known = client.topology_description.server_descriptions()
        if not any(server.address in known for server in self.servers):
            return  # servers of other sets have left the topology for good
        gevent.sleep(HEARTBEAT)
        try:
            with gevent.Timeout(LIMIT):
                client.db.command("ping")
        except (PyMongoError, gevent.Timeout) as error:
            self.faults.append(f"the primary is not found: {error!r}, {client.topology_description}")

    def _assign(self, roles: Sequence[str]) -> None:
        for number, (server, role) in enumerate(zip(self.servers, roles, strict=True), 1):
            self._names[server] = server.name if role != ALIAS else f"127.0.0.1:{number}"
        for server, role in zip(self.servers, roles, strict=True):
            self._hellos[server.port] = 0
            server.faults.clear()
            if server._listener is None:
                server.start()
            server.hello_edit = self._counted(server)
            server.hello_extra = self._member(server, secondary=True)
            ROLES[role](self, server)
            server.changed()

    def _counted(self, server: ScriptedServer) -> Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]:
        def count(_command: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
            self._hellos[server.port] += 1
            if self._hellos[server.port] > 2 * MOST_CHECKS:
                gevent.sleep(PERIOD)  # else no time would pass
            return reply

        return count

    def _member(self, server: ScriptedServer, **fields: Any) -> dict[str, Any]:
        return {
            "setName": "scripted", "setVersion": 1, "hosts": list(self._names.values()), "me": self._names[server],
            "isWritablePrimary": False, "ismaster": False, "secondary": False, **fields,
        }  # fmt: skip

    def lead(self, server: ScriptedServer) -> None:
        """A primary of the newest election."""
        self._elections += 1
        self._be_primary(server, self._elections)

    def _be_primary(self, server: ScriptedServer, election: int) -> None:
        number = ObjectId(f"{election:024x}")
        server.hello_extra = self._member(server, isWritablePrimary=True, ismaster=True, electionId=number)

    def stay(self, server: ScriptedServer) -> None:
        """A primary that has not heard of later elections."""
        self._be_primary(server, 0)

    # What was seen

    def _check_events(self) -> None:
        begun: Counter[Any] = Counter()
        last: dict[Any, Any] = {}
        for event in self.recorder.events:
            name = short_name(event)
            if name.startswith("Heartbeat"):
                begun[event.connection_id] += 1 if name == "HeartbeatStarted" else -1
                if begun[event.connection_id] not in (0, 1):
                    self.faults.append(f"{name} without its other half")
            elif name == "ServerDescriptionChanged":
                before = last.get(event.server_address, event.previous_description)
                if event.previous_description != before:
                    self.faults.append("a change of a server begins elsewhere")
                last[event.server_address] = event.new_description
            elif name == "TopologyDescriptionChanged":  # a primary that another one follows has no event of its own
                last = event.new_description.server_descriptions()
        if any(begun.values()):
            self.faults.append(f"heartbeats without an end: {begun}")


def _ask(client: Client) -> None:
    while True:
        try:
            client.db.command("ping")
        except PyMongoError:
            pass
        gevent.sleep(PERIOD / 5)


def _extra(**fields: Any) -> Role:
    def play(scene: Play, server: ScriptedServer) -> None:
        server.hello_extra = {**scene._member(server, secondary=True), **fields}

    return play


def _failing(fault: Fault, *names: str) -> Role:
    def play(scene: Play, server: ScriptedServer) -> None:
        for name in names:
            server.fail(name, *[fault] * MANY)

    return play


def _standalone(scene: Play, server: ScriptedServer) -> None:
    server.hello_extra = {}


ROLES: dict[str, Role] = {
    "primary": Play.lead,
    "secondary": _extra(),
    "old primary": Play.stay,
    "of another set": _extra(setName="other"),
    ALIAS: _extra(),
    "starting": lambda scene, server: setattr(server, "hello_extra", {"isreplicaset": True, "ismaster": False}),
    "standalone": _standalone,
    "too new": _extra(minWireVersion=99, maxWireVersion=99),
    "refusing": _extra(ok=0, code=11600, errmsg="shutting down"),
    "down": lambda scene, server: server.stop(),
    "cutting": _failing(cut(0), "handshake", "hello"),
    "cutting after the handshake": _failing(cut(1 << 20), "handshake"),
    "silent": _failing(silent, "handshake", "hello"),
}
