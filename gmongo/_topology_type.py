"""Topology types."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TOPOLOGY_TYPE", "TopologyType"]


class TopologyType(NamedTuple):
    """Topology types with their numbers. :data:`~gmongo.topology_description.TOPOLOGY_TYPE` is the only instance.

    Specification: Server Discovery and Monitoring, "TopologyType".

    :param Single: one server, either a standalone or with ``directConnection``.
    :param ReplicaSetNoPrimary: a replica set without a known primary.
    :param ReplicaSetWithPrimary: a replica set with a known primary.
    :param Sharded: the mongos servers of a sharded cluster.
    :param Unknown: no server has been checked successfully yet.
    :param LoadBalanced: a load balancer.
    """

    Single: int
    ReplicaSetNoPrimary: int
    ReplicaSetWithPrimary: int
    Sharded: int
    Unknown: int
    LoadBalanced: int

    def name_of(self, value: int) -> str:
        """Return the name of a topology type, such as ``"Sharded"``.

        :param value: the number.
        """
        return self._fields[value]


TOPOLOGY_TYPE = TopologyType(*range(6))
"""The topology types by name: ``TOPOLOGY_TYPE.Sharded``."""
