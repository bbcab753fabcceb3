"""Replica sets whose members are scripted servers."""

from __future__ import annotations

from typing import Any

from bson import ObjectId

from tests.support.scripted_server import ScriptedServer


class ScriptedReplicaSet:
    """Context manager of a replica set of scripted servers. The first member is the primary until an
    election.
    """

    def __init__(self, size: int = 3, streams: bool = True) -> None:
        self.members = [self._new_member(streams) for _ in range(size)]
        self.hosts = list(self.members)
        self.primary: ScriptedServer | None = self.members[0]
        self.version, self.election_number = 1, 1
        self._streams = streams

    def _new_member(self, streams: bool) -> ScriptedServer:
        return ScriptedServer(member=self._describe, streams=streams)

    def __enter__(self) -> ScriptedReplicaSet:
        for member in self.members:
            member.start()
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.close()

    def _describe(self, member: ScriptedServer) -> dict[str, Any]:
        is_primary = member is self.primary
        fields: dict[str, Any] = {
            "setName": "scripted",
            "setVersion": self.version,
            "hosts": [each.name for each in self.hosts],
            "me": member.name,
            "isWritablePrimary": is_primary,
            "ismaster": is_primary,
            "secondary": not is_primary,
        }
        if self.primary is not None:
            fields["primary"] = self.primary.name
        if is_primary:
            fields["electionId"] = ObjectId(f"{self.election_number:024x}")
        return fields

    @property
    def secondaries(self) -> list[ScriptedServer]:
        return [member for member in self.hosts if member is not self.primary]

    def announce(self) -> None:
        """Make all members reply to the hello commands that wait for a change."""
        for member in self.members:
            member.changed()

    def elect(self, primary: ScriptedServer | None) -> None:
        """Make `primary` the primary of the replica set.

        If `primary` is None, the replica set has no primary.
        """
        self.primary = primary
        self.election_number += 1
        self.announce()

    def reconfigure(self, hosts: list[ScriptedServer]) -> None:
        self.hosts = hosts
        self.version += 1
        self.announce()

    def add_member(self) -> ScriptedServer:
        member = self._new_member(self._streams)
        member.start()
        self.members.append(member)
        self.reconfigure([*self.hosts, member])
        return member
