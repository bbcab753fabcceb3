"""A member of a simulated deployment: a mongod or a mongos. Each member has a separate port."""

from __future__ import annotations

from collections.abc import Mapping
from socket import socket
from typing import TYPE_CHECKING, Any

import gevent
from bson import Int64

from gmongo._nearest import did_you_mean
from gmongo._object_ids import new_object_id
from gmongo.testing import clock
from gmongo.testing.simulation import dispatch, proxy_protocol
from gmongo.testing.simulation.commands.operations import Operations
from gmongo.testing.simulation.connection import Connection
from gmongo.testing.simulation.fail_points import FailPoints
from gmongo.testing.simulation.listener import HOST, Listener, reserve
from gmongo.testing.simulation.network import Faults
from gmongo.testing.simulation.parameters import Parameters
from gmongo.testing.simulation.tls import Stream, TlsStream
from gmongo.testing.simulation.waiting import Signal, wait_for

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.cluster import Cluster


class Member:
    """A simulated server on a port of the loopback interface.

    :attr:`Deployment.members <gmongo.testing.Deployment>` contains the members of a deployment.

    :param cluster: the state that all members of the deployment share.
    :param port: the TCP port; 0 (the default) means any free port.
    :param traits: the values of ``tags``, ``priority``, ``hidden`` and ``arbiter`` that differ from
        the defaults.
    :param load_balanced: True if the member is behind a load balancer; False by default.

    :ivar host: ``127.0.0.1``.
    :ivar port: the TCP port, which does not change after a restart.
    :ivar alive: True if the process of the member runs. False after :meth:`kill`.
    :ivar connections: the open connections by connectionId.
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
        self.created = 0  # the number of connections that the member has accepted
        self.operations = Operations()
        self._change = Signal()
        self._handshaking_greenlets: set[Any] = set()
        self._listener: Listener | None = None
        self._reserved_socket: socket | None = None  # reserves the port between `kill` and `restart`
        self._start_process()

    def __repr__(self) -> str:
        return f"<Member {self.address}>"

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    @property
    def uptime(self) -> float:
        """Seconds since the last start of the member."""
        return clock.monotonic() - self._start_time

    def _start_process(self) -> None:
        self._start_time = clock.monotonic()
        self._process_id, self._change_count = new_object_id(), 0
        self.parameters = Parameters(self.cluster.parameters)
        self.fail_points.clear()

    def start(self) -> None:
        """Start to accept connections."""
        reserved_socket, self._reserved_socket = self._reserved_socket or reserve(self.port), None
        self._listener = Listener(reserved_socket, self.accept)
        self.port = self._listener.port
        self.alive = True

    def kill(self) -> None:
        """Close all connections, and refuse new connections, as if the server process had ended."""
        if not self.alive:
            return
        self.stop()
        self._reserved_socket = reserve(self.port)  # no other program can bind the port
        self.cluster.store.handle_member_loss(self.address)
        self.cluster.topology.handle_fault(self)

    def stop(self) -> None:
        """Close the listener and all connections, without an effect on the topology."""
        self.alive = False
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._reserved_socket is not None:
            self._reserved_socket.close()
            self._reserved_socket = None
        for greenlet in list(self._handshaking_greenlets):
            greenlet.kill(block=False)
        self.drop_connections()

    def drop_connections(self) -> None:
        """Close all open connections. The member continues to accept new connections."""
        for connection in list(self.connections.values()):
            connection.close()
            connection.abort_transaction()

    def restart(self) -> None:
        """Kill the member if it is alive, and start a new process on the same port."""
        self.kill()
        self.faults.clear()
        self._start_process()
        self.start()
        self.cluster.topology.handle_recovery(self)

    def freeze(self) -> None:
        """Accept connections and requests, but send no replies until :meth:`thaw`."""
        self.faults.not_frozen.clear()
        self.cluster.topology.handle_fault(self)

    def thaw(self) -> None:
        """End :meth:`freeze`, and send the delayed replies."""
        self.faults.not_frozen.set()
        self.cluster.topology.handle_recovery(self)

    def partition(self) -> None:
        """Disconnect the member from the network. All messages from and to clients and other members are lost."""
        self.faults.partitioned = True
        self.cluster.topology.handle_fault(self)

    def heal(self) -> None:
        """End :meth:`partition`. The member closes all connections that existed before the call."""
        self.faults.partitioned = False
        self.drop_connections()
        self.cluster.topology.handle_recovery(self)

    def delay(self, seconds: float) -> None:
        """Delay every reply.

        :param seconds: the delay in seconds; 0 ends the delay.
        :raises ValueError: `seconds` is negative or is not a number.
        """
        self.faults.delay = check_number("seconds", seconds)

    def drop_after(self, n_bytes: int, command: str | None = None) -> None:
        """Send only the beginning of one reply, and close the connection.

        :param n_bytes: how many bytes of the reply the member sends.
        :param command: the name of the command whose next reply is cut. None means the next reply to
            any command.
        :raises ValueError: `n_bytes` is negative or is not a whole number, or the simulation has no
            such command.
        """
        check_number("n_bytes", n_bytes, is_whole=True)
        self._check_command_name(command)
        self.faults.cut = n_bytes, command

    def garbage(self, command: str | None = None) -> None:
        """Instead of one reply, send bytes that are not a message.

        :param command: the name of the command whose next reply is replaced. None means the next
            reply to any command.
        :raises ValueError: the simulation has no such command.
        """
        self._check_command_name(command)
        self.faults.garbage = (command,)

    def step_down(self, seconds: float = 60.0) -> None:
        """Make the primary step down.

        :param seconds: the time in seconds during which the members do not elect this member; 60 by
            default.
        :raises ValueError: the member is not a primary, or `seconds` is negative or is not a number.
        """
        check_number("seconds", seconds)
        self.cluster.topology.step_down(self, seconds)

    @property
    def reachable(self) -> bool:
        """True if the other members receive heartbeats from the member."""
        return self.alive and not self.faults.partitioned and self.faults.not_frozen.is_set()

    def accept(self, sock: Any) -> None:
        """Serve a connection until the connection ends. Each call runs in a separate greenlet.

        :param sock: the socket of the connection.
        """
        if not self.cluster.limits.admits_connection(self):
            sock.close()
            return
        greenlet = gevent.getcurrent()
        self._handshaking_greenlets.add(greenlet)
        try:
            connection = self._handshake(sock)
        except BaseException:  # for example if `stop` kills this greenlet
            sock.close()
            raise
        finally:
            self._handshaking_greenlets.discard(greenlet)
        if connection is not None and self.alive:
            self.created += 1
            self.connections[connection.number] = connection
            connection.serve()
        elif connection is not None:
            connection.close()

    def _handshake(self, sock: Any) -> Connection | None:
        """Skip the PROXY preamble and do the TLS handshake, if in use. Return None after an error."""
        stream: Stream = sock
        certificate = None
        try:
            peer_port = sock.getpeername()[1]
            wait_for(self.faults.not_frozen)
            if self.service_id is not None:
                proxy_protocol.skip_preamble(sock)
            if self.cluster.tls is not None:
                stream = tls_stream = TlsStream(stream, self.cluster.tls)
                certificate = tls_stream.peer_certificate
        except OSError:
            sock.close()
            return None
        return Connection(self, stream, peer_port, certificate)

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection from `connections`.

        :param connection: the closed connection.
        """
        self.connections.pop(connection.number, None)

    def answer(self, call: Call) -> dict[str, Any]:
        """Execute a command, and return the reply.

        :param call: the command, with its connection.
        """
        return dispatch.answer(call)

    @property
    def topology_version(self) -> dict[str, Any]:
        """The topologyVersion of hello replies. A new process has a new ID and the counter 0."""
        return {"processId": self._process_id, "counter": Int64(self._change_count)}

    def changed(self) -> None:
        """Increase the counter of the topologyVersion, and wake the hello commands that wait for a change."""
        self._change_count += 1
        self._change.announce()

    def _check_command_name(self, command: str | None) -> None:
        names = dispatch.list_command_names(self.cluster)
        if command is not None and command not in names:
            hint = did_you_mean(str(command), names)
            raise ValueError(f"command is {command!r}, which is not the name of a command{hint}")

    def await_change(self, known: Mapping[str, Any], seconds: float) -> None:
        """Wait until the topologyVersion of the member differs from `known`.

        :param known: the topologyVersion that the client sent.
        :param seconds: the longest wait in seconds.
        """
        if known.get("processId") == self._process_id and known.get("counter") == self._change_count:
            self._change.wait(seconds)


def check_number(name: str, value: Any, is_whole: bool = False) -> Any:
    """Return `value`. Raise ValueError unless it is finite, nonnegative, and whole if `is_whole`."""
    types = int if is_whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, types) or not 0 <= value < float("inf"):
        raise ValueError(f"{name} is {value!r}, which is not a nonnegative {'whole ' if is_whole else ''}number")
    return value
