"""RTT monitor, which measures the round trip time of a streaming server, without effect on the topology (SM-122)."""

from __future__ import annotations

from bson.errors import BSONError

from gmongo._background import RestartingGreenlet, Wakeup
from gmongo.cmap.handshake import establish, first_hello, say_hello
from gmongo.cmap.hello import Hello
from gmongo.cmap.server_connection import ServerConnection
from gmongo.errors import AutoReconnect, PyMongoError
from gmongo.sdam.round_trip_time import RoundTripTime
from gmongo.sdam.settings import TopologySettings
from gmongo.wire.address import Address


class RttMonitor:
    """Measures the round trip time of one server every ``heartbeatFrequencyMS``."""

    def __init__(self, address: Address, settings: TopologySettings, samples: RoundTripTime) -> None:
        self._connection: ServerConnection | None = None
        self._address = address
        self._settings = settings
        self._samples = samples
        self._wakeup = Wakeup()
        self._stopped = False
        self._hello_command: str  # hello command of the current connection
        self._background = RestartingGreenlet(self._run)

    def start(self) -> None:
        self._background.start()

    def stop(self) -> None:
        """Stop the greenlet, without a switch."""
        self._stopped = True
        if self._connection is not None:
            self._connection.interrupt(AutoReconnect("measurement cancelled"))
        self._wakeup.set()

    def mark_forked(self, error: BaseException) -> None:
        """Prevent a forked child from using the inherited socket."""
        self._stopped = True
        if self._connection is not None:
            self._connection.mark_forked(error)

    def _run(self) -> None:
        while not self._stopped:
            try:
                hello = self._measure()
            except (PyMongoError, BSONError):  # the monitor of the server will detect the failure
                self._disconnect()
            else:
                self._samples.add_sample(hello.duration)
                self._hello_command = "hello" if hello.hello_ok else self._hello_command
            if not self._stopped:
                self._wakeup.sleep(self._settings.heartbeat_frequency)
        self._disconnect()

    def _measure(self) -> Hello:
        if self._connection is None:
            self._hello_command = first_hello(self._settings.connection)
            self._connection = ServerConnection(self._address, ref=False, is_monitor=True)
            return establish(self._connection, self._settings.connection, ref=False)
        api = self._settings.connection.server_api
        command = {self._hello_command: 1, **api, "helloOk": True}
        return say_hello(self._connection, command, self._settings.connection.connect_timeout)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
