"""Monitor greenlet of one server (Server Monitoring specification), with the streaming protocol or polling.

A streaming server replies to an awaitable hello after each change of its state, or after the
heartbeat interval. Between polling checks, the greenlet sleeps until the next check is due or
requested.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Protocol

import bson
from bson.errors import BSONError

from gmongo import _clock
from gmongo._background import LongWork
from gmongo._documents import Document, DocumentDict
from gmongo.cmap.handshake import choose_hello_name, establish, send_hello
from gmongo.cmap.hello import Hello, read_hello
from gmongo.cmap.metadata import detect_faas_platform
from gmongo.cmap.server_connection import ServerConnection
from gmongo.errors import AutoReconnect, PyMongoError
from gmongo.events.sdam import TopologyEvents
from gmongo.sdam.hello_reply import HelloReply
from gmongo.sdam.owned_monitor import OwnedMonitor
from gmongo.sdam.rtt_monitor import RoundTripTime, RttMonitor
from gmongo.sdam.server_description import ServerDescription, is_network_error
from gmongo.sdam.settings import MIN_HEARTBEAT_FREQUENCY, TopologySettings
from gmongo.wire.address import Address, address_text
from gmongo.wire.message import EXHAUST_ALLOWED, encode_op_msg, next_request_id
from gmongo.wire.transport import without_frames


class MonitorOwner(Protocol):
    """The method of a topology that receives the results of checks."""

    def server_checked(self, description: ServerDescription) -> None: ...


class CheckCancelled(AutoReconnect):
    """Error of a cancelled check: the monitor was closed, or an operation had a network error."""


def allows_streaming(mode: str, variables: Mapping[str, str]) -> bool:
    """Return True if the ``serverMonitoringMode`` `mode` allows the streaming protocol.

    The mode ``auto`` forbids the protocol in a serverless function, whose process is frozen between
    calls.
    """
    return mode == "stream" or (mode == "auto" and detect_faas_platform(variables) is None)


class Monitor(OwnedMonitor[MonitorOwner]):
    """Monitor of one server, which reports the results of its checks to its owner."""

    def __init__(
        self, address: Address, settings: TopologySettings, events: TopologyEvents, owner: MonitorOwner
    ) -> None:
        super().__init__(owner)
        self.address = address
        self._settings = settings
        self._events = events
        self._rtt = RoundTripTime()
        self._rtt_monitor: RttMonitor | None = None
        self._connection: ServerConnection | None = None
        self._earliest_retry = 0.0  # Before this time, no check follows a network error immediately.
        self._last_connection_id = 0  # ID of the newest connection of the monitor. The first ID is 1.
        self._hello_command: str  # Name of the hello command for the current connection.
        self._may_stream = allows_streaming(settings.monitoring_mode, os.environ)
        self._is_checking = False
        # Result of the last check. The topology may have marked the server Unknown after the check.
        # The next awaitable hello contains the topology version of the result. The server delays its
        # reply only if this topology version is current.
        self._last_description = ServerDescription(address)
        self._heartbeat: tuple[float, bool] | None = None  # start time, and True for an awaitable hello

    def request_check(self) -> None:
        """Request a check after the minimum pause. Ignore the request during a check."""
        self._wakeup.set()

    @property
    def progress(self) -> str | None:
        """Stage of the establishment of the monitor connection, or None if no establishment is in progress."""
        progress = None if self._connection is None else self._connection.progress
        return None if progress is None else f"{address_text(self.address)}: {progress}"

    def cancel_check(self) -> None:
        """Cancel a check in progress, and close the monitor's connection. Do not switch greenlets."""
        connection = self._connection
        if connection is None:
            return
        # During a check, the interrupted greenlet closes the connection. Otherwise, no greenlet uses
        # the connection.
        if self._is_checking:
            connection.interrupt(self._make_cancel_error())
        else:
            self._connection = None
            connection.close()

    def stop(self) -> None:
        self._background.ended = True
        self.cancel_check()
        if self._rtt_monitor is not None:
            self._rtt_monitor.stop()
        self._wakeup.set()

    def close(self) -> None:
        """Stop the greenlet. Publish the failure of a heartbeat in progress, before ServerClosed."""
        connection = self._connection
        self.stop()
        self._publish_heartbeat_failure(connection, self._make_cancel_error())

    def _make_cancel_error(self) -> CheckCancelled:
        return CheckCancelled(f"check of {address_text(self.address)} cancelled")

    def mark_forked(self, error: BaseException) -> None:
        self._background.ended = True
        if self._connection is not None:
            self._connection.mark_forked(error)
        if self._rtt_monitor is not None:
            self._rtt_monitor.mark_forked(error)

    def _run(self) -> None:
        work = LongWork()
        while not self._background.ended:
            if self._check_and_report():
                # let other greenlets run, because many hello replies may have arrived already
                work.checkpoint()
            else:
                self._pause()

    def _check_and_report(self) -> bool:
        """Perform one check, and report its result. Return True if the next check follows without a pause."""
        self._is_checking = True
        previous = self._last_description
        try:
            description = self._check(previous)
        finally:
            self._is_checking = False
        if description is None:
            return False
        self._last_description = description
        # Ignore requests during the check (SM-25). Listeners of the result may request a further
        # check.
        self._wakeup.clear()
        if (owner := self._owner()) is not None and not self._background.ended:
            owner.server_checked(description)
        return self._skips_pause(previous, description)

    def _skips_pause(self, previous: ServerDescription, description: ServerDescription) -> bool:
        """Return True if the next check follows without a pause (SM-111)."""
        if description.is_server_type_known:
            return self._is_awaited(self._connection, description)
        error = description.error
        if not previous.is_server_type_known or error is None or not is_network_error(error):
            return False
        now = _clock.monotonic()
        if now < self._earliest_retry:  # avoid a busy loop if the server closes each connection immediately
            return False
        self._earliest_retry = now + MIN_HEARTBEAT_FREQUENCY
        return True

    def _pause(self) -> None:
        """Sleep until the next check is due or requested, but at least for the minimum pause of 500 ms (SM-119)."""
        earliest_check = _clock.monotonic() + MIN_HEARTBEAT_FREQUENCY
        # Do not sleep if a listener called `stop` before `_check_and_report` cleared the wakeup.
        if not self._background.ended:
            self._wakeup.sleep(self._settings.heartbeat_frequency)
        while not self._background.ended and _clock.monotonic() < earliest_check:
            self._wakeup.sleep(earliest_check - _clock.monotonic())

    def _check(self, previous: ServerDescription) -> ServerDescription | None:
        """Perform one check, and return its result. Return None if the check was cancelled."""
        connection = self._connection or self._new_connection()
        awaited = connection.handshake_done and self._is_awaited(connection, previous)
        start_time = _clock.monotonic()
        # Set `_heartbeat` before the event: if a listener closes the client, `close` publishes the
        # heartbeat failure.
        self._heartbeat = start_time, awaited
        try:
            self._publish(self._events.heartbeat_started, self.address, connection, awaited)
            hello = self._request_hello(connection, previous, awaited)
        except (PyMongoError, BSONError) as error:
            self._rtt.reset()
            self._disconnect(error)
            return None if isinstance(error, CheckCancelled) else previous.to_unknown(without_frames(error))
        except BaseException:
            # after the greenlet's kill or timeout, close the connection, but report no server error
            self._disconnect(AutoReconnect(f"check of {address_text(self.address)} was interrupted"))
            raise
        if not awaited:
            self._rtt.add_sample(hello.duration)
        self._heartbeat = None
        reply = HelloReply(hello.reply, awaited)
        duration = _clock.monotonic() - start_time
        self._publish(self._events.heartbeat_succeeded, self.address, connection, duration, reply, awaited)
        self._start_rtt_monitor(hello)
        return ServerDescription(self.address, hello.reply, self._rtt.average, min_round_trip_time=self._rtt.minimum)

    def _disconnect(self, error: Exception) -> None:
        # Reset the attribute first, so that an interrupted listener cannot prevent a new connection.
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._publish_heartbeat_failure(connection, error)

    def _publish_heartbeat_failure(self, connection: ServerConnection | None, error: Exception) -> None:
        # The monitor greenlet and `close` may both call this method, but a heartbeat has only one end event.
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is not None:
            start_time, awaited = heartbeat
            duration = _clock.monotonic() - start_time
            self._publish(self._events.heartbeat_failed, self.address, connection, duration, error, awaited)

    def _publish(self, publish: Callable[..., None], *arguments: object) -> None:
        """Deliver an event, without waiting for listener calls of other greenlets."""
        self._events.delivery.record(publish, *arguments)
        self._events.delivery.deliver(wait=False)

    def _request_hello(self, connection: ServerConnection, previous: ServerDescription, awaited: bool) -> Hello:
        if not connection.handshake_done:
            hello = establish(connection, self._settings.connection, ref=False)
        elif awaited:
            hello = self._await_change(connection, previous)
        else:
            hello = send_hello(connection, self._build_hello_command(), self._settings.connection.connect_timeout)
        if hello.hello_ok:
            self._hello_command = "hello"
        return hello

    def _new_connection(self) -> ServerConnection:
        """Return a new connection, whose socket the check opens."""
        self._hello_command = choose_hello_name(self._settings.connection)
        self._connection = ServerConnection(self.address, ref=False, is_monitor=True)
        self._last_connection_id += 1
        self._connection.id = self._last_connection_id
        return self._connection

    def _is_awaited(self, connection: ServerConnection | None, previous: ServerDescription) -> bool:
        """Return True if the next hello is awaitable, or if the server already streams replies on the connection."""
        streams = connection is not None and connection.mid_message
        return streams or (self._may_stream and previous.topology_version is not None)

    def _await_change(self, connection: ServerConnection, previous: ServerDescription) -> Hello:
        """Return the next reply of the stream. Start a stream if no stream is in progress."""
        command = self._build_hello_command()
        command["topologyVersion"] = previous.topology_version
        command["maxAwaitTimeMS"] = bson.Int64(int(self._settings.heartbeat_frequency * 1000))
        command["$db"] = "admin"
        limit = self._settings.connection.connect_timeout
        timeout = None if limit is None else limit + self._settings.heartbeat_frequency  # as SM-69 requires
        request_id = next_request_id()
        start_time = _clock.monotonic()
        buffers = encode_op_msg(request_id, EXHAUST_ALLOWED, bson.encode(command))
        reply = connection.exchange(request_id, buffers, timeout, bson.decode)
        return read_hello(reply, _clock.monotonic() - start_time)

    def _build_hello_command(self) -> DocumentDict:
        api: Document = self._settings.connection.server_api
        return {self._hello_command: 1, **api, "helloOk": True}

    def _start_rtt_monitor(self, hello: Hello) -> None:
        """Start the RTT monitor, with its own connection, if the server supports streaming (SM-70, SM-71)."""
        if self._rtt_monitor is None and self._may_stream and "topologyVersion" in hello.reply:
            self._rtt_monitor = RttMonitor(self.address, self._settings, self._rtt)
            if not self._background.ended:  # a listener may have called `stop` during this check
                self._rtt_monitor.start()
