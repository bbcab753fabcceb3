"""Sharded clusters, seen through their mongos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gmongo.testing.simulation.topologies.base import Topology

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.member import Member

_COPIES = 3
_RECOVERY_TOKEN = {"recoveryShardId": "shard01"}


class Sharded(Topology):
    """Some mongos before one shard, a replica set that never fails."""

    gossips = True

    def describe(self, member: Member) -> dict[str, Any]:
        """The fields of hello that tell what the member is."""
        return {"isWritablePrimary": True, "msg": "isdbgrid"}

    def decorate(self, call: Call, reply: dict[str, Any]) -> None:
        """Put on the token by which another mongos can finish the transaction."""
        if call.request.in_transaction and reply["ok"]:
            reply.setdefault("recoveryToken", _RECOVERY_TOKEN)

    @property
    def data_bearing(self) -> int:
        """How many copies of the data there should be."""
        return _COPIES

    @property
    def replicating(self) -> int:
        """How many copies of the data can be written now."""
        return _COPIES
