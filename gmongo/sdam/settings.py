"""The options of a topology."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bson.objectid import ObjectId

from gmongo.cmap.pool_settings import ConnectionSettings, PoolSettings
from gmongo.monitoring import EventListeners
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.sdam.server_description import ServerDescription

MIN_HEARTBEAT_FREQUENCY = 0.5  # seconds, and not configurable (SM-34, SM-35)
SRV_RESCAN_INTERVAL = 60.0  # seconds


class SrvRecords(Protocol):
    """The records of a ``mongodb+srv`` name."""

    def verified_hosts(self) -> tuple[Sequence[Address], int]:
        """The hosts that DNS names now and that are allowed, and how many seconds the answer may be kept.

        :raises ConfigurationError: DNS failed, or names no such host.
        """


@dataclass(frozen=True, eq=False)
class TopologySettings:
    """The client's settings for discovery, monitoring and selection. Times are in seconds, None is without limit.

    :param seeds: where to begin.
    :param listeners: of all kinds.
    :param server_selector: narrows the suitable servers further.
    :param monitoring_mode: ``auto``, ``poll`` or ``stream``.
    :param srv: where the seeds are from, if that is DNS.
    :param resolve: makes the settings with the seeds and options from DNS; None if the seeds are known.
    :param srv_max_hosts: the most hosts taken from there; 0 is without limit.
    :param connection_made: is called for each connection that was established, with the address and the seconds.
    :param silent: whether nothing is logged, nor shown of the client.
    :param srv_rescan_interval: DNS is asked again no more often than this.
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
    srv: SrvRecords | None = None
    resolve: Callable[[TopologySettings], TopologySettings] | None = None
    srv_max_hosts: int = 0
    srv_rescan_interval: float = SRV_RESCAN_INTERVAL
    connection_made: Callable[[Address, float], None] | None = None
    silent: bool = False
    pool: PoolSettings = field(default_factory=PoolSettings)
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    topology_id: ObjectId = field(default_factory=ObjectId)
