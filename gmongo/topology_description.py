"""Descriptions of topologies, as the client sees them."""

from __future__ import annotations

from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.sdam.topology_description import TopologyDescription

__all__ = ["TOPOLOGY_TYPE", "TopologyDescription"]
