"""Checks that critical sections do not switch greenlets; production code needs no marks for it.

Every method of ``StateMachine`` is a critical section, and so is every ``with delivery:``. While :func:`watch` is on,
they are wrapped, and ``greenlet.settrace`` sees each switch that happens in one, also those that gevent makes in C. A
greenlet that has noted events, and switches before it delivers them, is found too: others would wait for it.
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

# Called by the delivery when the turn of its event has come, to publish it.
_NO_SECTIONS = frozenset({"_publish_ready"})


class Sections:
    """What was seen.

    :ivar count: of critical sections.
    :ivar faults: switches in them, with where they happened.
    """

    def __init__(self) -> None:
        self.count = 0
        self.faults: list[str] = []
        self._depth: Counter[int] = Counter()
        self._noted_in: dict[int, Delivery] = {}  # by greenlet, the last one

    def section(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A method of the state, watched."""

        @functools.wraps(function)
        def watched(*arguments: Any, **keywords: Any) -> Any:
            self.enter()
            try:
                return function(*arguments, **keywords)
            finally:
                self.leave()

        return watched

    def enter(self) -> None:
        self.count += 1
        self._depth[id(greenlet.getcurrent())] += 1

    def leave(self) -> None:
        self._depth[id(greenlet.getcurrent())] -= 1

    def held(self, function: Callable[[Delivery], None]) -> Callable[[Delivery], None]:
        """``Delivery.__enter__``, watched."""

        def watched(delivery: Delivery) -> None:
            self.enter()
            function(delivery)

        return watched

    def released(self, function: Callable[..., None]) -> Callable[..., None]:
        """``Delivery.__exit__``, watched."""

        def watched(delivery: Delivery, *outcome: Any) -> None:
            self.leave()
            function(delivery, *outcome)

        return watched

    def noted(self, function: Callable[..., bool]) -> Callable[..., bool]:
        """``Delivery.note``, watched: it says whose delivery to look at."""

        def watched(delivery: Delivery, *what: Any) -> bool:
            self._noted_in[id(greenlet.getcurrent())] = delivery
            return function(delivery, *what)

        return watched

    def trace(self, _event: str, switch: tuple[Any, Any]) -> None:
        """Called at each switch of the thread."""
        origin = switch[0]
        if self._depth[id(origin)] > 0:
            self._fault("a switch in a critical section", origin)
        delivery = self._noted_in.get(id(origin))
        turn = delivery._turns.get(origin) if delivery is not None else None
        if turn is not None and turn.size and not turn.delivering and turn.awake is None:
            self._fault("a switch before events were delivered", origin)

    def _fault(self, what: str, origin: Any) -> None:
        where = "".join(traceback.format_stack(origin.gr_frame, limit=8)) if origin.gr_frame else "it has ended"
        self.faults.append(f"{what}:\n{where}")


@contextmanager
def watch() -> Iterator[Sections]:
    """Watch all critical sections; what was seen is for the caller to judge."""
    sections = Sections()
    methods: dict[str, Any] = {
        name: sections.section(method)
        for name, method in vars(StateMachine).items()
        if callable(method) and not name.startswith("__") and name not in _NO_SECTIONS
    }
    watched: dict[str, Any] = {
        "__enter__": sections.held(Delivery.__enter__),
        "__exit__": sections.released(Delivery.__exit__),
        "note": sections.noted(Delivery.note),
    }
    before = greenlet.settrace(sections.trace)
    try:
        with patch.multiple(StateMachine, **methods), patch.multiple(Delivery, **watched):
            yield sections
    finally:
        greenlet.settrace(before)


@contextmanager
def check() -> Iterator[None]:
    """Fail if a greenlet switches in a critical section."""
    with watch() as sections:
        yield
    assert not sections.faults, f"{len(sections.faults)} faults, the first one: {sections.faults[0]}"
