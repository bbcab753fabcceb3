"""Server types."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SERVER_TYPE", "ServerType"]


class ServerType(NamedTuple):
    """Numbers of the server types. :data:`SERVER_TYPE` is the only instance.

    Specification: Server Discovery and Monitoring, "ServerType".

    :param Unknown: the number for a server before its first successful check, or after an error.
    :param Mongos: the number for a mongos of a sharded cluster.
    :param RSPrimary: the number for the primary of a replica set.
    :param RSSecondary: the number for a secondary of a replica set.
    :param RSArbiter: the number for an arbiter of a replica set. An arbiter has no data.
    :param RSOther: the number for a hidden, starting or recovering member of a replica set.
    :param RSGhost: the number for a member that has no replica set configuration.
    :param Standalone: the number for a server that belongs to no replica set.
    :param LoadBalancer: the number for a load balancer.
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

        :param value: the number of the server type.
        """
        return self._fields[value]


SERVER_TYPE = ServerType(*range(9))
"""The numbers of the server types. For example, ``SERVER_TYPE.RSPrimary`` is 2."""
