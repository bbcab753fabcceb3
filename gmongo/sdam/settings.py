"""Settings of a topology, which result from the options of the client."""

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

MIN_HEARTBEAT_FREQUENCY = 0.5  # Seconds. Applications cannot change the minimum (SM-34, SM-35).
SRV_RESCAN_INTERVAL = 60.0  # Minimum seconds from a successful DNS query to the next query.


class SrvRecords(Protocol):
    """SRV records of the host name in a ``mongodb+srv`` URI."""

    def verified_hosts(self) -> tuple[Sequence[Address], int]:
        """Query DNS for the SRV records. Return the allowed hosts and the time to live in seconds."""


@dataclass(frozen=True, eq=False)
class TopologySettings:
    """Settings of server discovery, monitoring and server selection. Times are in seconds."""

    seeds: tuple[Address, ...]
    listeners: EventListeners
    replica_set_name: str | None = None
    direct_connection: bool = False
    load_balanced: bool = False
    heartbeat_frequency: float = 10.0
    local_threshold: float = 0.015
    server_selection_timeout: float = 30.0
    # custom selector of the application, which filters the suitable servers
    server_selector: Callable[[list[ServerDescription]], Iterable[ServerDescription]] | None = None
    monitoring_mode: str = "auto"  # other modes: "poll" and "stream"
    srv: SrvRecords | None = None
    # function that queries DNS for the seeds, and returns complete settings. None for known seeds
    resolve: Callable[[TopologySettings], TopologySettings] | None = None
    srv_max_hosts: int = 0  # Maximum number of hosts from SRV records. 0 means no limit.
    srv_rescan_interval: float = SRV_RESCAN_INTERVAL  # Minimum time after a successful SRV query.
    # Callback that receives the address and the establishment duration of each new connection.
    connection_made: Callable[[Address, float], None] | None = None
    silent: bool = False  # True if the client logs nothing, and if statistics omit the client
    pool: PoolSettings = field(default_factory=PoolSettings)
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    topology_id: ObjectId = field(default_factory=ObjectId)
