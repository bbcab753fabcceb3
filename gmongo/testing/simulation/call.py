"""One command on its way through a member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gmongo.testing.command import Request

if TYPE_CHECKING:
    from gmongo.testing.simulation.cluster import Cluster
    from gmongo.testing.simulation.connection import Connection
    from gmongo.testing.simulation.member import Member


class CloseConnection(Exception):
    """There is no reply: the connection is closed."""


@dataclass
class Call:
    """A command, with who received it on what.

    :param legacy: whether it came as an OP_QUERY.
    """

    request: Request
    member: Member
    connection: Connection
    legacy: bool = False

    @property
    def name(self) -> str:
        """The command."""
        return self.request.name

    @property
    def body(self) -> dict[str, Any]:
        """The whole command."""
        return self.request.body

    @property
    def cluster(self) -> Cluster:
        """What the members share."""
        return self.member.cluster
