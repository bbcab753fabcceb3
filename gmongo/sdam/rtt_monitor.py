"""RTT monitor, which measures round trip times of a streaming server, without effect on the topology (SM-122)."""

from __future__ import annotations

from collections import deque

from bson.errors import BSONError

from gmongo._background import RestartingGreenlet, Wakeup
from gmongo.cmap.handshake import choose_hello_name, establish, send_hello
from gmongo.cmap.hello import Hello
from gmongo.cmap.server_connection import ServerConnection
from gmongo.errors import AutoReconnect, PyMongoError
from gmongo.sdam.settings import TopologySettings
from gmongo.wire.address import Address

_WEIGHT_OF_NEWEST = 0.2
_SAMPLES_KEPT = 10


class RoundTripTime:
    """Round trip times of one server in seconds."""

    def __init__(self) -> None:
        self._average: float | None = None
        self._recent_samples: deque[float] = deque(maxlen=_SAMPLES_KEPT)

    def add_sample(self, seconds: float) -> None:
        seconds = max(seconds, 0.0)
        self._recent_samples.append(seconds)
        if self._average is None:
            self._average = seconds
        else:
            self._average = _WEIGHT_OF_NEWEST * seconds + (1 - _WEIGHT_OF_NEWEST) * self._average

    @property
    def average(self) -> float | None:
        """Exponentially weighted moving average of the samples, or None without samples."""
        return self._average

    @property
    def minimum(self) -> float:
        """Minimum of the last ten samples, or 0 with fewer than two samples."""
        return min(self._recent_samples) if len(self._recent_samples) >= 2 else 0.0

    def reset(self) -> None:
        self._average = None
        self._recent_samples.clear()


class RttMonitor:
    """Monitor that measures the round trip time of one server every ``heartbeatFrequencyMS``."""

    def __init__(self, address: Address, settings: TopologySettings, samples: RoundTripTime) -> None:
        self._connection: ServerConnection | None = None
        self._address = address
        self._settings = settings
        self._samples = samples
        self._wakeup = Wakeup()
        self._hello_command: str  # name of the hello command on the current connection
        self._background = RestartingGreenlet(self._run)

    def start(self) -> None:
        self._background.start()

    def stop(self) -> None:
        self._background.ended = True
        if self._connection is not None:
            self._connection.interrupt(AutoReconnect("measurement cancelled"))
        self._wakeup.set()

    def mark_forked(self, error: BaseException) -> None:
        self._background.ended = True
        if self._connection is not None:
            self._connection.mark_forked(error)

    def _run(self) -> None:
        try:
            while not self._background.ended:
                try:
                    hello = self._measure()
                except (PyMongoError, BSONError):  # the monitor of the server will detect the failure
                    self._disconnect()
                else:
                    self._samples.add_sample(hello.duration)
                    self._hello_command = "hello" if hello.hello_ok else self._hello_command
                if not self._background.ended:
                    self._wakeup.sleep(self._settings.heartbeat_frequency)
        finally:
            self._disconnect()

    def _measure(self) -> Hello:
        if self._connection is None:
            self._hello_command = choose_hello_name(self._settings.connection)
            self._connection = ServerConnection(self._address, ref=False, is_monitor=True)
            return establish(self._connection, self._settings.connection, ref=False)
        api = self._settings.connection.server_api
        command = {self._hello_command: 1, **api, "helloOk": True}
        return send_hello(self._connection, command, self._settings.connection.connect_timeout)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
