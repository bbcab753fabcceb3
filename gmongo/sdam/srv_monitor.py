"""The greenlet that queries DNS: for the seeds, if the client was made without them, and then again and again for the
hosts of a sharded cluster (Polling SRV Records for mongos Discovery).
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

from gevent import get_hub

from gmongo._background import RestartingGreenlet, Wakeup
from gmongo._safe_log import printable, safely
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import ConfigurationError
from gmongo.sdam.settings import TopologySettings
from gmongo.wire.address import Address

_log = logging.getLogger("gmongo.topology")

POLLED = (TOPOLOGY_TYPE.Unknown, TOPOLOGY_TYPE.Sharded)


class SrvOwner(Protocol):
    """What the hosts are reported to: the topology."""

    def seeds_found(self, settings: TopologySettings) -> None:
        """DNS named the seeds."""

    def seeds_not_found(self, error: Exception) -> None:
        """The query for the seeds failed."""

    def is_polled(self) -> bool:
        """Whether DNS still says of which hosts the topology consists."""

    def srv_hosts_found(self, hosts: Sequence[Address]) -> None:
        """DNS named these hosts."""


class SrvMonitor:
    """Asks DNS every `rescan_interval` of its settings, or as rarely as the records' time to live allows.

    If the settings have no seeds yet, the monitor first queries DNS for the seeds, and ends if the query fails.

    :param settings: of the client, with ``srv``.
    :param owner: gets the hosts; held weakly, and the monitor stops when it is gone.
    """

    def __init__(self, settings: TopologySettings, owner: SrvOwner) -> None:
        assert settings.srv is not None
        self._records = settings.srv
        self._settings = settings
        self._loop = get_hub().loop
        self._owner = weakref.ref(owner, self._owner_gone)
        self._wakeup = Wakeup()
        self._background = RestartingGreenlet(self._run)

    def start(self) -> None:
        """Begin to query DNS: at once if the seeds are missing, after an interval if they are known."""
        self._background.start()

    def stop(self) -> None:
        """End the greenlet. Does not switch."""
        self._background.stop()

    def _owner_gone(self, _reference: object) -> None:
        # The garbage is collected in any thread; a greenlet is killed in its own.
        self._loop.run_callback_threadsafe(self.stop)

    def _run(self) -> None:
        if self._settings.resolve is not None:
            self._find_seeds(self._settings.resolve)
        interval = self._settings.srv_rescan_interval
        while self._is_wanted():
            self._wakeup.sleep(interval)
            if self._is_wanted():
                interval = self._rescan()

    def _find_seeds(self, resolve: Callable[[TopologySettings], TopologySettings]) -> None:
        try:
            found = resolve(self._settings)
        except Exception as error:
            owner = self._owner()
            if owner is not None:
                owner.seeds_not_found(error)
            return
        owner = self._owner()
        if owner is not None:
            owner.seeds_found(found)
        self._settings = found

    def _is_wanted(self) -> bool:
        owner = self._owner()
        return owner is not None and owner.is_polled()

    def _rescan(self) -> float:
        """Ask once; seconds until the next time."""
        try:
            hosts, ttl = self._records.verified_hosts()
        except ConfigurationError as error:
            safely(
                _log.warning,
                "the SRV records could not be read again, so the hosts stay as they are: %s",
                printable(str(error)),
            )
            return self._settings.heartbeat_frequency
        # Asked again: while DNS was asked, the client may have been dropped or closed, or have found a replica set.
        owner = self._owner()
        if owner is not None and owner.is_polled():
            owner.srv_hosts_found(hosts)
        return max(self._settings.srv_rescan_interval, ttl)
