"""Kinds of servers."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SERVER_TYPE", "ServerType"]


class ServerType(NamedTuple):
    """The kinds of servers, each with its number; :data:`SERVER_TYPE` is the only instance."""

    Unknown: int
    Mongos: int
    RSPrimary: int
    RSSecondary: int
    RSArbiter: int
    RSOther: int
    RSGhost: int
    Standalone: int
    LoadBalancer: int

    def name_of(self, value: int) -> str:
        """The name of a kind, such as ``"RSPrimary"``."""
        return self._fields[value]


SERVER_TYPE = ServerType(*range(9))
"""The kinds of servers by name: ``SERVER_TYPE.RSPrimary``."""
