"""What every kind of deployment has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gmongo.testing.simulation.waiting import Change

if TYPE_CHECKING:
    from gmongo.testing.simulation.call import Call
    from gmongo.testing.simulation.member import Member


class Topology:
    """A standalone is what a deployment is if nothing else is said.

    :ivar gossips: whether replies have the cluster time; sessions have transactions then.
    :ivar change: announced whenever a member comes, goes or becomes something else.
    :ivar commands: the commands that only this kind has.
    """

    gossips = False

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.change = Change()
        self.commands: Mapping[str, Callable[[Call], dict[str, Any]]] = {}

    def streams_cursors(self, version: tuple[int, ...]) -> bool:
        """Whether a server of that version sends the batches of a cursor without being asked for each."""
        return True

    def describe(self, member: Member) -> dict[str, Any]:
        """The fields of hello that tell what the member is."""
        return {"isWritablePrimary": True}

    def admit(self, call: Call) -> None:
        """Let a command pass that reads or writes data.

        :raises CommandError: the member may not do that now.
        """

    def decorate(self, call: Call, reply: dict[str, Any]) -> None:
        """Put on the reply what only this kind has."""

    @property
    def data_bearing(self) -> int:
        """How many copies of the data there should be."""
        return 1

    @property
    def replicating(self) -> int:
        """How many copies of the data can be written now."""
        return 1

    def lost(self, member: Member) -> None:
        """The others do not hear from the member any more."""
        self.change.announce()

    def restored(self, member: Member) -> None:
        """The others hear from the member again."""
        self.change.announce()

    def step_down(self, member: Member, seconds: float) -> None:
        """Make the primary a secondary.

        :raises ValueError: the member is not a primary.
        """
        raise ValueError(f"{member.address} is not the primary of a replica set")

    def end(self) -> None:
        """The deployment is closed."""
