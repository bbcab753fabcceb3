"""A command, and the member and connection that received it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gmongo.testing.command import Request

if TYPE_CHECKING:
    from gmongo.testing.simulation.cluster import Cluster
    from gmongo.testing.simulation.connection import Connection
    from gmongo.testing.simulation.member import Member


class CloseConnection(Exception):
    """The connection is closed without a reply."""


@dataclass
class Call:
    """A command with its member and connection.

    :param legacy: True for an OP_QUERY.
    """

    request: Request
    member: Member
    connection: Connection
    legacy: bool = False

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def body(self) -> dict[str, Any]:
        return self.request.body

    @property
    def cluster(self) -> Cluster:
        """The shared state of the members."""
        return self.member.cluster
