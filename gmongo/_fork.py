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


class Inheritable(Protocol):
    """What wants to know that it finds itself in a forked child."""

    def inherited(self) -> None:
        """Called in the child, before anything else: no I/O and no switch."""


_inheritables: weakref.WeakSet[Inheritable] = weakref.WeakSet()


def survive_fork(inheritable: Inheritable) -> None:
    """Have `inheritable` told, for as long as it lives."""
    _inheritables.add(inheritable)


_process = os.getpid()


def _mark_inherited() -> None:
    global _process
    if _process == os.getpid():  # told twice, or too early
        return
    _process = os.getpid()
    for inheritable in list(_inheritables):
        inheritable.inherited()


def _ask_uwsgi(uwsgi: Any) -> None:
    """uWSGI forks in C, and calls Python's hooks only if it is told to. It has one hook of its own, of which its
    decorators make many.
    """
    try:
        import_module("uwsgidecorators").postfork(_mark_inherited)
    except ImportError:
        uwsgi.post_fork_hook = _mark_inherited


os.register_at_fork(after_in_child=_mark_inherited)
if "uwsgi" in sys.modules:
    _ask_uwsgi(sys.modules["uwsgi"])
