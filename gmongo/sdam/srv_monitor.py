"""SRV monitor: queries DNS for the seeds, and then for the hosts (Polling SRV Records for mongos Discovery)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from gmongo._safe_log import printable, safely
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import ConfigurationError
from gmongo.sdam.owned_monitor import OwnedMonitor
from gmongo.sdam.settings import TopologySettings
from gmongo.wire.address import Address

_log = logging.getLogger("gmongo.topology")

POLLED_TOPOLOGY_TYPES = (TOPOLOGY_TYPE.Unknown, TOPOLOGY_TYPE.Sharded)


class SrvOwner(Protocol):
    """The methods of a topology that the SRV monitor calls."""

    def seeds_found(self, settings: TopologySettings) -> None: ...
    def seeds_not_found(self, error: Exception) -> None: ...
    def is_polled(self) -> bool: ...
    def srv_hosts_found(self, hosts: Sequence[Address]) -> None: ...


class SrvMonitor(OwnedMonitor[SrvOwner]):
    """Monitor that queries DNS repeatedly, and reports the results to its owner.

    If the seeds are unknown, the monitor first queries DNS for them, and stops if this query fails.
    """

    def __init__(self, settings: TopologySettings, owner: SrvOwner) -> None:
        super().__init__(owner)
        assert settings.srv is not None
        self._records = settings.srv
        self._settings = settings

    def stop(self) -> None:
        self._background.stop()

    def _run(self) -> None:
        if self._settings.resolve is not None:
            self._find_seeds(self._settings.resolve)
        interval = self._settings.srv_rescan_interval
        while self._should_run():
            self._wakeup.sleep(interval)
            if self._should_run():
                interval = self._rescan()

    def _find_seeds(self, resolve: Callable[[TopologySettings], TopologySettings]) -> None:
        try:
            settings = resolve(self._settings)
        except Exception as error:
            if (owner := self._owner()) is not None:
                owner.seeds_not_found(error)
            return
        if (owner := self._owner()) is not None:
            owner.seeds_found(settings)
        self._settings = settings

    def _should_run(self) -> bool:
        return (owner := self._owner()) is not None and owner.is_polled()

    def _rescan(self) -> float:
        """Query DNS once, and return the seconds until the next query."""
        try:
            hosts, ttl = self._records.verified_hosts()
        except ConfigurationError as error:
            safely(_log.warning, "SRV polling failed, and the hosts stay unchanged: %s", printable(str(error)))
            return self._settings.heartbeat_frequency
        # During the query, the client may have been deleted or closed, or may have discovered a replica set.
        if (owner := self._owner()) is not None and owner.is_polled():
            owner.srv_hosts_found(hosts)
        return max(self._settings.srv_rescan_interval, ttl)
