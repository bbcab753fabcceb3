"""A received command, with its member and connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gmongo.testing.command import Request

if TYPE_CHECKING:
    from gmongo.testing.simulation.cluster import Cluster
    from gmongo.testing.simulation.connection import Connection
    from gmongo.testing.simulation.member import Member


class CloseConnection(Exception):
    """The member must close the connection without a reply."""


@dataclass
class Call:
    """A received command, with its member and connection."""

    request: Request
    member: Member
    connection: Connection
    legacy: bool = False  # True if the command arrived as OP_QUERY

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def body(self) -> dict[str, Any]:
        return self.request.body

    @property
    def cluster(self) -> Cluster:
        """The state that all members of the deployment share."""
        return self.member.cluster
