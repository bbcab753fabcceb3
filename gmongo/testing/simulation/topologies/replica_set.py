"""The state of a replica set: the primary, the hello replies of the members, and elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gevent
from bson import ObjectId, Timestamp

from gmongo.testing import clock
from gmongo.testing.command import error
from gmongo.testing.simulation.access_rules import needs_primary, runs_on_any_member
from gmongo.testing.simulation.commands import replication
from gmongo.testing.simulation.error_labels import NOT_PRIMARY_CODES
from gmongo.testing.simulation.topologies.base import Topology
from gmongo.testing.simulation.versions import STREAMS_AND_LABELS_VERSION

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.member import Member

PRIMARY, SECONDARY, ARBITER = 1, 2, 7
NO_PRIMARY_MESSAGE = (
    "no primary now: the deployment is not a replica set, or its election is not over (see members.has_primary)"
)


class ReplicaSet(Topology):
    """A replica set. `election_delay` is the time in seconds from the loss of a primary to the next election."""

    has_cluster_time = True

    def __init__(self, name: str, election_delay: float) -> None:
        super().__init__()
        self.name = name
        self.election_delay = election_delay
        self.version, self.term = 1, 0
        self.primary: Member | None = None
        self._forbidden_until: dict[Member, float] = {}  # the time before which a member cannot become primary
        self._election: gevent.Greenlet | None = None
        self.commands = replication.COMMANDS

    def add_fields(self, call: Call, reply: dict[str, Any]) -> None:
        """Add the topologyVersion if the reply or its write concern error has a "not primary" error code."""
        codes = {reply.get("code"), (reply.get("writeConcernError") or {}).get("code")}
        if codes & NOT_PRIMARY_CODES and call.cluster.version >= STREAMS_AND_LABELS_VERSION:
            reply.setdefault("topologyVersion", call.member.topology_version)

    def describe(self, member: Member) -> dict[str, Any]:
        state = self.state(member)
        fields: dict[str, Any] = {
            **self._list_hosts(),
            "setName": self.name,
            "setVersion": self.version,
            "isWritablePrimary": state == PRIMARY,
            "secondary": state == SECONDARY,
            "me": member.address,
        }
        if self.primary is not None and (state == PRIMARY or member.reachable):
            fields["primary"] = self.primary.address
        if state == PRIMARY:
            fields["electionId"] = self.election_id
        if state == ARBITER:
            return {**fields, "arbiterOnly": True}
        fields |= {name: member.traits[name] for name in ("hidden", "tags") if member.traits.get(name)}
        if member.traits.get("priority") == 0 or member.traits.get("hidden"):
            fields["passive"] = True
        return {**fields, "lastWrite": self._describe_last_write(member)}

    def _list_hosts(self) -> dict[str, Any]:
        addresses: dict[str, list[str]] = {"hosts": []}
        for member in self.members:
            if member.traits.get("hidden"):
                continue
            list_name = "arbiters" if _is_arbiter(member) else "hosts" if _find_priority(member) else "passives"
            addresses.setdefault(list_name, []).append(member.address)
        return addresses

    def _describe_last_write(self, member: Member) -> dict[str, Any]:
        now: Timestamp = member.cluster.store.now()
        optime, date = {"ts": now, "t": self.term}, now.as_datetime()
        return {"opTime": optime, "lastWriteDate": date, "majorityOpTime": optime, "majorityWriteDate": date}

    @property
    def election_id(self) -> ObjectId:
        """The electionId of the last election. Each election increases the electionId."""
        return ObjectId(f"7fffffff{self.term:016x}")

    def state(self, member: Member) -> int:
        """Return the member state's number: 1 for a primary, 2 for a secondary, 7 for an arbiter."""
        if _is_arbiter(member):
            return ARBITER
        return PRIMARY if member is self.primary else SECONDARY

    def admit(self, call: Call) -> None:
        state = self.state(call.member)
        if state == PRIMARY or runs_on_any_member(call):
            return
        if state == ARBITER:
            raise error(13436, "node is not in primary or recovering state")
        if needs_primary(call):
            raise error(10107, "not primary")
        if call.body.get("$readPreference", {}).get("mode", "primary") == "primary":
            raise error(13435, "not primary and secondaryOk=false")

    @property
    def data_bearing_count(self) -> int:
        return sum(not _is_arbiter(member) for member in self.members)

    @property
    def replicating_count(self) -> int:
        return sum(member.reachable and not _is_arbiter(member) for member in self.members)

    def handle_fault(self, member: Member) -> None:
        """If the primary or the majority is lost, remove the primary and plan an election."""
        if self.primary is not None and (member is self.primary or not self._has_majority()):
            self._remove_primary()
        self.change.announce()

    def handle_recovery(self, member: Member) -> None:
        self.change.announce()
        if self.primary is None:
            self._plan_election(self.election_delay)

    def step_down(self, member: Member, seconds: float) -> None:
        if member is not self.primary:
            raise ValueError(f"{member.address} is not the primary of {self.name}")
        self.forbid_election(member, seconds)
        self._remove_primary()

    def step_up(self, member: Member) -> bool:
        """Make a secondary the primary immediately. Return False if the secondary cannot become primary."""
        if not (self._has_majority() and member.reachable and _is_electable(member)):
            return False
        if self._election is not None:
            self._election.kill(block=False)
            self._election = None
        member.cluster.store.abort_transactions()
        self._make_primary(member)
        return True

    def has_successor(self) -> bool:
        """Return True if a member that is not the primary can become primary."""
        return any(member is not self.primary for member in self._find_candidates())

    def forbid_election(self, member: Member, seconds: float) -> None:
        """Forbid the election of a member in the next `seconds`. 0 allows the election."""
        self._forbidden_until[member] = clock.monotonic() + seconds
        if self.primary is None:
            self._plan_election(self.election_delay)

    def elect_now(self) -> None:
        """Elect a primary if there is no primary. If no member can become primary, plan the next election."""
        self._election = None
        candidates = self._find_candidates()
        if self.primary is None and candidates:
            self._make_primary(candidates[0])
        elif self.primary is None:
            self._plan_next_election()

    def _make_primary(self, member: Member) -> None:
        self.term += 1
        self.primary = member
        self._announce()

    def end(self) -> None:
        if self._election is not None:
            self._election.kill(block=False)

    def _remove_primary(self) -> None:
        old_primary, self.primary = self.primary, None
        if old_primary is not None:
            old_primary.cluster.store.abort_transactions()
        self._announce()
        self._plan_election(self.election_delay)

    def _announce(self) -> None:
        for member in self.members:
            member.changed()
        self.change.announce()

    def _plan_election(self, seconds: float) -> None:
        if self._election is not None:
            self._election.kill(block=False)
        self._election = gevent.Greenlet(self._elect_after, seconds)
        self._election.start()

    def _elect_after(self, seconds: float) -> None:
        gevent.sleep(seconds, ref=False)
        self.elect_now()

    def _plan_next_election(self) -> None:
        """Plan an election for the first time at which a member can become primary."""
        if not self._has_majority():
            return  # `handle_recovery` plans an election when the majority is reachable
        if end_times := [self._forbidden_until.get(member, 0.0) for member in self._find_electable()]:
            self._plan_election(max(0.0, min(end_times) - clock.monotonic()))

    def _find_electable(self) -> list[Member]:
        return [member for member in self.members if member.reachable and _is_electable(member)]

    def _find_candidates(self) -> list[Member]:
        if not self._has_majority():
            return []
        now = clock.monotonic()
        candidates = [member for member in self._find_electable() if self._forbidden_until.get(member, 0.0) <= now]
        return sorted(candidates, key=_find_priority, reverse=True)

    def _has_majority(self) -> bool:
        return sum(member.reachable for member in self.members) > len(self.members) // 2


def _is_arbiter(member: Member) -> bool:
    return bool(member.traits.get("arbiter"))


def _find_priority(member: Member) -> float:
    return 0.0 if member.traits.get("hidden") else float(member.traits.get("priority", 1))


def _is_electable(member: Member) -> bool:
    return not _is_arbiter(member) and _find_priority(member) > 0
