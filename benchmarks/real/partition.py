"""TCP proxies that can cut off members of a replica set.

Clients and other members connect to a member through its proxy. A closed proxy makes no new
connections to its member, and passes no byte.
"""

from __future__ import annotations

import select
import socket
import threading
from types import TracebackType

from gmongo.testing import EmbeddedReplicaSet
from gmongo.testing.mongod.server import Server

_CHUNK = 1 << 16


class MemberProxies:
    """Context manager with a proxy for each member.

    On entry, the object writes the addresses of the proxies into the configuration of the replica
    set.

    :param replica_set: the running replica set.
    """

    def __init__(self, replica_set: EmbeddedReplicaSet) -> None:
        self._replica_set = replica_set
        self._proxies: dict[Server, _Proxy] = {member: _Proxy(member.address) for member in replica_set.members}

    @property
    def uri(self) -> str:
        """The connection string with the addresses of the proxies."""
        hosts = ",".join(proxy.address for proxy in self._proxies.values())
        return f"mongodb://{hosts}/?replicaSet={self._replica_set.name}"

    def close(self, member: Server) -> None:
        """Stop passing bytes on the connections to a member, as if the network failed."""
        self._proxies[member].is_open.clear()

    def open(self, member: Server) -> None:
        """Pass bytes on the connections to a member again."""
        self._proxies[member].is_open.set()

    def __enter__(self) -> MemberProxies:
        primary = self._replica_set.primary
        config = primary.command({"replSetGetConfig": 1})["config"]
        for member_config, proxy in zip(config["members"], self._proxies.values(), strict=True):
            member_config["host"] = proxy.address
        config["version"] += 1
        primary.command({"replSetReconfig": config, "force": True})
        self._replica_set.await_members()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for proxy in self._proxies.values():
            proxy.end()


class _Proxy:
    def __init__(self, address: str) -> None:
        host, _colon, port = address.rpartition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.is_open = threading.Event()
        self.is_open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:  # the listener is closed
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        self.is_open.wait()
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._relay(client, server)

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            directions = {client.fileno(): (client, server), server.fileno(): (server, client)}
            poll = select.poll()  # select() supports only descriptors up to 1023
            for descriptor in directions:
                poll.register(descriptor, select.POLLIN)
            while True:
                for descriptor, _event in poll.poll():
                    source, target = directions[descriptor]
                    try:
                        data = source.recv(_CHUNK)
                        self.is_open.wait()
                        target.sendall(data)
                    except OSError:
                        return
                    if not data:
                        return

    def end(self) -> None:
        """Stop accepting connections. Open a closed proxy, so that its threads can end."""
        self._listener.close()
        self.is_open.set()
