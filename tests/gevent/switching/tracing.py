"""Trace the switches of a greenlet, and interrupt the greenlet at one switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import gevent
import greenlet
from gevent import GreenletExit, get_hub

from tests.gevent.switching.interruptions import (
    EARLY,
    ENTER,
    KILL,
    LATE,
    SPAWN,
    InterruptionKind,
    ReportingGreenlet,
    RunningTimeouts,
)


class Tracer:
    """Tracer that interrupts one greenlet at the chosen switch of this greenlet."""

    def __init__(
        self, switch_number: int | None, kind: InterruptionKind | None, is_traced_greenlet: Callable[[Any], bool]
    ) -> None:
        self.switch_number = switch_number
        self.kind = kind
        self.traced_greenlet: Any = None
        self.switch_count = 0
        self.errors: list[BaseException] = []
        self.reached = False
        self.switched_greenlets: WeakSet[Any] = WeakSet()
        self._is_traced_greenlet = is_traced_greenlet
        self.start_second: Callable[[], None] = int
        self._is_over = False
        self._hub = get_hub()
        self._counts_spawns = kind is not None and kind.moment == SPAWN
        self._remaining_error_factories = () if kind is None or kind.error_factories is None else kind.error_factories

    def __enter__(self) -> Tracer:
        greenlet.settrace(self._trace)
        if self._counts_spawns:
            ReportingGreenlet.on_start = self._handle_spawn
        return self

    def __exit__(self, *_: object) -> None:
        greenlet.settrace(None)
        ReportingGreenlet.on_start = None
        self._is_over = True

    def _trace(self, event: str, args: tuple[Any, Any]) -> None:
        origin, target = args
        self.switched_greenlets.add(target)
        if self.traced_greenlet is None:
            if self._is_traced_greenlet(target):
                self.traced_greenlet = target
        elif origin is self.traced_greenlet and target is self._hub:
            if not origin.dead:
                self._handle_switch_out()
        elif target is self.traced_greenlet and origin is self._hub and event == "switch":
            self._handle_wakeup()

    def _handle_spawn(self, spawned: gevent.Greenlet[..., Any]) -> None:
        number = self.switch_count
        self.switch_count += 1
        if number == self.switch_number:
            self.reached = True
            self.errors.append(GreenletExit())
            spawned.kill(block=False)

    def _handle_switch_out(self) -> None:
        if self._counts_spawns:
            return
        number = self.switch_count
        self.switch_count += 1
        if number == self.switch_number and not self.reached:
            self.reached = True
            if self.kind is not None and self.kind.moment == EARLY:
                self._hub.loop.run_callback(self._throw)
            elif self.kind is not None and self.kind.moment == ENTER:
                self._hub.loop.run_callback(self.start_second)
        elif self.errors and self._remaining_error_factories:
            self._hub.loop.run_callback(self._throw)

    def _handle_wakeup(self) -> None:
        if not self.reached or self.errors or self.kind is None or self.kind.moment != LATE:
            return
        if self.switch_count != (self.switch_number or 0) + 1:
            return
        error = self._take_next_error()
        if error is not None:
            # An error that the trace function raises occurs in the resumed greenlet, but also ends
            # the tracing.
            self._hub.loop.run_callback(self._resume_tracing)
            raise error

    def has_missed_interruption(self) -> bool:
        """Return True if the tracer threw no error, although the greenlet switched again after the
        chosen switch.

        A missed interruption is a fault of the harness. The last switch does not count, because a
        callback may end the greenlet before the throw. The last switch differs between runs,
        because the driver reads an available reply without a switch.
        """
        by_application = self.kind is not None and self.kind.is_from_application
        return by_application and self.reached and not self.errors and self.switch_count > (self.switch_number or 0) + 1

    def _resume_tracing(self) -> None:
        if not self._is_over:
            greenlet.settrace(self._trace)
        if self.traced_greenlet is not None and not self.traced_greenlet.dead and self._remaining_error_factories:
            self._throw()

    def _take_next_error(self) -> BaseException | None:
        assert self.kind is not None
        if self.kind.error_factories is None:
            error = RunningTimeouts.error_of(self.traced_greenlet, self.kind.innermost)
        elif self._remaining_error_factories:
            make_error, self._remaining_error_factories = (
                self._remaining_error_factories[0],
                self._remaining_error_factories[1:],
            )
            error = make_error()
        else:
            error = None
        if error is not None:
            self.errors.append(error)
        return error

    def _throw(self) -> None:
        if self.traced_greenlet.dead:
            return
        error = self._take_next_error()
        if error is not None:
            self.traced_greenlet.throw(error)


class SecondGreenletStarter(Tracer):
    """Tracer that starts further greenlets at a switch of the first greenlet, and can then kill
    this greenlet.
    """

    def __init__(
        self,
        switch_number: int,
        first: gevent.Greenlet[..., Any],
        start_others: Callable[[], None],
        kills_first: bool = False,
    ) -> None:
        super().__init__(switch_number, KILL, lambda each: each is first)
        self._first, self._start_others, self._kills_first = first, start_others, kills_first

    def _throw(self) -> None:
        if not self.errors:
            self.errors.append(GreenletExit())
            self._start_others()
            if self._kills_first:
                get_hub().loop.run_callback(self._first.kill, GreenletExit, False)
