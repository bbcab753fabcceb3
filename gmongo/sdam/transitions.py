"""How a topology description follows from the one before and a new server description. Pure functions, no I/O.

The table of the Server Discovery and Monitoring specification ("TopologyType table") in code: one function for each
kind of topology, and one for each thing that can be learnt of a replica set.
"""

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

_MEMBERS = (SERVER_TYPE.RSSecondary, SERVER_TYPE.RSArbiter, SERVER_TYPE.RSOther)
_NULL_ID = ObjectId("0" * 24)


def is_stale(current: Document | None, new: Document | None, equal_is_stale: bool) -> bool:
    """Whether the topologyVersion `new` is older than `current`; unknown or of another process is not."""
    if current is None or new is None or current["processId"] != new["processId"]:
        return False
    if equal_is_stale:
        return bool(new["counter"] <= current["counter"])
    return bool(new["counter"] < current["counter"])


def updated(topology: TopologyDescription, server: ServerDescription) -> TopologyDescription:
    """The topology after a check, or an error, of one of its servers."""
    return _Update(topology, server).result()


def with_srv_hosts(
    topology: TopologyDescription,
    hosts: Sequence[Address],
    max_hosts: int,
    sample: Callable[[list[Address], int], list[Address]],
) -> TopologyDescription:
    """The topology after DNS named `hosts`: those that are still named stay as they are.

    :param max_hosts: how many hosts there may be; 0 is without limit.
    :param sample: takes so many of the new ones at random.
    """
    known = topology.server_descriptions()
    stay = {address: server for address, server in known.items() if address in hosts}
    new = [address for address in hosts if address not in known]
    if max_hosts:
        room = max(0, max_hosts - len(stay))
        new = new if len(new) <= room else sample(new, room)
    return topology.replaced(server_descriptions=stay | {address: ServerDescription(address) for address in new})


def _order(election_id: ObjectId | None, set_version: int | None) -> tuple[ObjectId, int]:
    """What elections are compared by; what is missing is older than any."""
    return election_id or _NULL_ID, -1 if set_version is None else set_version


class _Update:
    """One update in the making."""

    def __init__(self, topology: TopologyDescription, server: ServerDescription) -> None:
        self.topology = topology
        self.server = server
        self.kind = topology.topology_type
        self.set_name = topology.replica_set_name
        self.set_version = topology.max_set_version
        self.election_id = topology.max_election_id
        self.servers = topology.server_descriptions()

    def result(self) -> TopologyDescription:
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
        wanted, found = self.set_name, self.server.replica_set_name
        if wanted is not None and self.server.is_server_type_known and wanted != found:
            error = ConfigurationError(
                f"client is configured for replica set {wanted!r}, but the server is in {found!r}"
            )
            self.server = self.server.to_unknown(error)

    # One method for each kind of topology

    def unknown(self) -> None:
        found = self.server.server_type
        if found == SERVER_TYPE.Standalone:
            if len(self.topology.settings.seeds) == 1:
                self.kind = TOPOLOGY_TYPE.Single
            else:
                self._remove()
        elif found == SERVER_TYPE.Mongos:
            self.kind = TOPOLOGY_TYPE.Sharded
        elif found == SERVER_TYPE.RSPrimary:
            self._from_primary()
        elif found in _MEMBERS:
            self.kind = TOPOLOGY_TYPE.ReplicaSetNoPrimary
            self._from_member_without_primary()

    def sharded(self) -> None:
        if self.server.server_type not in (SERVER_TYPE.Unknown, SERVER_TYPE.Mongos):
            self._remove()

    def replica_set_no_primary(self) -> None:
        found = self.server.server_type
        if found in (SERVER_TYPE.Standalone, SERVER_TYPE.Mongos):
            self._remove()
        elif found == SERVER_TYPE.RSPrimary:
            self._from_primary()
        elif found in _MEMBERS:
            self._from_member_without_primary()

    def replica_set_with_primary(self) -> None:
        found = self.server.server_type
        if found in (SERVER_TYPE.Standalone, SERVER_TYPE.Mongos):
            self._remove()
            self._check_for_primary()
        elif found == SERVER_TYPE.RSPrimary:
            self._from_primary()
        elif found in _MEMBERS:
            self._from_member_with_primary()
        else:
            self._check_for_primary()

    # What can be learnt of a replica set

    def _from_primary(self) -> None:
        """updateRSFromPrimary."""
        if self.set_name is None:
            self.set_name = self.server.replica_set_name
        elif self.set_name != self.server.replica_set_name:
            self._remove()
            self._check_for_primary()
            return
        if self._is_stale_primary():
            error = ConfigurationError("primary marked stale due to electionId/setVersion mismatch")
            self.servers[self.server.address] = ServerDescription(self.server.address, error=error)
            self._check_for_primary()
            return
        self._demote_other_primaries()
        self._adopt(self.server)
        for address in set(self.servers) - self.server.all_hosts:
            del self.servers[address]
        self._check_for_primary()

    def _is_stale_primary(self) -> bool:
        """Compare with the newest election seen; remember this one if it is newer."""
        found_id, found_version = self.server.election_id, self.server.set_version
        if self.server.max_wire_version >= wire_versions.ELECTION_ID_FIRST:
            if _order(found_id, found_version) < _order(self.election_id, self.set_version):
                return True
            self.election_id, self.set_version = found_id, found_version
            return False
        if found_id is not None and found_version is not None:
            newest_known = self.set_version is not None and self.election_id is not None
            if newest_known and (self.set_version, self.election_id) > (found_version, found_id):
                return True
            self.election_id = found_id
        if found_version is not None and (self.set_version is None or found_version > self.set_version):
            self.set_version = found_version
        return False

    def _demote_other_primaries(self) -> None:
        for address, server in self.servers.items():
            if server.server_type == SERVER_TYPE.RSPrimary and address != self.server.address:
                error = ConfigurationError("primary marked stale due to discovery of newer primary")
                self.servers[address] = ServerDescription(address, error=error)

    def _from_member_without_primary(self) -> None:
        """updateRSWithoutPrimary."""
        if self.set_name is None:
            self.set_name = self.server.replica_set_name
        elif self.set_name != self.server.replica_set_name:
            self._remove()
            return
        self._adopt(self.server)
        if self.server.me is not None and self.server.me != self.server.address:
            self._remove()

    def _from_member_with_primary(self) -> None:
        """updateRSWithPrimaryFromMember."""
        if self.set_name != self.server.replica_set_name or (
            self.server.me is not None and self.server.me != self.server.address
        ):
            self._remove()
        self._check_for_primary()

    def _adopt(self, server: ServerDescription) -> None:
        for address in sorted(server.all_hosts):  # so that events and messages name them in one order, always
            if address not in self.servers:
                self.servers[address] = ServerDescription(address)

    def _remove(self) -> None:
        del self.servers[self.server.address]

    def _check_for_primary(self) -> None:
        has_primary = any(server.server_type == SERVER_TYPE.RSPrimary for server in self.servers.values())
        self.kind = TOPOLOGY_TYPE.ReplicaSetWithPrimary if has_primary else TOPOLOGY_TYPE.ReplicaSetNoPrimary


_HANDLERS = {
    TOPOLOGY_TYPE.Unknown: _Update.unknown,
    TOPOLOGY_TYPE.Sharded: _Update.sharded,
    TOPOLOGY_TYPE.ReplicaSetNoPrimary: _Update.replica_set_no_primary,
    TOPOLOGY_TYPE.ReplicaSetWithPrimary: _Update.replica_set_with_primary,
}
