"""Topology descriptions: the state of a deployment with the servers that the client knows."""

from __future__ import annotations

from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.sdam.topology_description import TopologyDescription

__all__ = ["TOPOLOGY_TYPE", "TopologyDescription"]
