"""What the client knows of the deployment as a whole."""

from __future__ import annotations

from gmongo.sdam.topology_description import TopologyDescription
from gmongo.topology_type import TOPOLOGY_TYPE

__all__ = ["TOPOLOGY_TYPE", "TopologyDescription"]
