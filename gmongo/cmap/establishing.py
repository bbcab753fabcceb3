"""Establish the connections of a pool: connect, perform the handshake, and authenticate."""

from __future__ import annotations

from typing import Protocol

from gmongo import _clock
from gmongo.cmap.connect_error_labels import label_connect_error
from gmongo.cmap.connection import Connection
from gmongo.cmap.handshake import establish
from gmongo.cmap.pool_settings import ConnectionSettings
from gmongo.cmap.pool_state import StateMachine
from gmongo.errors import NetworkTimeout
from gmongo.events.delivery import Delivery
from gmongo.wire.timeout import TimeLimit, remaining


class PoolOwner(Protocol):
    """Callbacks by which a pool reports connections to the topology. Callbacks never switch greenlets."""

    def connection_established(self, connection: Connection) -> None:
        """Handle a connection whose handshake and authentication succeeded."""

    def establishment_failed(self, connection: Connection, error: Exception) -> None:
        """Handle a failed establishment, before the pool closes the connection (CMAP-A13).

        The pool reports only errors that the server may have caused: no kills of the greenlet, and no timeouts of the
        application or the operation.
        """


class Establisher:
    """Establishes the connections of one pool."""

    __slots__ = ("_delivery", "_machine", "_options", "_owner")

    def __init__(
        self, machine: StateMachine, options: ConnectionSettings, delivery: Delivery, owner: PoolOwner
    ) -> None:
        self._machine = machine
        self._options = options
        self._delivery = delivery
        self._owner = owner

    def establish(self, connection: Connection, deadline: float | None = None, ref: bool = True) -> None:
        """Connect to the server, perform the handshake and authenticate.

        After a success, the connection is still pending. After a failure, the state machine has dropped the connection.
        `deadline` is the end of the operation. ``connectTimeoutMS`` also limits each attempt. `ref` is True if the
        connection keeps the event loop alive.
        """
        machine, started = self._machine, _clock.monotonic()
        seconds = remaining(deadline)
        expired: NetworkTimeout | None = None

        # The timer calls this function when the timeout expires, so that the error names the current stage.
        def expire(_seconds: float) -> NetworkTimeout:
            nonlocal expired
            expired = connection.timeout_error(seconds)
            return expired

        limit = None if seconds is None else TimeLimit(expire, ref=True)
        machine.begin_establishing(connection)
        try:
            self._delivery.deliver()
            try:
                if limit is not None and seconds is not None:
                    limit.begin(seconds)
                establish(connection, self._options, ref, lambda: machine.join_service(connection))
            finally:
                if limit is not None:
                    limit.end()
                    limit.close()
            duration = _clock.monotonic() - started
            with self._delivery:
                self._owner.connection_established(connection)
                machine.established(connection, duration)
            self._delivery.deliver()
        except BaseException as error:
            # GreenletExit and gevent.Timeout are not subclasses of Exception.
            by_server = isinstance(error, Exception) and error is not expired
            del expired  # prevent a reference cycle between this frame and the error
            self._handle_failure(connection, error, by_server)
            raise

    def _handle_failure(self, connection: Connection, error: BaseException, by_server: bool) -> None:
        connection.mark_unusable(error)
        if by_server and connection.has_socket and not connection.handshake_done:
            label_connect_error(error)
        with self._delivery:
            if by_server:
                self._owner.establishment_failed(connection, error)  # type: ignore[arg-type]
            self._machine.fail_establishing(connection)
