"""The base of all kinds of deployments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gmongo.testing.simulation.waiting import Change

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.member import Member


class Topology:
    """A standalone, and the base of the other kinds.

    :ivar gossips: True if replies have the cluster time, and sessions have transactions.
    :ivar change: announces each change of a member.
    :ivar commands: the commands of this kind only.
    """

    gossips = False

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.change = Change()
        self.commands: Mapping[str, Callable[[Call], dict[str, Any]]] = {}

    def streams_cursors(self, version: tuple[int, ...]) -> bool:
        """Return True if a server of this version supports exhaust cursors."""
        return True

    def describe(self, member: Member) -> dict[str, Any]:
        """Return the fields of hello that describe the member."""
        return {"isWritablePrimary": True}

    def admit(self, call: Call) -> None:
        """Admit a command that reads or writes data.

        :raises CommandError: the state of the member does not allow the command.
        """

    def decorate(self, call: Call, reply: dict[str, Any]) -> None:
        """Add the reply fields of this kind."""

    @property
    def data_bearing(self) -> int:
        """The number of members with data."""
        return 1

    @property
    def replicating(self) -> int:
        """The number of members that receive writes now."""
        return 1

    def lost(self, member: Member) -> None:
        """Handle the loss of a member's heartbeats."""
        self.change.announce()

    def restored(self, member: Member) -> None:
        """Handle the return of a member's heartbeats."""
        self.change.announce()

    def step_down(self, member: Member, seconds: float) -> None:
        """Make the primary a secondary.

        :raises ValueError: the member is not a primary.
        """
        raise ValueError(f"{member.address} is not the primary of a replica set")

    def end(self) -> None:
        """End the deployment."""
