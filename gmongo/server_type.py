"""Kinds of servers."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SERVER_TYPE", "ServerType"]


class ServerType(NamedTuple):
    """The kinds of servers, each with its number; :data:`SERVER_TYPE` is the only instance.

    Specification: Server Discovery and Monitoring, "ServerType".

    :param Unknown: not checked yet, or its last check failed.
    :param Mongos: a router of a sharded cluster.
    :param RSPrimary: the member of a replica set that takes writes.
    :param RSSecondary: a member that replicates.
    :param RSArbiter: a member without data.
    :param RSOther: a member in another state, such as startup or recovering, or a hidden one.
    :param RSGhost: a member that has no configuration yet.
    :param Standalone: a server that replicates with no other.
    :param LoadBalancer: whatever stands behind a load balancer.
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
        """The name of a kind, such as ``"RSPrimary"``.

        :param value: its number.
        """
        return self._fields[value]


SERVER_TYPE = ServerType(*range(9))
"""The kinds of servers by name: ``SERVER_TYPE.RSPrimary``."""
