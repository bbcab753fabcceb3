"""Pure functions that select suitable servers for an operation (Server Selection specification)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from gmongo._documents import Document
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import ConfigurationError
from gmongo.read_preferences import _ReadPreference
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.sdam.server_description import ServerDescription

_PRIMARY, _PRIMARY_PREFERRED, _SECONDARY, _SECONDARY_PREFERRED, _NEAREST = range(5)

# Interval in seconds at which an idle primary writes a no-op entry (idleWritePeriodMS).
_IDLE_WRITE_PERIOD = 10.0
_SMALLEST_MAX_STALENESS = 90


class WritableServer:
    """Selector of servers that accept writes."""

    mode = _mode = _PRIMARY
    document: Document = {}  # write commands contain no $readPreference
    tag_sets: Sequence[Document] = ({},)
    max_staleness = -1

    def __repr__(self) -> str:
        return "writable server"


WRITABLE = WritableServer()

Selector: TypeAlias = _ReadPreference | WritableServer
"""Server selector: a read preference, or ``WRITABLE``."""


class SelectableTopology(Protocol):
    """The attributes of a topology description that the functions in this module use."""

    topology_type: int  # one of TOPOLOGY_TYPE

    @property
    def known_servers(self) -> list[ServerDescription]: ...

    @property
    def heartbeat_frequency(self) -> float: ...


def find_suitable_servers(
    topology: SelectableTopology, selector: Selector, deprioritized: frozenset[Address]
) -> list[ServerDescription]:
    """Return the servers that match `selector`. Omit deprioritized servers, unless only such servers match."""
    _check_max_staleness(topology, selector)
    known = topology.known_servers
    if deprioritized:
        others = [server for server in known if server.address not in deprioritized]
        if suitable := _find_suitable_among(topology, selector, others):
            return suitable
    return _find_suitable_among(topology, selector, known)


def _find_suitable_among(
    topology: SelectableTopology, selector: Selector, servers: list[ServerDescription]
) -> list[ServerDescription]:
    topology_type = topology.topology_type
    if topology_type in (TOPOLOGY_TYPE.Single, TOPOLOGY_TYPE.LoadBalanced):
        return servers
    if topology_type == TOPOLOGY_TYPE.Sharded:  # a known server may be of another type
        return [server for server in servers if server.server_type == SERVER_TYPE.Mongos]
    if topology_type in (TOPOLOGY_TYPE.ReplicaSetNoPrimary, TOPOLOGY_TYPE.ReplicaSetWithPrimary):
        return _find_suitable_members(topology, selector, servers)
    return []


def _find_suitable_members(
    topology: SelectableTopology, selector: Selector, servers: list[ServerDescription]
) -> list[ServerDescription]:
    mode = selector.mode
    primaries = [server for server in servers if server.server_type == SERVER_TYPE.RSPrimary]
    if mode == _PRIMARY or (mode == _PRIMARY_PREFERRED and primaries):
        return primaries
    secondaries = [server for server in servers if server.server_type == SERVER_TYPE.RSSecondary]
    if mode == _NEAREST:
        return _find_matching(topology, selector, [*primaries, *secondaries])
    matching = _find_matching(topology, selector, secondaries)
    return primaries if not matching and mode == _SECONDARY_PREFERRED else matching


def _find_matching(
    topology: SelectableTopology, selector: Selector, servers: list[ServerDescription]
) -> list[ServerDescription]:
    return filter_by_tags(filter_by_staleness(topology, selector.max_staleness, servers), selector.tag_sets)


def filter_by_tags(servers: list[ServerDescription], tag_sets: Sequence[Document]) -> list[ServerDescription]:
    """Return the servers that match the first usable tag set. A tag set is usable if at least one server matches."""
    for tag_set in tag_sets:
        matching = [
            server for server in servers if all(server.tags.get(name) == value for name, value in tag_set.items())
        ]
        if matching:
            return matching
    return []


def filter_by_staleness(
    topology: SelectableTopology, max_staleness: int, servers: list[ServerDescription]
) -> list[ServerDescription]:
    """Omit servers whose estimated staleness exceeds `max_staleness` seconds. -1 means no limit."""
    if max_staleness == -1:
        return servers
    known, newest_write, primary_lag = topology.known_servers, 0.0, None
    primary = next((server for server in known if server.server_type == SERVER_TYPE.RSPrimary), None)
    if primary is not None and primary.last_write_date is not None:
        primary_lag = primary.last_update_time - primary.last_write_date
    else:
        secondaries = (server for server in known if server.server_type == SERVER_TYPE.RSSecondary)
        newest_write = max((server.last_write_date or 0.0 for server in secondaries), default=0.0)

    def staleness(server: ServerDescription, last_write: float) -> float:
        if primary_lag is None:
            return newest_write - last_write + topology.heartbeat_frequency
        return server.last_update_time - last_write - primary_lag + topology.heartbeat_frequency

    return [
        server
        for server in servers
        if server.server_type == SERVER_TYPE.RSPrimary
        or server.last_write_date is None
        or staleness(server, server.last_write_date) <= max_staleness
    ]


def _check_max_staleness(topology: SelectableTopology, selector: Selector) -> None:
    max_staleness = selector.max_staleness
    replica_set_types = TOPOLOGY_TYPE.ReplicaSetNoPrimary, TOPOLOGY_TYPE.ReplicaSetWithPrimary
    if max_staleness == -1 or topology.topology_type not in replica_set_types:
        return
    if max_staleness < topology.heartbeat_frequency + _IDLE_WRITE_PERIOD:
        raise ConfigurationError(
            f"maxStalenessSeconds is {max_staleness}, but must be at least heartbeatFrequencyMS "
            f"({topology.heartbeat_frequency:g} s) plus {_IDLE_WRITE_PERIOD:g} seconds"
        )
    if max_staleness < _SMALLEST_MAX_STALENESS:
        raise ConfigurationError(
            f"maxStalenessSeconds is {max_staleness}, but must be at least {_SMALLEST_MAX_STALENESS}"
        )


def filter_by_latency(servers: list[ServerDescription], local_threshold: float) -> list[ServerDescription]:
    """Return the servers whose round trip time is at most the shortest round trip time plus `local_threshold`."""
    if not servers:
        return servers
    shortest_time = min(server.round_trip_time or 0.0 for server in servers)
    return [server for server in servers if (server.round_trip_time or 0.0) <= shortest_time + local_threshold]
