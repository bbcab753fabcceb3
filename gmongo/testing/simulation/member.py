"""One member of a simulated deployment: a mongod or a mongos with its own port."""

from __future__ import annotations

from collections.abc import Mapping
from socket import socket
from typing import TYPE_CHECKING, Any

import gevent
from bson import Int64

from gmongo._object_ids import new_object_id
from gmongo.testing import clock
from gmongo.testing.simulation import dispatch, proxy_protocol
from gmongo.testing.simulation.connection import Connection
from gmongo.testing.simulation.fail_points import FailPoints
from gmongo.testing.simulation.listener import HOST, Listener, reserve
from gmongo.testing.simulation.network import Faults
from gmongo.testing.simulation.operations import Operations
from gmongo.testing.simulation.parameters import Parameters
from gmongo.testing.simulation.tls import Stream, TlsStream
from gmongo.testing.simulation.waiting import Change, wait_for

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.cluster import Cluster


class Member:
    """A server on the loopback interface, in :attr:`Deployment.members <gmongo.testing.Deployment>`.

    :param cluster: the shared state of the members.
    :param port: the port; 0 (the default) for any free port.
    :param traits: ``tags``, ``priority``, ``hidden`` and ``arbiter``, if they differ from the defaults.
    :param load_balanced: True if the member is behind a load balancer; False by default.

    :ivar host: ``127.0.0.1``.
    :ivar port: the port, the same after a restart.
    :ivar alive: True if the member listens.
    :ivar connections: the open connections by number.
    """

    host = HOST

    def __init__(
        self, cluster: Cluster, *, port: int = 0, traits: Mapping[str, Any] | None = None, load_balanced: bool = False
    ) -> None:
        self.cluster = cluster
        self.port = port
        self.traits = dict(traits or {})
        self.service_id = new_object_id() if load_balanced else None
        self.alive = False
        self.connections: dict[int, Connection] = {}
        self.faults = Faults()
        self.fail_points = FailPoints()
        self.parameters = Parameters(cluster.parameters)
        self.created = 0
        self.operations = Operations()
        self._change = Change()
        self._arriving: set[Any] = set()
        self._listener: Listener | None = None
        self._reserved: socket | None = None  # reserves the port while the member is down
        self._begin()

    def __repr__(self) -> str:
        return f"<Member {self.address}>"

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    @property
    def uptime(self) -> float:
        """Seconds since the start."""
        return clock.monotonic() - self._started

    def _begin(self) -> None:
        self._started = clock.monotonic()
        self._process, self._version = new_object_id(), 0
        self.parameters = Parameters(self.cluster.parameters)
        self.fail_points.clear()

    def start(self) -> None:
        """Start to listen."""
        reserved, self._reserved = self._reserved or reserve(self.port), None
        self._listener = Listener(reserved, self.accept)
        self.port = self._listener.port
        self.alive = True

    def kill(self) -> None:
        """Refuse connections, and close open connections, as after the end of a process."""
        if not self.alive:
            return
        self.stop()
        self._reserved = reserve(self.port)  # no other program can bind the port
        self.cluster.store.member_lost(self.address)
        self.cluster.topology.lost(self)

    def stop(self) -> None:
        """Close the listener and the connections, without notice to the other members."""
        self.alive = False
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None
        for arriving in list(self._arriving):
            arriving.kill(block=False)
        self.drop_connections()

    def drop_connections(self) -> None:
        """Close all open connections, and accept new connections."""
        for connection in list(self.connections.values()):
            connection.close()
            connection.abort_transaction()

    def restart(self) -> None:
        """Kill the member if it is alive, and start a new process on the same port."""
        self.kill()
        self.faults.clear()
        self._begin()
        self.start()
        self.cluster.topology.restored(self)

    def freeze(self) -> None:
        """Accept connections and requests without replies. :meth:`thaw` sends the replies."""
        self.faults.answering.clear()
        self.cluster.topology.lost(self)

    def thaw(self) -> None:
        """Continue after :meth:`freeze`."""
        self.faults.answering.set()
        self.cluster.topology.restored(self)

    def partition(self) -> None:
        """Disconnect the member: all messages of clients and other members are lost."""
        self.faults.partitioned = True
        self.cluster.topology.lost(self)

    def heal(self) -> None:
        """Continue after :meth:`partition`. Existing connections are reset."""
        self.faults.partitioned = False
        self.drop_connections()
        self.cluster.topology.restored(self)

    def delay(self, seconds: float) -> None:
        """Delay every reply.

        :param seconds: the delay; 0 is no delay.
        :raises ValueError: `seconds` is no number from 0 up.
        """
        self.faults.delay = _number("seconds", seconds)

    def drop_after(self, n_bytes: int, command: str | None = None) -> None:
        """Close the connection after a part of the next reply.

        :param n_bytes: the size of the part in bytes.
        :param command: the command of the reply; None for any command.
        :raises ValueError: `n_bytes` is no whole number from 0 up, or `command` is not a string.
        """
        _number("n_bytes", n_bytes, whole=True)
        _name(command)
        self.faults.cut_next(n_bytes, command)

    def garbage(self, command: str | None = None) -> None:
        """Send bytes that are no message in place of the next reply.

        :param command: the command of the reply; None for any command.
        :raises ValueError: `command` is not a string.
        """
        _name(command)
        self.faults.spoil_next(command)

    def step_down(self, seconds: float = 60.0) -> None:
        """Step down.

        :param seconds: the member cannot become primary for this time, unless no other member can; 60 by default.
        :raises ValueError: the member is not a primary, or `seconds` is no number from 0 up.
        """
        _number("seconds", seconds)
        self.cluster.topology.step_down(self, seconds)

    @property
    def reachable(self) -> bool:
        """True if the other members receive heartbeats of the member."""
        return self.alive and not self.faults.partitioned and self.faults.answering.is_set()

    def accept(self, sock: Any) -> None:
        """Serve a connection. Runs in a greenlet.

        :param sock: the socket.
        """
        if not self.cluster.limits.admits_connection(self):
            sock.close()
            return
        arriving = gevent.getcurrent()
        self._arriving.add(arriving)
        try:
            connection = self._handshake(sock)
        except BaseException:  # such as the kill of a stopped member
            sock.close()
            raise
        finally:
            self._arriving.discard(arriving)
        if connection is not None:
            self._serve(connection)

    def _handshake(self, sock: Any) -> Connection | None:
        """Return the connection after its handshakes, or None if the client leaves earlier."""
        stream: Stream = sock
        certificate = None
        try:
            peer_port = sock.getpeername()[1]
            wait_for(self.faults.answering)
            if self.service_id is not None:
                stream = proxy_protocol.without_preamble(sock)
            if self.cluster.tls is not None:
                stream = secured = TlsStream(stream, self.cluster.tls)
                certificate = secured.peer_certificate
        except OSError:
            sock.close()
            return None
        return Connection(self, stream, peer_port, certificate)

    def _serve(self, connection: Connection) -> None:
        if not self.alive:
            connection.close()
            return
        self.created += 1
        self.connections[connection.number] = connection
        connection.serve()

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection.

        :param connection: the connection.
        """
        self.connections.pop(connection.number, None)

    def answer(self, call: Call) -> dict[str, Any]:
        """Return the reply to a command.

        :param call: the command with its connection.
        """
        return dispatch.answer(call)

    @property
    def topology_version(self) -> dict[str, Any]:
        """The process and its number of changes."""
        return {"processId": self._process, "counter": Int64(self._version)}

    def changed(self) -> None:
        """Change the topologyVersion, and wake the hello requests that await a change."""
        self._version += 1
        self._change.announce()

    def await_change(self, known: Mapping[str, Any], seconds: float) -> None:
        """Wait until the state differs from a known state.

        :param known: a :attr:`topology_version`.
        :param seconds: the timeout.
        """
        if known.get("processId") == self._process and known.get("counter") == self._version:
            self._change.wait(seconds)


def _number(name: str, value: Any, whole: bool = False) -> Any:
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < float("inf"):
        raise ValueError(f"{name} is {value!r}, which is not a {'whole ' if whole else ''}number from 0 up")
    return value


def _name(command: Any) -> None:
    if command is not None and not isinstance(command, str):
        raise ValueError(f"command is {command!r}, which is not the name of a command")
