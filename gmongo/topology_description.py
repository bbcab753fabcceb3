"""Topology descriptions: the type and the servers of a deployment, as the client knows them."""

from __future__ import annotations

from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.sdam.topology_description import TopologyDescription

__all__ = ["TOPOLOGY_TYPE", "TopologyDescription"]
