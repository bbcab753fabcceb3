"""The greenlet that watches one server (Server Monitoring specification).

It polls an old server, and lets a newer one stream: an awaitable hello is answered when something changes, and further
replies follow by themselves. Between checks it sleeps on a wakeup, and in a check on its socket; nothing is polled.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from typing import Protocol

import bson
from bson.errors import BSONError
from gevent import get_hub

from gmongo import _clock
from gmongo._background import LongWork, RestartingGreenlet, Wakeup
from gmongo._documents import Document, DocumentDict
from gmongo.cmap.handshake import establish, first_hello, say_hello
from gmongo.cmap.hello import Hello, read_hello
from gmongo.cmap.metadata import faas_name
from gmongo.cmap.server_connection import ServerConnection
from gmongo.errors import AutoReconnect, PyMongoError
from gmongo.events.sdam import TopologyEvents
from gmongo.sdam.hello_reply import HelloReply
from gmongo.sdam.network_errors import is_network_error
from gmongo.sdam.round_trip_time import RoundTripTime
from gmongo.sdam.rtt_monitor import RttMonitor
from gmongo.sdam.server_description import ServerDescription, unknown
from gmongo.sdam.settings import MIN_HEARTBEAT_FREQUENCY, TopologySettings
from gmongo.wire.address import Address, address_text
from gmongo.wire.message import EXHAUST_ALLOWED, encode_op_msg, next_request_id
from gmongo.wire.transport import without_frames


class MonitorOwner(Protocol):
    """What the checks are reported to: the topology."""

    def server_checked(self, description: ServerDescription) -> None:
        """A check has ended, well or not."""


class CheckCancelled(AutoReconnect):
    """A check was cancelled, because the client closed or an operation found the server gone."""


def streaming_wanted(mode: str, variables: Mapping[str, str]) -> bool:
    """Whether to use the streaming protocol where the server offers it (``serverMonitoringMode``).

    `auto` streams, but not in a serverless function, which is frozen between its calls.
    """
    return mode == "stream" or (mode == "auto" and faas_name(variables) is None)


class Monitor:
    """Watches one server.

    :param address: of the server.
    :param settings: of the client.
    :param events: the publisher.
    :param owner: gets the results of the checks; held weakly, and the monitor stops when it is gone.
    """

    def __init__(
        self, address: Address, settings: TopologySettings, events: TopologyEvents, owner: MonitorOwner
    ) -> None:
        self.address = address
        self._settings = settings
        self._events = events
        self._loop = get_hub().loop
        self._owner = weakref.ref(owner, self._owner_gone)
        self._wakeup = Wakeup()
        self._rtt = RoundTripTime()
        self._rtt_monitor: RttMonitor | None = None
        self._connection: ServerConnection | None = None
        self._may_retry_from = 0.0  # from when on the loss of a known server is answered at once
        self._last_id = 0  # of its connections, which are numbered from 1 on
        self._hello_command: str  # of the present connection
        self._may_stream = streaming_wanted(settings.monitoring_mode, os.environ)
        self._checking = False
        # What the last check has found. The topology may hold the server for Unknown all the same, as an old primary or
        # a member of another set: the next hello says what the server has announced, or it would answer at once.
        self._outcome = ServerDescription(address)
        self._heartbeat: tuple[float, bool] | None = None  # when one began that has no end event yet, if awaited
        self._stopped = False
        self._background = RestartingGreenlet(self._run)

    def start(self) -> None:
        """Begin to check."""
        self._background.start()

    def request_check(self) -> None:
        """Check as soon as the minimum pause allows. Ignored while a check is in progress."""
        self._wakeup.set()

    @property
    def progress(self) -> str | None:
        """The stage that the connection of the check in progress has reached; None if there is none."""
        progress = None if self._connection is None else self._connection.progress
        return None if progress is None else f"{address_text(self.address)}: {progress}"

    def cancel_check(self) -> None:
        """End the check in progress, if there is one, and close the connection. Does not switch."""
        connection = self._connection
        if connection is None:
            return
        # In a check the connection is the greenlet's: what is thrown there closes it, and says how the check has ended.
        # Between checks nothing runs on it that could be interrupted.
        if self._checking:
            connection.interrupt(self._cancelled())
        else:
            self._connection = None
            connection.close()

    def stop(self) -> None:
        """End the greenlet. Does not switch."""
        self._stopped = True
        self.cancel_check()
        if self._rtt_monitor is not None:
            self._rtt_monitor.stop()
        self._wakeup.set()

    def close(self) -> None:
        """End the greenlet, and note the end of its check: that event comes before the one of the server's closing."""
        connection = self._connection
        self.stop()
        self._announce_failed(connection, self._cancelled())

    def _cancelled(self) -> CheckCancelled:
        return CheckCancelled(f"check of {address_text(self.address)} cancelled")

    def mark_forked(self, error: BaseException) -> None:
        """In a forked child: never touch the parent's socket again."""
        self._stopped = True
        if self._connection is not None:
            self._connection.mark_forked(error)
        if self._rtt_monitor is not None:
            self._rtt_monitor.mark_forked(error)

    def _owner_gone(self, _reference: object) -> None:
        # The garbage is collected in any thread, and in the middle of any run without a switch: only a callback of the
        # loop finds the state whole.
        self._loop.run_callback_threadsafe(self.stop)

    # The greenlet

    def _run(self) -> None:
        work = LongWork()
        while not self._stopped:
            if self._check_and_report():
                work.checkpoint()  # many hellos may have come in one piece
            else:
                self._pause()

    def _check_and_report(self) -> bool:
        """Check once; whether the next check follows without a pause."""
        self._checking = True
        previous = self._outcome
        try:
            description = self._check(previous)
        finally:
            self._checking = False
        if description is None:
            return False
        self._outcome = description
        # A request made during the check is met by it (SM-25). One that listeners make while the check is reported is
        # not: so it is cleared before that.
        self._wakeup.clear()
        self._report(description)
        return self._goes_on_at_once(previous, description)

    def _report(self, description: ServerDescription) -> None:
        owner = self._owner()
        if owner is not None and not self._stopped:
            owner.server_checked(description)

    def _goes_on_at_once(self, previous: ServerDescription, description: ServerDescription) -> bool:
        """Whether the next check follows without a pause (SM-111); after a loss, once in the minimum between checks."""
        if description.is_server_type_known:
            return self._is_awaited(self._connection, description)
        error = description.error
        if not previous.is_server_type_known or error is None or not is_network_error(error):
            return False
        now = _clock.monotonic()
        if now < self._may_retry_from:  # it accepts connections and closes them at once: do not spin
            return False
        self._may_retry_from = now + MIN_HEARTBEAT_FREQUENCY
        return True

    def _pause(self) -> None:
        """Sleep until the next check is due or asked for, but never less than the minimum (SM-119)."""
        earliest = _clock.monotonic() + MIN_HEARTBEAT_FREQUENCY
        # `stop` may have come after the reply of this check, while listeners ran. It has set the wakeup, and the end of
        # the check has cleared it: the sleep would last its whole time.
        if not self._stopped:
            self._wakeup.sleep(self._settings.heartbeat_frequency)
        while not self._stopped and _clock.monotonic() < earliest:
            self._wakeup.sleep(earliest - _clock.monotonic())

    # One check

    def _check(self, previous: ServerDescription) -> ServerDescription | None:
        """Check once; None if the check was cancelled."""
        connection = self._connection or self._new_connection()
        awaited = connection.handshake_done and self._is_awaited(connection, previous)
        started = _clock.monotonic()
        # Set before listeners are told of the start: if they close the client, `close` notes the end of this check.
        self._heartbeat = started, awaited
        try:
            self._publish(self._events.heartbeat_started, self.address, connection, awaited)
            hello = self._ask(connection, previous, awaited)
        except (PyMongoError, BSONError) as error:
            return self._failed(error)
        except BaseException:  # a kill or a time-out tells nothing of the server, but the connection is unusable
            self._disconnect(AutoReconnect(f"check of {address_text(self.address)} was interrupted"))
            raise
        if not awaited:
            self._rtt.add_sample(hello.duration)
        self._heartbeat = None
        reply = HelloReply(hello.reply, awaited)
        duration = _clock.monotonic() - started
        self._publish(self._events.heartbeat_succeeded, self.address, connection, duration, reply, awaited)
        self._start_measuring(hello)
        return ServerDescription(self.address, hello.reply, self._rtt.average, min_round_trip_time=self._rtt.minimum)

    def _failed(self, error: Exception) -> ServerDescription | None:
        self._rtt.reset()
        self._disconnect(error)
        if isinstance(error, CheckCancelled):
            return None
        return unknown(self.address, without_frames(error))

    def _disconnect(self, error: Exception) -> None:
        # The next check has to make a connection, also if what follows is interrupted in a listener.
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._announce_failed(connection, error)

    def _announce_failed(self, connection: ServerConnection | None, error: Exception) -> None:
        # Taken before it is published: the greenlet and `close` both come here, and a start has one end.
        heartbeat, self._heartbeat = self._heartbeat, None
        if heartbeat is not None:
            started, awaited = heartbeat
            duration = _clock.monotonic() - started
            self._publish(self._events.heartbeat_failed, self.address, connection, duration, error, awaited)

    def _publish(self, publish: Callable[..., None], *what: object) -> None:
        """Deliver an event of this greenlet's, without waiting for the listeners of others."""
        self._events.delivery.note(publish, *what)
        self._events.delivery.deliver(wait=False)

    def _ask(self, connection: ServerConnection, previous: ServerDescription, awaited: bool) -> Hello:
        if not connection.handshake_done:
            return self._received(establish(connection, self._settings.connection, ref=False))
        if awaited:
            return self._await_change(connection, previous)
        hello = say_hello(connection, self._plain_command(), self._connect_timeout)
        return self._received(hello)

    def _new_connection(self) -> ServerConnection:
        """A connection that has no socket yet: making one is a part of the check."""
        self._hello_command = first_hello(self._settings.connection)
        self._connection = ServerConnection(self.address, ref=False, monitors=True)
        self._last_id += 1
        self._connection.id = self._last_id
        return self._connection

    def _is_awaited(self, connection: ServerConnection | None, previous: ServerDescription) -> bool:
        """Whether the next hello is one that the server sends when it has news: it may have announced it already."""
        streams = connection is not None and connection.mid_message
        return streams or (self._may_stream and previous.topology_version is not None)

    def _await_change(self, connection: ServerConnection, previous: ServerDescription) -> Hello:
        """The next reply of the stream that is under way, or of one that this begins."""
        command = self._plain_command()
        command["topologyVersion"] = previous.topology_version
        command["maxAwaitTimeMS"] = bson.Int64(int(self._settings.heartbeat_frequency * 1000))
        command["$db"] = "admin"
        request_id = next_request_id()
        started = _clock.monotonic()
        buffers = encode_op_msg(request_id, EXHAUST_ALLOWED, bson.encode(command))
        reply = connection.exchange(request_id, buffers, self._await_timeout, bson.decode)
        return self._received(read_hello(reply, _clock.monotonic() - started))

    def _received(self, hello: Hello) -> Hello:
        if hello.hello_ok:
            self._hello_command = "hello"
        return hello

    def _plain_command(self) -> DocumentDict:
        api: Document = self._settings.connection.server_api
        return {self._hello_command: 1, **api, "helloOk": True}

    @property
    def _connect_timeout(self) -> float | None:
        return self._settings.connection.connect_timeout

    @property
    def _await_timeout(self) -> float | None:
        """An awaited reply may take as long as the server waits on top of the usual limit (SM-69)."""
        limit = self._connect_timeout
        return None if limit is None else limit + self._settings.heartbeat_frequency

    def _start_measuring(self, hello: Hello) -> None:
        """A server that streams is measured on a connection of its own (SM-70, SM-71)."""
        if self._rtt_monitor is None and self._may_stream and "topologyVersion" in hello.reply:
            self._rtt_monitor = RttMonitor(self.address, self._settings, self._rtt)
            # `stop` may have come while listeners were told of this check, and has found nothing to stop.
            if not self._stopped:
                self._rtt_monitor.start()
