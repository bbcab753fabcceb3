"""Server types."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SERVER_TYPE", "ServerType"]


class ServerType(NamedTuple):
    """Server types with their numbers. :data:`SERVER_TYPE` is the only instance.

    Specification: Server Discovery and Monitoring, "ServerType".

    :param Unknown: not checked yet, or its last check failed.
    :param Mongos: a mongos of a sharded cluster.
    :param RSPrimary: the primary of a replica set.
    :param RSSecondary: a secondary of a replica set.
    :param RSArbiter: an arbiter of a replica set, without data.
    :param RSOther: a hidden member, or a member in another state such as startup or recovering.
    :param RSGhost: a member without a replica set configuration.
    :param Standalone: a server outside of any replica set.
    :param LoadBalancer: a server behind a load balancer.
    """

    Unknown: int
    Mongos: int
    RSPrimary: int
    RSSecondary: int
    RSArbiter: int
    RSOther: int
    RSGhost: int
    Standalone: int
    LoadBalancer: int

    def name_of(self, value: int) -> str:
        """Return the name of a server type, such as ``"RSPrimary"``.

        :param value: the number.
        """
        return self._fields[value]


SERVER_TYPE = ServerType(*range(9))
"""The server types by name: ``SERVER_TYPE.RSPrimary``."""
