"""Screen: view of process states on a terminal, with a refresh every second. Keys select a page, sort and scroll."""

from __future__ import annotations

import os
import re
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gevent.select import select
from rich.console import Console, Group
from rich.live import Live
from rich.segment import Segments
from rich.text import Text

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo.status.terminal import EVENTS, OPERATIONS, POOLS, SERVERS, SLOW_OPERATIONS, Order, headline, problems, table

_PAGES = {"1": (SERVERS, POOLS), "2": (OPERATIONS,), "3": (SLOW_OPERATIONS,), "4": (EVENTS,)}
_SCROLL_STEPS = {"\x1b[A": -1, "k": -1, "\x1b[B": 1, "j": 1, "\x1b[5~": -10, "\x1b[6~": 10, " ": 10}
_HELP = "1 pools 2 operations 3 slow 4 events  s sort r reverse ↑↓ scroll p pause q quit"
_KEY_PATTERN = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)
_REFRESH_INTERVAL = 1.0  # seconds between two refreshes

States = list[DocumentDict]


class Screen:
    """State of the screen: the selected page, the sort orders, the scroll position, and the pause."""

    def __init__(self) -> None:
        self.is_paused = False
        self._page = "1"
        self._offset = 0
        # The keys ``s`` and ``r`` sort the last table of a page.
        self._orders = {page: views[-1].order for page, views in _PAGES.items()}

    def press(self, key: str, width: int) -> None:
        """Handle a pressed key on a terminal with `width` characters. Ignore unknown keys."""
        if key in _PAGES:
            self._page, self._offset = key, 0
        elif key == "p":
            self.is_paused = not self.is_paused
        elif key == "r":
            order = self._orders[self._page]
            self._orders[self._page] = order._replace(descending=not order.descending)
        elif key == "s":
            self._sort_by_next_column(width)
        self._offset = max(0, self._offset + _SCROLL_STEPS.get(key, 0))

    def _sort_by_next_column(self, width: int) -> None:
        names = [each.name for each in _PAGES[self._page][-1].visible_columns(width)]
        current = self._orders[self._page].column
        next_index = names.index(current) + 1 if current in names else 0
        self._orders[self._page] = Order(names[next_index % len(names)])

    def visible_part(self, states: States, console: Console) -> Group:
        """Return the part of the selected page that is visible at the scroll position."""
        width, height = console.size
        *upper_views, last_view = _PAGES[self._page]
        parts = [headline(states)]
        if self._page == "1":
            parts.append(problems(states))
        parts += [table(view, states, width, view.order) for view in upper_views]
        parts.append(table(last_view, states, width, self._orders[self._page]))
        lines = console.render_lines(Group(*parts), console.options.update(height=None), pad=False, new_lines=True)
        visible_height = max(1, height - 1)
        self._offset = min(self._offset, max(0, len(lines) - visible_height))
        part = lines[self._offset : self._offset + visible_height]
        keys = Text(f"PAUSED {_HELP}" if self.is_paused else _HELP, "dim", no_wrap=True, overflow="ellipsis")
        return Group(keys, *(Segments(line) for line in part))


def watch(console: Console, read_states: Callable[[], States]) -> None:
    """Show the states that `read_states` returns, until the user presses the key ``q``."""
    screen = Screen()
    with _key_reader() as read_keys, Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            states, refresh_at = read_states(), _clock.monotonic() + _REFRESH_INTERVAL
            while screen.is_paused or _clock.monotonic() < refresh_at:
                live.update(screen.visible_part(states, console), refresh=True)
                for key in read_keys(_REFRESH_INTERVAL if screen.is_paused else refresh_at - _clock.monotonic()):
                    if key == "q":
                        return
                    screen.press(key, console.width)


@contextmanager
def _key_reader() -> Iterator[Callable[[float], list[str]]]:
    """Yield a function that waits for pressed keys, and returns the pressed keys."""
    fd = sys.stdin.fileno()
    is_terminal = os.isatty(fd)

    def read_keys(seconds: float) -> list[str]:
        readable, _, _ = select([fd] if is_terminal else [], [], [], max(0.0, seconds))
        text = os.read(fd, 64).decode(errors="ignore") if readable else ""
        return _KEY_PATTERN.findall(text)

    saved_settings = termios.tcgetattr(fd) if is_terminal else None
    try:
        if is_terminal:
            tty.setcbreak(fd)
        yield read_keys
    finally:
        if saved_settings is not None:
            termios.tcsetattr(fd, termios.TCSADRAIN, saved_settings)
