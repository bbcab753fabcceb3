"""Detect greenlet switches in critical sections.

Critical sections are the methods of ``StateMachine`` and the blocks ``with delivery:``.
:func:`record_switches` wraps the critical sections, and ``greenlet.settrace`` reports each switch.
A greenlet with a recorded event may switch before the delivery only to wait for earlier events,
because other greenlets wait for the delivery.
"""

from __future__ import annotations

import functools
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import greenlet

from gmongo.cmap.pool_state import StateMachine
from gmongo.events.delivery import Delivery

# The only method of `StateMachine` that is no critical section. `Delivery` calls the method to
# publish an event.
_UNCRITICAL_METHODS = frozenset({"_publish_ready"})


class CriticalSections:
    """Count and faults of the critical sections that run in a block of :func:`record_switches`."""

    def __init__(self) -> None:
        self.count = 0
        self.faults: list[str] = []
        self._depth: Counter[int] = Counter()
        self._last_deliveries: dict[int, Delivery] = {}  # ID of a greenlet -> `Delivery` that the greenlet used last

    def wrap_method(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper that runs a method of ``StateMachine`` as a critical section."""

        @functools.wraps(function)
        def watched(*arguments: Any, **keywords: Any) -> Any:
            self.enter()
            try:
                return function(*arguments, **keywords)
            finally:
                self.leave()

        return watched

    def wrap_delivery(self, method_name: str, before: Callable[[Delivery], None]) -> Callable[..., Any]:
        """Return a wrapper that calls `before`, and then a method of ``Delivery``."""
        function = getattr(Delivery, method_name)

        def watched(delivery: Delivery, *arguments: Any) -> Any:
            before(delivery)
            return function(delivery, *arguments)

        return watched

    def enter(self, _delivery: Delivery | None = None) -> None:
        self.count += 1
        self._depth[id(greenlet.getcurrent())] += 1

    def leave(self, _delivery: Delivery | None = None) -> None:
        self._depth[id(greenlet.getcurrent())] -= 1

    def record_use(self, delivery: Delivery) -> None:
        self._last_deliveries[id(greenlet.getcurrent())] = delivery

    def trace(self, _event: str, switch: tuple[Any, Any]) -> None:
        """Record a fault if the switching greenlet is in a critical section, or has recorded
        events and neither delivers them nor waits for their turn.

        After ``greenlet.settrace``, each switch calls this method.
        """
        origin = switch[0]
        if self._depth[id(origin)] > 0:
            self._record_fault("a switch in a critical section", origin)
        delivery = self._last_deliveries.get(id(origin))
        pending = delivery._events_by_greenlet.get(origin) if delivery is not None else None
        if pending is not None and pending.size and not pending.is_delivering and pending.turn is None:
            self._record_fault("a switch before events were delivered", origin)

    def _record_fault(self, description: str, origin: Any) -> None:
        where = (
            "".join(traceback.format_stack(origin.gr_frame, limit=8)) if origin.gr_frame else "the greenlet has ended"
        )
        self.faults.append(f"{description}:\n{where}")


@contextmanager
def record_switches() -> Iterator[CriticalSections]:
    """While the block runs, record greenlet switches in critical sections and before deliveries."""
    sections = CriticalSections()
    state_machine_methods: dict[str, Any] = {
        name: sections.wrap_method(method)
        for name, method in vars(StateMachine).items()
        if callable(method) and not name.startswith("__") and name not in _UNCRITICAL_METHODS
    }
    delivery_methods: dict[str, Any] = {
        "__enter__": sections.wrap_delivery("__enter__", sections.enter),
        "__exit__": sections.wrap_delivery("__exit__", sections.leave),
        "record": sections.wrap_delivery("record", sections.record_use),
    }
    previous_trace = greenlet.settrace(sections.trace)
    try:
        with (
            patch.multiple(StateMachine, **state_machine_methods),
            patch.multiple(Delivery, **delivery_methods),
        ):
            yield sections
    finally:
        greenlet.settrace(previous_trace)


@contextmanager
def fail_on_switches() -> Iterator[None]:
    """Fail at the end of the block if :func:`record_switches` has recorded a fault."""
    with record_switches() as sections:
        yield
    assert not sections.faults, f"{len(sections.faults)} faults, the first one: {sections.faults[0]}"
