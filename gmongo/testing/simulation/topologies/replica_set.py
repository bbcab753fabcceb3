"""Replica sets: who is primary, what the members tell, and elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gevent
from bson import ObjectId, Timestamp

from gmongo._object_ids import new_object_id
from gmongo.testing import clock
from gmongo.testing.simulation.access_rules import needs_primary, reads_anywhere
from gmongo.testing.simulation.commands import replication
from gmongo.testing.simulation.error_codes import NOT_PRIMARY, error
from gmongo.testing.simulation.topologies.base import Topology
from gmongo.testing.simulation.versions import STREAMS_AND_LABELS

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.member import Member

PRIMARY, SECONDARY, ARBITER = 1, 2, 7
NO_PRIMARY = "no primary now: the deployment is no replica set, or its election is not over (see members.has_primary)"


class ReplicaSet(Topology):
    """A replica set. Its members have traits: ``arbiter``, ``hidden``, ``priority``, ``tags``.

    :param election_delay: seconds from the loss of a primary to the next one.
    """

    gossips = True

    def __init__(self, name: str, election_delay: float) -> None:
        super().__init__()
        self.name = name
        self.election_delay = election_delay
        self.version, self.term = 1, 0
        self.id = new_object_id()
        self.primary: Member | None = None
        self._barred: dict[Member, float] = {}  # who must not be elected before which time
        self._election: gevent.Greenlet | None = None
        self.commands = replication.COMMANDS

    def decorate(self, call: Call, reply: dict[str, Any]) -> None:
        """Add the topologyVersion to an error "not primary", also to that of a write concern or fail point."""
        codes = {reply.get("code"), (reply.get("writeConcernError") or {}).get("code")}
        if codes & NOT_PRIMARY and call.cluster.version >= STREAMS_AND_LABELS:
            reply.setdefault("topologyVersion", call.member.topology_version)

    # What members tell

    def describe(self, member: Member) -> dict[str, Any]:
        """The fields of hello that tell what the member is."""
        state = self.state(member)
        fields: dict[str, Any] = {
            **self._host_lists(),
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
        return {**fields, "lastWrite": self._last_write(member)}

    def _host_lists(self) -> dict[str, Any]:
        lists: dict[str, list[str]] = {"hosts": []}
        for member in self.members:
            if member.traits.get("hidden"):
                continue
            kind = "arbiters" if _is_arbiter(member) else "hosts" if _priority(member) else "passives"
            lists.setdefault(kind, []).append(member.address)
        return lists

    def _last_write(self, member: Member) -> dict[str, Any]:
        now: Timestamp = member.cluster.store.now()
        optime, date = {"ts": now, "t": self.term}, now.as_datetime()
        return {"opTime": optime, "lastWriteDate": date, "majorityOpTime": optime, "majorityWriteDate": date}

    @property
    def election_id(self) -> ObjectId:
        """The ID of the last election, which grows with each."""
        return ObjectId(f"7fffffff{self.term:016x}")

    def state(self, member: Member) -> int:
        """As replSetGetStatus numbers it: 1 primary, 2 secondary, 7 arbiter."""
        if _is_arbiter(member):
            return ARBITER
        return PRIMARY if member is self.primary else SECONDARY

    # What members may do

    def admit(self, call: Call) -> None:
        """Let a command pass that reads or writes data.

        :raises CommandError: it needs a primary and the member is not, or the client has not said that it may be one.
        """
        state = self.state(call.member)
        if state == PRIMARY or reads_anywhere(call):
            return
        if state == ARBITER:
            raise error(13436, "node is not in primary or recovering state")
        if needs_primary(call):
            raise error(10107, "not primary")
        if call.body.get("$readPreference", {}).get("mode", "primary") == "primary":
            raise error(13435, "not primary and secondaryOk=false")

    @property
    def data_bearing(self) -> int:
        """How many copies of the data there should be."""
        return sum(not _is_arbiter(member) for member in self.members)

    @property
    def replicating(self) -> int:
        """How many copies of the data can be written now."""
        return sum(member.reachable and not _is_arbiter(member) for member in self.members)

    # Elections

    def lost(self, member: Member) -> None:
        """The others do not hear from the member any more: if it was the primary, there will be another."""
        if self.primary is not None and (member is self.primary or not self._has_majority()):
            self._abdicate()
        self.change.announce()

    def restored(self, member: Member) -> None:
        """The others hear from the member again."""
        self.change.announce()
        if self.primary is None:
            self._plan_election(self.election_delay)

    def step_down(self, member: Member, seconds: float) -> None:
        """Make the primary a secondary.

        :raises ValueError: the member is not the primary.
        """
        if member is not self.primary:
            raise ValueError(f"{member.address} is not the primary of {self.name}")
        self.bar(member, seconds)
        self._abdicate()

    def step_up(self, member: Member) -> bool:
        """Make a secondary the primary at once; whether it can be."""
        if not (self._has_majority() and member.reachable and _can_lead(member)):
            return False
        if self._election is not None:
            self._election.kill(block=False)
            self._election = None
        member.cluster.store.abort_transactions()
        self._lead(member)
        return True

    def has_successor(self) -> bool:
        """Whether a member other than the primary could be elected."""
        return any(member is not self.primary for member in self._candidates())

    def bar(self, member: Member, seconds: float) -> None:
        """Do not elect the member for `seconds`; 0 ends that."""
        self._barred[member] = clock.monotonic() + seconds
        if self.primary is None:
            self._plan_election(self.election_delay)

    def elect_now(self) -> None:
        """Elect a primary if there is none and a member can be."""
        self._election = None
        candidates = self._candidates()
        if self.primary is None and candidates:
            self._lead(candidates[0])
        elif self.primary is None:
            self._plan_later()

    def _lead(self, member: Member) -> None:
        self.term += 1
        self.primary = member
        self._announce()

    def end(self) -> None:
        """The deployment is closed: there are no elections any more."""
        if self._election is not None:
            self._election.kill(block=False)

    def _abdicate(self) -> None:
        old, self.primary = self.primary, None
        if old is not None:
            old.cluster.store.abort_transactions()
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

    def _plan_later(self) -> None:
        """Try again when the first of those who could be elected but for a step-down may be."""
        if not self._has_majority():
            return  # restored() will see to it
        until = [self._barred.get(member, 0.0) for member in self.members if member.reachable and _can_lead(member)]
        if until:
            self._plan_election(max(0.0, min(until) - clock.monotonic()))

    def _candidates(self) -> list[Member]:
        if not self._has_majority():
            return []
        now = clock.monotonic()
        able = [
            member
            for member in self.members
            if member.reachable and _can_lead(member) and self._barred.get(member, 0.0) <= now
        ]
        return sorted(able, key=_priority, reverse=True)

    def _has_majority(self) -> bool:
        return sum(member.reachable for member in self.members) > len(self.members) // 2


def _is_arbiter(member: Member) -> bool:
    return bool(member.traits.get("arbiter"))


def _priority(member: Member) -> float:
    return 0.0 if member.traits.get("hidden") else float(member.traits.get("priority", 1))


def _can_lead(member: Member) -> bool:
    return not _is_arbiter(member) and _priority(member) > 0
