"""The state that all members of a deployment share."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gmongo.testing.simulation.command_log import CommandLog
from gmongo.testing.simulation.network import Network
from gmongo.testing.simulation.rate_limiter import RateLimits
from gmongo.testing.simulation.topologies.base import Topology
from gmongo.testing.simulation.users import Users

if TYPE_CHECKING:
    from gmongo.testing.store import Store


@dataclass(kw_only=True, eq=False)
class Cluster:
    """The data, the users, the settings and the network of a deployment."""

    version: tuple[int, int, int]
    topology: Topology
    store: Store
    users: Users
    parameters: Mapping[str, Any]
    tls: ssl.SSLContext | None
    compressors: tuple[str, ...]
    write_concern_modes: frozenset[str]
    network: Network = field(default_factory=Network)
    limits: RateLimits = field(default_factory=RateLimits)
    log: CommandLog = field(default_factory=CommandLog)
    connection_numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _change_stream_ids: set[int] = field(default_factory=set)

    @property
    def version_text(self) -> str:
        """The version, such as ``8.0.0``."""
        return ".".join(map(str, self.version))

    def record_change_stream(self, body: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Record the cursor ID if the command opened a change stream."""
        pipeline = body.get("pipeline")
        if pipeline and "$changeStream" in pipeline[0] and reply.get("cursor"):
            self._change_stream_ids.add(reply["cursor"]["id"])

    def is_change_stream(self, cursor_id: int) -> bool:
        return cursor_id in self._change_stream_ids
