"""Concurrent TCP connection attempts to the addresses of one host (RFC 8305). The first connection wins."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest
from math import inf
from typing import TypeAlias

from gevent import get_hub, getcurrent
from gevent.exceptions import InvalidSwitchError
from greenlet import greenlet

from gmongo import _clock
from gmongo._truncated_repr import format_milliseconds
from gmongo.wire.address import SocketAddress
from gmongo.wire.transport import Transport, TransportError, without_frames

Endpoint: TypeAlias = tuple[int, SocketAddress]
"""Socket family and address of a connection attempt."""

_CONNECTION_ATTEMPT_DELAY = 0.25  # Seconds between the starts of two attempts, as in RFC 8305.
_SHORTEST_SLEEP = 0.001  # Shortest duration of a timer in seconds.
_MAX_FAILED_ADDRESSES = 256


class AttemptsTimedOut(TransportError):
    """Error: an attempt timed out, or a race with at least one timed-out attempt failed."""


class AddressOrder:
    """Order of the attempts of a :class:`Race`. Addresses with failed or slow attempts are last."""

    def __init__(self) -> None:
        self._failed_addresses: dict[SocketAddress, None] = {}  # addresses in order of failure

    def __repr__(self) -> str:
        return f"<AddressOrder {len(self._failed_addresses)} failed>"

    def sort_endpoints(self, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
        """Sort addresses for the next race. Address families alternate (RFC 8305)."""
        failure_positions = {address: position for position, address in enumerate(self._failed_addresses, 1)}
        return sorted(_interleave_families(endpoints), key=lambda endpoint: failure_positions.get(endpoint[1], 0))

    def record_failed_address(self, address: SocketAddress) -> None:
        self.remove_failed_address(address)
        self._failed_addresses[address] = None
        if len(self._failed_addresses) > _MAX_FAILED_ADDRESSES:
            del self._failed_addresses[next(iter(self._failed_addresses))]

    def remove_failed_address(self, address: SocketAddress) -> None:
        self._failed_addresses.pop(address, None)


def _interleave_families(endpoints: Iterable[Endpoint]) -> list[Endpoint]:
    families: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        families.setdefault(endpoint[0], []).append(endpoint)
    return [endpoint for turn in zip_longest(*families.values()) for endpoint in turn if endpoint is not None]


@dataclass(frozen=True, eq=False, repr=False)
class Attempt:
    """Connection attempt to one address. The race owns the transport until the attempt wins."""

    address: SocketAddress
    transport: Transport
    began: float


class Race:
    """Concurrent connection attempts to the addresses of one host. One greenlet runs all attempts.

    `make_transport` returns an unconnected transport for a socket family. `seconds` limits each
    attempt.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        make_transport: Callable[[int], Transport],
        seconds: float | None,
        order: AddressOrder,
        ref: bool,
    ) -> None:
        self._untried_endpoints = deque(order.sort_endpoints(endpoints))
        self._make_transport = make_transport
        self._seconds = seconds
        self._order = order
        self._ref = ref
        self._hub = get_hub()
        self._attempts: list[Attempt] = []
        self._next_start = -inf
        self._greenlet: greenlet | None = None  # greenlet that waits for the sockets
        self._interruption: BaseException | None = None
        self.failures: list[tuple[SocketAddress, TransportError, float]] = []  # address, error, seconds of the attempt

    def __str__(self) -> str:
        now = _clock.monotonic()
        return ", ".join(f"{each.address[0]} for {format_milliseconds(now - each.began)}" for each in self._attempts)

    def run(self) -> Attempt:
        """Return the first connected attempt, whose transport the caller must close."""
        try:
            while True:
                if self._interruption is not None:
                    raise without_frames(self._interruption)
                winner = self._find_connected_attempt() or self._start_due_attempts()
                if winner is not None:
                    self._attempts.remove(winner)
                    for attempt in self._attempts:
                        if attempt.began < winner.began:  # later races attempt slower addresses last
                            self._order.record_failed_address(attempt.address)
                    self._order.remove_failed_address(winner.address)
                    return winner
                if not self._attempts:
                    raise self._make_failure()
                self._sleep()
        finally:
            for attempt in self._attempts:
                attempt.transport.close()

    def _find_connected_attempt(self) -> Attempt | None:
        """Return a connected attempt, or None. Drop failed and timed-out attempts."""
        now = _clock.monotonic()
        for attempt in list(self._attempts):
            try:
                if attempt.transport.is_connected():
                    return attempt
                if self._seconds is not None and now >= attempt.began + self._seconds:
                    raise AttemptsTimedOut(errno.ETIMEDOUT, "timed out")
            except TransportError as error:
                self._drop_attempt(attempt, error)
        return None

    def _start_due_attempts(self) -> Attempt | None:
        """Start the attempts that are due. Return an attempt that connected immediately, or None."""
        while self._untried_endpoints and (not self._attempts or _clock.monotonic() >= self._next_start):
            family, address = self._untried_endpoints.popleft()
            now = _clock.monotonic()
            try:
                attempt = Attempt(address, self._make_transport(family), now)
            except TransportError as error:
                self._record_failure(address, error, 0.0)
                continue
            self._attempts.append(attempt)
            self._next_start = now + _CONNECTION_ATTEMPT_DELAY
            try:
                if attempt.transport.start_connecting(address):
                    return attempt
            except TransportError as error:
                self._drop_attempt(attempt, error)
        return None

    def _drop_attempt(self, attempt: Attempt, error: TransportError) -> None:
        """Close a failed attempt. The next attempt starts now if no later attempt is in progress."""
        now = _clock.monotonic()
        if attempt is self._attempts[-1]:
            self._next_start = now
        self._attempts.remove(attempt)
        attempt.transport.close()
        self._record_failure(attempt.address, error, now - attempt.began)

    def _record_failure(self, address: SocketAddress, error: TransportError, seconds: float) -> None:
        self._order.record_failed_address(address)
        self.failures.append((address, error, seconds))

    def _make_failure(self) -> TransportError:
        timed_out = any(isinstance(error, AttemptsTimedOut) for _, error, _ in self.failures)
        texts = (
            f"{address[0]}: {error.strerror or error} after {format_milliseconds(seconds)}"
            for address, error, seconds in self.failures
        )
        return (AttemptsTimedOut if timed_out else TransportError)(", ".join(texts))

    def _sleep(self) -> None:
        """Wait until a socket is ready, the next attempt is due, or an attempt times out."""
        wake_times = [] if self._seconds is None else [self._attempts[0].began + self._seconds]
        if self._untried_endpoints:
            wake_times.append(self._next_start)
        timer = None
        self._greenlet = getcurrent()
        try:
            if wake_times:
                seconds = max(min(wake_times) - _clock.monotonic(), _SHORTEST_SLEEP)
                timer = self._hub.loop.timer(seconds, ref=self._ref)
                timer.start(self._wake, update=True)
            for attempt in self._attempts:
                attempt.transport.watch_connecting(self._wake)
            result = self._hub.switch()
            if result is not self:
                raise InvalidSwitchError(f"switched into {getcurrent()!r} with {result!r}, expected {self!r}")
        finally:
            self._greenlet = None
            if timer is not None:
                timer.close()
            for attempt in self._attempts:
                attempt.transport.watch_connecting(None)

    def _wake(self) -> None:
        if self._greenlet is not None:
            self._greenlet.switch(self)

    def interrupt(self, error: BaseException) -> None:
        """End the race, without a switch: :meth:`run` closes the sockets and raises `error`."""
        if self._interruption is None:
            self._interruption = error
        if self._greenlet is not None:
            self._hub.loop.run_callback(self._wake)

    def mark_forked(self, error: BaseException) -> None:
        """Mark the race of the parent process in a forked child, where the race ends with `error`."""
        self._interruption = error

    def close(self) -> None:
        """End the race, without a greenlet switch."""
        self.interrupt(TransportError("connection closed"))
