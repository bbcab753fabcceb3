"""What the topology is told at construction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bson.objectid import ObjectId

from gmongo.cmap.options import ConnectionOptions, PoolOptions
from gmongo.monitoring import EventListeners
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.sdam.server_description import ServerDescription

MIN_HEARTBEAT_FREQUENCY = 0.5  # seconds, and not configurable (SM-34, SM-35)


@dataclass(frozen=True)
class TopologySettings:
    """The client's settings for discovery, monitoring and selection. Times are in seconds, None is without limit.

    :param seeds: where to begin.
    :param listeners: of all kinds.
    :param server_selector: narrows the suitable servers further.
    :param monitoring_mode: ``auto``, ``poll`` or ``stream``.
    """

    seeds: tuple[Address, ...]
    listeners: EventListeners
    replica_set_name: str | None = None
    direct_connection: bool = False
    load_balanced: bool = False
    heartbeat_frequency: float = 10.0
    local_threshold: float = 0.015
    server_selection_timeout: float = 30.0
    server_selector: Callable[[list[ServerDescription]], Iterable[ServerDescription]] | None = None
    monitoring_mode: str = "auto"
    srv_max_hosts: int = 0
    pool: PoolOptions = field(default_factory=PoolOptions)
    connection: ConnectionOptions = field(default_factory=ConnectionOptions)
    topology_id: Any = field(default_factory=ObjectId)
