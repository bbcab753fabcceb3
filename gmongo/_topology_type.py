"""Topology types."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TOPOLOGY_TYPE", "TopologyType"]


class TopologyType(NamedTuple):
    """Numbers of the topology types. :data:`~gmongo.topology_description.TOPOLOGY_TYPE` is the only instance.

    Specification: Server Discovery and Monitoring, "TopologyType".

    :param Single: the number for one server: a standalone or a server with ``directConnection=True``.
    :param ReplicaSetNoPrimary: the number for a replica set without a known primary.
    :param ReplicaSetWithPrimary: the number for a replica set with a known primary.
    :param Sharded: the number for the mongos servers of a sharded cluster.
    :param Unknown: the number for a deployment whose type the client does not know yet.
    :param LoadBalanced: the number for a load balancer.
    """

    Single: int
    ReplicaSetNoPrimary: int
    ReplicaSetWithPrimary: int
    Sharded: int
    Unknown: int
    LoadBalanced: int

    def name_of(self, value: int) -> str:
        """Return the name of a topology type, such as ``"Sharded"``.

        :param value: the number of the topology type.
        """
        return self._fields[value]


TOPOLOGY_TYPE = TopologyType(*range(6))
"""The numbers of the topology types. For example, ``TOPOLOGY_TYPE.Sharded`` is 3."""
