"""Pure functions for the next topology description (SDAM specification, "TopologyType table")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bson.objectid import ObjectId

from gmongo._documents import Document
from gmongo._server_facts import wire_versions
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import ConfigurationError
from gmongo.sdam.server_description import ServerDescription
from gmongo.server_type import SERVER_TYPE
from gmongo.wire.address import Address

if TYPE_CHECKING:
    from gmongo.sdam.topology_description import TopologyDescription

_MEMBER_TYPES = (SERVER_TYPE.RSSecondary, SERVER_TYPE.RSArbiter, SERVER_TYPE.RSOther)
_NULL_ID = ObjectId("0" * 24)


def is_stale(current: Document | None, new: Document | None, equal_is_stale: bool) -> bool:
    """Return True if `new` is older than `current`, or is equal and `equal_is_stale` is True.

    Return False if a topology version is missing, or if the versions come from different server
    processes.
    """
    if current is None or new is None or current["processId"] != new["processId"]:
        return False
    return bool(new["counter"] < current["counter"] or (equal_is_stale and new["counter"] == current["counter"]))


def update_topology(topology: TopologyDescription, server: ServerDescription) -> TopologyDescription:
    """Return the topology description that results from a new description of one server."""
    return _Update(topology, server).compute()


def replace_srv_hosts(
    topology: TopologyDescription,
    hosts: Sequence[Address],
    max_hosts: int,
    sample: Callable[[list[Address], int], list[Address]],
) -> TopologyDescription:
    """Return the description with the hosts from a DNS query. `max_hosts` of 0 means no limit."""
    known = topology.server_descriptions()
    unchanged = {address: server for address, server in known.items() if address in hosts}
    new = [address for address in hosts if address not in known]
    if max_hosts:
        room = max(0, max_hosts - len(unchanged))
        new = new if len(new) <= room else sample(new, room)
    return topology.replaced(server_descriptions=unchanged | {address: ServerDescription(address) for address in new})


def _make_election_key(election_id: ObjectId | None, set_version: int | None) -> tuple[ObjectId, int]:
    """Return a key that orders elections from old to new. A missing ID or version sorts first."""
    return election_id or _NULL_ID, -1 if set_version is None else set_version


class _Update:
    """Computation of a topology description from the old topology description and one new server description."""

    def __init__(self, topology: TopologyDescription, server: ServerDescription) -> None:
        self.topology = topology
        self.server = server
        self.kind = topology.topology_type
        self.set_name = topology.replica_set_name
        self.set_version = topology.max_set_version
        self.election_id = topology.max_election_id
        self.servers = topology.server_descriptions()

    def compute(self) -> TopologyDescription:
        if self.kind == TOPOLOGY_TYPE.Single:
            self._check_set_name_of_single()
        self.servers[self.server.address] = self.server
        handler = _HANDLERS.get(self.kind)
        if handler is not None:
            handler(self)
        return self.topology.replaced(
            topology_type=self.kind,
            server_descriptions=self.servers,
            replica_set_name=self.set_name,
            max_set_version=self.set_version,
            max_election_id=self.election_id,
        )

    def _check_set_name_of_single(self) -> None:
        expected, actual = self.set_name, self.server.replica_set_name
        if expected is not None and self.server.is_server_type_known and expected != actual:
            error = ConfigurationError(
                f"client is configured for replica set {expected!r}, but the server is in {actual!r}"
            )
            self.server = self.server.to_unknown(error)

    def _update_unknown(self) -> None:
        server_type = self.server.server_type
        if server_type == SERVER_TYPE.Standalone:
            if len(self.topology.settings.seeds) == 1:
                self.kind = TOPOLOGY_TYPE.Single
            else:
                self._remove_server()
        elif server_type == SERVER_TYPE.Mongos:
            self.kind = TOPOLOGY_TYPE.Sharded
        elif server_type == SERVER_TYPE.RSPrimary or server_type in _MEMBER_TYPES:
            self.kind = TOPOLOGY_TYPE.ReplicaSetNoPrimary
            self._update_replica_set()

    def _update_sharded(self) -> None:
        if self.server.server_type not in (SERVER_TYPE.Unknown, SERVER_TYPE.Mongos):
            self._remove_server()

    def _update_replica_set(self) -> None:
        server_type = self.server.server_type
        if server_type in (SERVER_TYPE.Standalone, SERVER_TYPE.Mongos):
            self._remove_server()
        elif server_type == SERVER_TYPE.RSPrimary:
            self._update_from_primary()
        elif server_type in _MEMBER_TYPES and self.kind == TOPOLOGY_TYPE.ReplicaSetWithPrimary:
            self._update_from_member_with_primary()
        elif server_type in _MEMBER_TYPES:
            self._update_from_member_without_primary()
        has_primary = any(server.server_type == SERVER_TYPE.RSPrimary for server in self.servers.values())
        self.kind = TOPOLOGY_TYPE.ReplicaSetWithPrimary if has_primary else TOPOLOGY_TYPE.ReplicaSetNoPrimary

    def _update_from_primary(self) -> None:
        """Apply updateRSFromPrimary of the specification."""
        if self.set_name is None:
            self.set_name = self.server.replica_set_name
        elif self.set_name != self.server.replica_set_name:
            self._remove_server()
            return
        if self._is_stale_primary():
            error = ConfigurationError("primary marked stale due to electionId/setVersion mismatch")
            self.servers[self.server.address] = ServerDescription(self.server.address, error=error)
            return
        self._demote_other_primaries()
        self._add_members()
        for address in set(self.servers) - self.server.all_hosts:
            del self.servers[address]

    def _is_stale_primary(self) -> bool:
        """Return True if the election of the primary is older than a known election. Otherwise, store the election."""
        election_id, set_version = self.server.election_id, self.server.set_version
        if self.server.max_wire_version >= wire_versions.ELECTION_ID_FIRST:
            if _make_election_key(election_id, set_version) < _make_election_key(self.election_id, self.set_version):
                return True
            self.election_id, self.set_version = election_id, set_version
            return False
        if election_id is not None and set_version is not None:
            is_election_known = self.set_version is not None and self.election_id is not None
            if is_election_known and (self.set_version, self.election_id) > (set_version, election_id):
                return True
            self.election_id = election_id
        if set_version is not None and (self.set_version is None or set_version > self.set_version):
            self.set_version = set_version
        return False

    def _demote_other_primaries(self) -> None:
        for address, server in self.servers.items():
            if server.server_type == SERVER_TYPE.RSPrimary and address != self.server.address:
                error = ConfigurationError("primary marked stale due to discovery of newer primary")
                self.servers[address] = ServerDescription(address, error=error)

    def _update_from_member_without_primary(self) -> None:
        """Apply updateRSWithoutPrimary of the specification."""
        if self.set_name is None:
            self.set_name = self.server.replica_set_name
        elif self.set_name != self.server.replica_set_name:
            self._remove_server()
            return
        self._add_members()
        if self.server.me is not None and self.server.me != self.server.address:
            self._remove_server()

    def _update_from_member_with_primary(self) -> None:
        """Apply updateRSWithPrimaryFromMember of the specification."""
        has_other_address = self.server.me is not None and self.server.me != self.server.address
        if has_other_address or self.set_name != self.server.replica_set_name:
            self._remove_server()

    def _add_members(self) -> None:
        # sort the addresses, so that events and messages have a fixed order
        for address in sorted(self.server.all_hosts):
            if address not in self.servers:
                self.servers[address] = ServerDescription(address)

    def _remove_server(self) -> None:
        del self.servers[self.server.address]


_HANDLERS = {
    TOPOLOGY_TYPE.Unknown: _Update._update_unknown,
    TOPOLOGY_TYPE.Sharded: _Update._update_sharded,
    TOPOLOGY_TYPE.ReplicaSetNoPrimary: _Update._update_replica_set,
    TOPOLOGY_TYPE.ReplicaSetWithPrimary: _Update._update_replica_set,
}
