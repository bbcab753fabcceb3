"""Topology descriptions, which contain what the client knows about a deployment."""

from __future__ import annotations

from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.sdam.topology_description import TopologyDescription

__all__ = ["TOPOLOGY_TYPE", "TopologyDescription"]
