"""A load balancer: one port that distributes connections over several services."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gmongo.testing.simulation.listener import HOST, Listener, reserve
from gmongo.testing.simulation.member import Member


class LoadBalancer:
    """Forwards each connection to the next service that is alive, or closes the connection.

    :param services: mongos that expect a load balancer.
    """

    def __init__(self, services: Sequence[Member], port: int = 0) -> None:
        self._services = services
        self._turns = itertools.cycle(services)
        self._listener = Listener(reserve(port), self._pass_on)
        self.port = self._listener.port

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{HOST}:{self.port}"

    def close(self) -> None:
        """Refuse further connections."""
        self._listener.close()

    def _pass_on(self, sock: Any) -> None:
        for service in itertools.islice(self._turns, len(self._services)):
            if service.alive:
                service.accept(sock)
                return
        sock.close()
