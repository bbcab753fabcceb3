"""A load balancer: one port that distributes connections among several mongos."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gmongo.testing.simulation.listener import HOST, Listener, reserve
from gmongo.testing.simulation.member import Member


class LoadBalancer:
    """Forwards each connection to the next mongos that is alive.

    If no mongos is alive, the load balancer closes the connection.

    :param services: the mongos, which are members with a ``serviceId``.
    :param port: the TCP port; 0 means any free port.
    """

    def __init__(self, services: Sequence[Member], port: int = 0) -> None:
        self._services = services
        self._next_services = itertools.cycle(services)
        self._listener = Listener(reserve(port), self._forward)
        self.port = self._listener.port

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{HOST}:{self.port}"

    def close(self) -> None:
        """Refuse further connections."""
        self._listener.close()

    def _forward(self, sock: Any) -> None:
        for service in itertools.islice(self._next_services, len(self._services)):
            if service.alive:
                service.accept(sock)
                return
        sock.close()
