"""Immutable description of the state of a deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

from bson.objectid import ObjectId

from gmongo._parameter_docs import read_only
from gmongo._server_facts import wire_versions
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import ConfigurationError
from gmongo.sdam.selection import WRITABLE, Selector, filter_by_latency, find_suitable_servers
from gmongo.sdam.server_description import ServerDescription
from gmongo.sdam.settings import TopologySettings
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address


class TopologyDescription:
    """State of the deployment: the topology type, and the last known state of each server.

    :param topology_type: one of :data:`~gmongo.topology_description.TOPOLOGY_TYPE`.
    :param server_descriptions: server descriptions by address.
    :param replica_set_name: replica set name from the options or from a server.
    :param max_set_version: highest set version of a primary.
    :param max_election_id: highest election ID of a primary.
    :param topology_settings: topology settings of the client.

    `session_usable_seconds` is the number of seconds for which an unused session remains usable. The
    number is one minute less than the session timeout of the servers, or infinite if no session
    timeout is known.
    """

    def __init__(
        self,
        topology_type: int,
        server_descriptions: Mapping[Address, ServerDescription],
        replica_set_name: str | None,
        max_set_version: int | None,
        max_election_id: ObjectId | None,
        topology_settings: TopologySettings,
    ) -> None:
        self._topology_type = topology_type
        self._servers = dict(server_descriptions)
        self._replica_set_name = replica_set_name
        self._max_set_version = max_set_version
        self._max_election_id = max_election_id
        self._settings = topology_settings
        self._compatibility_error = _find_incompatibility(self._servers.values())
        timeout = self._logical_session_timeout_minutes = _find_session_timeout(self.readable_servers)
        self.session_usable_seconds = inf if timeout is None else (timeout - 1) * 60.0

    topology_type: int = read_only("_topology_type", "One of :data:`~gmongo.topology_description.TOPOLOGY_TYPE`.")
    replica_set_name: str | None = read_only("_replica_set_name", "Name of the replica set.")
    max_set_version: int | None = read_only("_max_set_version", "Highest set version of a primary.")
    max_election_id: ObjectId | None = read_only("_max_election_id", "Highest election ID of a primary.")
    settings: TopologySettings = read_only("_settings", "Topology settings of the client.")
    logical_session_timeout_minutes: int | None = read_only(
        "_logical_session_timeout_minutes",
        "Shortest session timeout of the data-bearing servers; None if a data-bearing server has no sessions.",
    )

    def check_compatible(self) -> None:
        """Check that gmongo supports the wire versions of all servers.

        :raises ConfigurationError: a server is too old or too new.
        """
        if self._compatibility_error:
            raise ConfigurationError(self._compatibility_error)

    @property
    def compatibility_error(self) -> str | None:
        """Error text that names a server whose wire versions gmongo does not support, or None."""
        return self._compatibility_error

    def server_descriptions(self) -> dict[Address, ServerDescription]:
        """Return the server descriptions by address."""
        return dict(self._servers)

    def get(self, address: Address) -> ServerDescription | None:
        """Return the description of a server, or None if the server is not part of the topology.

        :param address: address of the server: host and port.
        """
        return self._servers.get(address)

    @property
    def topology_type_name(self) -> str:
        """Name of the topology type, such as ``"Sharded"``."""
        return TOPOLOGY_TYPE._fields[self._topology_type]

    @property
    def heartbeat_frequency(self) -> float:
        """Seconds between two checks of a server."""
        return self._settings.heartbeat_frequency

    @property
    def srv_max_hosts(self) -> int:
        """Maximum number of hosts from SRV records. 0 means no limit."""
        return self._settings.srv_max_hosts

    @property
    def known_servers(self) -> list[ServerDescription]:
        """Servers whose type is not Unknown."""
        return [server for server in self._servers.values() if server.is_server_type_known]

    @property
    def has_known_servers(self) -> bool:
        """True if the type of at least one server is not Unknown."""
        return any(server.is_server_type_known for server in self._servers.values())

    @property
    def readable_servers(self) -> list[ServerDescription]:
        """Servers that accept reads."""
        return [server for server in self._servers.values() if server.is_readable]

    @property
    def candidate_servers(self) -> list[ServerDescription]:
        """Servers among which server selection chooses: all known servers."""
        return self.known_servers

    @property
    def common_wire_version(self) -> int | None:
        """Highest wire version that all known servers support. None if no server is known."""
        return min((server.max_wire_version for server in self.known_servers), default=None)

    def has_server(self, address: Address) -> bool:
        """Return True if a server is part of the topology.

        :param address: address of the server: host and port.
        """
        return address in self._servers

    def has_readable_server(self, read_preference: Selector | None = None) -> bool:
        """Return True if at least one server is suitable for reads with the read preference.

        :param read_preference: read preference; None means primary.
        """
        selector = WRITABLE if read_preference is None else read_preference
        return bool(self.apply_selector(selector))

    def has_writable_server(self) -> bool:
        """Return True if at least one server is suitable for writes."""
        return bool(self.apply_selector(WRITABLE))

    def apply_selector(
        self,
        selector: Selector,
        address: Address | None = None,
        custom_selector: Callable[[list[ServerDescription]], Iterable[ServerDescription]] | None = None,
        deprioritized_servers: Iterable[Address] | None = None,
    ) -> list[ServerDescription]:
        """Return the servers that are suitable for a selector and are in the latency window.

        :param selector: a read preference, or :data:`~gmongo.sdam.selection.WRITABLE`.
        :param address: address of the only server that this method may return, even if the server
            does not match the selector; None means all servers.
        :param custom_selector: function of the application that filters the list of suitable servers.
        :param deprioritized_servers: addresses of servers that are returned only if no other server
            is suitable.
        """
        if address is not None:
            server = self._servers.get(address)
            return [server] if server is not None and server.is_server_type_known else []
        servers = find_suitable_servers(self, selector, frozenset(deprioritized_servers or ()))
        if custom_selector is not None and servers:
            servers = list(custom_selector(servers))
        return filter_by_latency(servers, self._settings.local_threshold)

    def reset(self) -> TopologyDescription:
        """Return a topology description in which every server is Unknown."""
        return self._replace_after_reset({address: ServerDescription(address) for address in self._servers})

    def reset_server(self, address: Address) -> TopologyDescription:
        """Return a topology description in which one server is Unknown.

        :param address: address of the server: host and port.
        """
        return self._replace_after_reset({**self._servers, address: self._servers[address].to_unknown()})

    def _replace_after_reset(self, servers: dict[Address, ServerDescription]) -> TopologyDescription:
        kind = self._topology_type
        has_primary = any(server.server_type == SERVER_TYPE.RSPrimary for server in servers.values())
        if kind == TOPOLOGY_TYPE.ReplicaSetWithPrimary and not has_primary:
            kind = TOPOLOGY_TYPE.ReplicaSetNoPrimary
        return self.replaced(topology_type=kind, server_descriptions=servers)

    def replaced(self, **changes: Any) -> TopologyDescription:
        """Return a copy of the description with some changed constructor arguments.

        :param changes: names and new values of the changed arguments.
        """
        names = ("topology_type", "replica_set_name", "max_set_version", "max_election_id")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields |= {"server_descriptions": self._servers, "topology_settings": self._settings}
        return TopologyDescription(**{**fields, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopologyDescription):
            return NotImplemented
        has_same_type = self._topology_type == other._topology_type
        return has_same_type and self._replica_set_name == other._replica_set_name and self._servers == other._servers

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        servers = sorted(self._servers.values(), key=lambda server: (server.address[0], server.address[1] or 0))
        return (
            f"<TopologyDescription id: {self._settings.topology_id}, topology_type: {self.topology_type_name}, "
            f"servers: {servers!r}>"
        )


def initial_description(settings: TopologySettings) -> TopologyDescription:
    """Return the topology description of a new client, from the options of the client."""
    if settings.load_balanced:
        kind = TOPOLOGY_TYPE.LoadBalanced
    elif settings.direct_connection:
        kind = TOPOLOGY_TYPE.Single
    elif settings.replica_set_name is not None:
        kind = TOPOLOGY_TYPE.ReplicaSetNoPrimary
    else:
        kind = TOPOLOGY_TYPE.Unknown
    servers = {seed: ServerDescription(seed) for seed in settings.seeds}
    return TopologyDescription(kind, servers, settings.replica_set_name, None, None, settings)


def _find_session_timeout(data_bearing_servers: list[ServerDescription]) -> int | None:
    timeouts = [server.logical_session_timeout_minutes for server in data_bearing_servers]
    known = [timeout for timeout in timeouts if timeout is not None]
    return min(known) if known and len(known) == len(timeouts) else None


def _find_incompatibility(servers: Iterable[ServerDescription]) -> str | None:
    for server in servers:
        if not server.is_server_type_known or server.server_type == SERVER_TYPE.LoadBalancer:
            continue
        where = f"{server.address[0]}:{server.address[1] or 0}"
        if server.min_wire_version > wire_versions.MAX_SUPPORTED:
            return (
                f"Server at {where} requires wire version {server.min_wire_version}, but this version of gmongo only "
                f"supports up to {wire_versions.MAX_SUPPORTED}."
            )
        if server.max_wire_version < wire_versions.MIN_SUPPORTED:
            return (
                f"Server at {where} reports wire version {server.max_wire_version}, but this version of gmongo "
                f"requires at least {wire_versions.MIN_SUPPORTED} (MongoDB 4.2)."
            )
    return None
