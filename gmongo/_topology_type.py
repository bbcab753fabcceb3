"""Kinds of topologies."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TOPOLOGY_TYPE", "TopologyType"]


class TopologyType(NamedTuple):
    """The kinds of topologies by number; the only instance: :data:`~gmongo.topology_description.TOPOLOGY_TYPE`.

    Specification: Server Discovery and Monitoring, "TopologyType".

    :param Single: one server, by its own or by ``directConnection``.
    :param ReplicaSetNoPrimary: a replica set without a known primary.
    :param ReplicaSetWithPrimary: a replica set with one.
    :param Sharded: the routers of a sharded cluster.
    :param Unknown: no server has said yet what it is part of.
    :param LoadBalanced: a load balancer.
    """

    Single: int
    ReplicaSetNoPrimary: int
    ReplicaSetWithPrimary: int
    Sharded: int
    Unknown: int
    LoadBalanced: int

    def name_of(self, value: int) -> str:
        """The name of a kind, such as ``"Sharded"``.

        :param value: its number.
        """
        return self._fields[value]


TOPOLOGY_TYPE = TopologyType(*range(6))
"""The kinds of topologies by name: ``TOPOLOGY_TYPE.Sharded``."""
