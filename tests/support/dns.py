"""Name server on the loopback interface, and a replacement of the driver's address resolution.

The name server runs in a greenlet of the test process. A native thread of the driver sends the
queries over UDP.
"""

from __future__ import annotations

import _socket
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import dns.resolver
from dnslib import QTYPE, RCODE, RR, SRV, TXT, A, DNSRecord
from gevent.server import DatagramServer

from gmongo.wire import connect
from gmongo.wire.transport import TransportError

DAY_SECONDS = 86400


class Host(NamedTuple):
    """Target, port and time to live of an SRV record."""

    name: str
    port: int
    ttl: int = DAY_SECONDS


class NameServer:
    """Context manager of a name server. A test can change the records at any time.

    :ivar hosts: Lists of SRV records, keyed by the queried name.
    :ivar texts: Lists of TXT records, keyed by the queried name. Each record is a list of strings.
    :ivar addresses: IPv4 addresses, keyed by the host name.
    :ivar questions: The queried name and the record type of each received query.
    :ivar failure: The DNS error code (RCODE) of all replies, or None to reply with the records.
    :ivar silent: True if the name server replies to no query.
    """

    def __init__(self) -> None:
        self.hosts: defaultdict[str, list[Host]] = defaultdict(list)
        self.texts: defaultdict[str, list[list[str]]] = defaultdict(list)
        self.addresses: dict[str, str] = {}
        self.questions: list[tuple[str, str]] = []
        self.failure: int | None = None
        self.silent = False
        self._server: DatagramServer | None = None

    def __enter__(self) -> NameServer:
        self._server = DatagramServer("127.0.0.1:0", self._answer)
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.stop(timeout=0)

    def resolver(self) -> dns.resolver.Resolver:
        """Return a resolver that queries only this name server."""
        assert self._server is not None
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = self._server.server_port
        return resolver

    def _answer(self, data: bytes, client_address: Any) -> None:
        question = DNSRecord.parse(data)
        name, kind = str(question.q.qname).rstrip(".").lower(), QTYPE[question.q.qtype]
        self.questions.append((name, kind))
        if self.silent:
            return
        reply = question.reply()
        records = self._records(name, kind)
        if self.failure is not None:
            reply.header.rcode = self.failure
        elif records:
            reply.add_answer(*(RR(question.q.qname, question.q.qtype, rdata=r, ttl=ttl) for r, ttl in records))
        elif not self._exists(name):
            reply.header.rcode = RCODE.NXDOMAIN
        assert self._server is not None
        self._server.sendto(reply.pack(), client_address)

    def _records(self, name: str, kind: str) -> list[tuple[SRV | TXT | A, int]]:
        if kind == "SRV":
            return [(SRV(0, 5, port, target), ttl) for target, port, ttl in self.hosts.get(name, ())]
        if kind == "TXT":
            return [(TXT([part.encode() for part in parts]), DAY_SECONDS) for parts in self.texts.get(name, ())]
        if kind == "A" and name in self.addresses:
            return [(A(self.addresses[name]), DAY_SECONDS)]
        return []

    def _exists(self, name: str) -> bool:
        return any(name in records for records in (self.hosts, self.texts, self.addresses))


class Network:
    """Replacement of the driver's address resolution.

    The name server defines the IP addresses of hosts. :attr:`ports` maps the ports in SRV records to
    the ports of scripted servers. :attr:`resolved` lists the host and port of each resolution.
    """

    def __init__(self, name_server: NameServer) -> None:
        self.name_server = name_server
        self.ports: dict[int, int] = {}  # port in the SRV record -> port of the scripted server
        self.resolved: list[tuple[str, int]] = []

    def resolve(self, address: tuple[str, int], _ref: bool = True) -> list[tuple[int, Any]]:
        """Return the addresses of a host. This method replaces ``gmongo.wire.connect.resolve``."""
        host, port = address
        self.resolved.append(address)
        if host == "127.0.0.1":
            return [(_socket.AF_INET, address)]
        if host not in self.name_server.addresses:
            raise TransportError(_socket.EAI_NONAME, f"{host} has no address")
        return [(_socket.AF_INET, (self.name_server.addresses[host], self.ports.get(port, port)))]


def install(patch: Callable[..., None], name_server: NameServer) -> Network:
    """Make the driver send all DNS queries to `name_server`, and read IP addresses from its
    records.
    """
    network = Network(name_server)
    patch(dns.resolver, "default_resolver", name_server.resolver())
    patch(connect, "resolve", network.resolve)
    return network
