"""Forking. A child inherits the parent's sockets and its greenlets, which go on running in it.

The hook below runs in the child before any of them, and before gevent has mended its loop: so it only marks, and the
topology begins again when it is first used. CMAP-45, CMAP-169 to CMAP-171.
"""

from __future__ import annotations

import os
import sys
import weakref
from importlib import import_module
from typing import Any, Protocol


class Forkable(Protocol):
    """What has state that a forked child must not use."""

    def mark_forked(self) -> None:
        """Called in the child, before anything else: no I/O and no switch."""


_registered: weakref.WeakSet[Forkable] = weakref.WeakSet()


def register_after_fork(forkable: Forkable) -> None:
    """Have ``forkable.mark_forked()`` called in every forked child, for as long as `forkable` lives."""
    _registered.add(forkable)


def forkables() -> list[Forkable]:
    """All that has been registered and lives."""
    return list(_registered)


_process = os.getpid()


def _mark_all() -> None:
    global _process
    if _process == os.getpid():  # called twice, or in the parent
        return
    _process = os.getpid()
    for forkable in list(_registered):
        forkable.mark_forked()


def _register_with_uwsgi(uwsgi: Any) -> None:
    """uWSGI forks in C, and calls Python's hooks only on demand. It has one hook of its own, which its
    decorators share out.
    """
    try:
        import_module("uwsgidecorators").postfork(_mark_all)
    except ImportError:
        uwsgi.post_fork_hook = _mark_all


os.register_at_fork(after_in_child=_mark_all)
if "uwsgi" in sys.modules:
    _register_with_uwsgi(sys.modules["uwsgi"])
