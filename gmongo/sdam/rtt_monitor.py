"""The greenlet that measures the round trip time of a server which streams (SM-122 to SM-127).

It says nothing of the server: no event, no error and no reply of it reaches the topology.
"""

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
    """Measures one server every ``heartbeatFrequencyMS``.

    :param samples: takes the measurements; it belongs to the monitor, which alone may reset it.
    """

    def __init__(self, address: Address, settings: TopologySettings, samples: RoundTripTime) -> None:
        self._connection: ServerConnection | None = None
        self._address = address
        self._settings = settings
        self._samples = samples
        self._wakeup = Wakeup()
        self._stopped = False
        self._hello_command: str  # of the present connection
        self._background = RestartingGreenlet(self._run)

    def start(self) -> None:
        """Begin to measure."""
        self._background.start()

    def stop(self) -> None:
        """End the greenlet. Does not switch."""
        self._stopped = True
        if self._connection is not None:
            self._connection.interrupt(AutoReconnect("measurement cancelled"))
        self._wakeup.set()

    def mark_forked(self, error: BaseException) -> None:
        """In a forked child: never touch the parent's socket again."""
        self._stopped = True
        if self._connection is not None:
            self._connection.mark_forked(error)

    def _run(self) -> None:
        while not self._stopped:
            try:
                hello = self._measure()
            except (PyMongoError, BSONError):  # whatever it is, the monitor will find it out
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
            self._connection = ServerConnection(self._address, ref=False, monitors=True)
            return establish(self._connection, self._settings.connection, ref=False)
        api = self._settings.connection.server_api
        command = {self._hello_command: 1, **api, "helloOk": True}
        return say_hello(self._connection, command, self._settings.connection.connect_timeout)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
