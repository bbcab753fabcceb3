"""Forking. A child inherits the parent's sockets and its greenlets, which go on running in it.

The hook below runs in the child before any of them, and before gevent has mended its loop: so it only marks, and the
topology begins again when it is first used. CMAP-45, CMAP-169 to CMAP-171.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Inheritable(Protocol):
    """What wants to know that it finds itself in a forked child."""

    def inherited(self) -> None:
        """Called in the child, before anything else: no I/O and no switch."""


_inheritables: weakref.WeakSet[Inheritable] = weakref.WeakSet()


def survive_fork(inheritable: Inheritable) -> None:
    """Have `inheritable` told, for as long as it lives."""
    _inheritables.add(inheritable)


def _mark_inherited() -> None:
    for inheritable in list(_inheritables):
        inheritable.inherited()


os.register_at_fork(after_in_child=_mark_inherited)
