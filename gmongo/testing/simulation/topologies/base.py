"""The base class of all kinds of deployments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gmongo.testing.simulation.waiting import Signal

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.member import Member


class Topology:
    """A standalone. The class is also the base of the other kinds of deployments."""

    has_cluster_time = False  # True if replies contain the cluster time, and the deployment supports transactions

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.change = Signal()  # announced after each change of the state of a member
        # The handlers of the commands that only this kind of deployment supports, by command name.
        self.commands: Mapping[str, Callable[[Call], dict[str, Any]]] = {}

    def streams_cursors(self, version: tuple[int, ...]) -> bool:
        """Return True if a server of this version supports exhaust cursors."""
        return True

    def describe(self, member: Member) -> dict[str, Any]:
        """Return the fields of the hello reply that describe the member."""
        return {"isWritablePrimary": True}

    def admit(self, call: Call) -> None:
        """Raise an error if the member may not execute a command that reads or writes data."""

    def add_fields(self, call: Call, reply: dict[str, Any]) -> None:
        """Add to a reply the fields that only this kind of deployment has."""

    @property
    def data_bearing_count(self) -> int:
        """The number of members with data."""
        return 1

    @property
    def replicating_count(self) -> int:
        """The number of members that currently replicate writes."""
        return 1

    def handle_fault(self, member: Member) -> None:
        """React to a fault: the other members receive no heartbeats from the member."""
        self.change.announce()

    def handle_recovery(self, member: Member) -> None:
        """React to the end of a fault: the other members receive heartbeats from the member again."""
        self.change.announce()

    def step_down(self, member: Member, seconds: float) -> None:
        """Make the primary a secondary."""
        raise ValueError(f"{member.address} is not the primary of a replica set")

    def end(self) -> None:
        """Kill the greenlets of the topology at the end of the deployment."""
