"""The state of a sharded cluster. The simulation contains only the mongos of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bson import Int64

from gmongo.testing.command import error
from gmongo.testing.simulation.topologies.base import Topology

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.member import Member

_CHECK_METADATA_VERSION = (7, 0)  # The first version with checkMetadataConsistency.
_EXHAUST_CURSORS_VERSION = (7, 1)  # The first version whose mongos supports exhaust cursors (SERVER-57297).
_SHARD_MEMBER_COUNT = 3  # The number of members of the shard.
_RECOVERY_TOKEN = {"recoveryShardId": "shard01"}


def _check_metadata(call: Call) -> dict[str, Any]:
    """Execute ``checkMetadataConsistency``. The reply contains no inconsistency."""
    if call.cluster.version < _CHECK_METADATA_VERSION:
        raise error(59, f"no such command: '{call.name}'")
    return {"cursor": {"id": Int64(0), "ns": f"{call.request.database}.$cmd.aggregate", "firstBatch": []}}


def _shard_collection(call: Call) -> dict[str, Any]:
    """Execute ``shardCollection``. The simulation has one shard, and does not check the shard key."""
    namespace = str(call.body["shardCollection"])
    database, _, name = namespace.partition(".")
    call.cluster.store.record_sharding(database, name, call.body.get("key"))
    return {"collectionsharded": namespace}


class Sharded(Topology):
    """A sharded cluster with one shard. The shard is a replica set whose members have no faults."""

    has_cluster_time = True

    def __init__(self) -> None:
        super().__init__()
        self.commands = {"checkMetadataConsistency": _check_metadata, "shardCollection": _shard_collection}

    def streams_cursors(self, version: tuple[int, ...]) -> bool:
        return version >= _EXHAUST_CURSORS_VERSION

    def describe(self, member: Member) -> dict[str, Any]:
        return {"isWritablePrimary": True, "msg": "isdbgrid"}

    def add_fields(self, call: Call, reply: dict[str, Any]) -> None:
        """Add the recovery token, with which another mongos can find the outcome of a transaction."""
        if call.request.in_transaction and reply["ok"]:
            reply.setdefault("recoveryToken", _RECOVERY_TOKEN)

    @property
    def data_bearing_count(self) -> int:
        return _SHARD_MEMBER_COUNT

    @property
    def replicating_count(self) -> int:
        return _SHARD_MEMBER_COUNT
