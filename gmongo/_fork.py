"""Fork handling. A child inherits the sockets, the epoll set of the event loop, and running greenlets of its parent.

The hook below runs in the child before these greenlets. It marks the inherited objects, and the topology starts afresh
on its first use. CMAP-45, CMAP-169 to CMAP-171.
"""

from __future__ import annotations

import os
import sys
import weakref
from importlib import import_module
from types import ModuleType
from typing import Protocol

import gevent


class Forkable(Protocol):
    """Object with state that a forked child must not use."""

    def mark_forked(self) -> None:
        """Mark the state in the child as inherited. The hook calls this method first. Do no I/O and do not switch."""


# Keyed by identity. Other threads may register at any time: copying the values of a dictionary is atomic, unlike
# iterating over a WeakSet.
_registered: dict[int, weakref.ref[Forkable]] = {}


def register_after_fork(forkable: Forkable) -> None:
    """Call ``forkable.mark_forked()`` in every forked child while `forkable` lives."""
    key = id(forkable)
    _registered[key] = weakref.ref(forkable, lambda _gone: _registered.pop(key, None))


def forkables() -> list[Forkable]:
    """Return all registered objects that are alive."""
    objects = [reference() for reference in list(_registered.values())]
    return [each for each in objects if each is not None]


_process = os.getpid()


def _begin_in_child() -> None:
    global _process
    if _process == os.getpid():  # a second call, or a call in the parent
        return
    _process = os.getpid()
    # Mark first, and without a switch: copies of the parent's greenlets run after the next switch, and must find all
    # inherited objects marked.
    for forkable in forkables():
        forkable.mark_forked()
    # gevent.os.fork() does this, but os.fork() without monkey-patching does not. The loop compares its
    # process ID only in its next iteration. Until then the child shares the epoll set with the parent. It removes a
    # socket that no greenlet of the child waits for, and the parent is never woken for this socket again.
    gevent.reinit()


def _register_with_uwsgi(uwsgi: ModuleType) -> None:
    """Register the hook with uWSGI, which forks in C and calls the hooks of Python only on demand.

    uWSGI has a single hook, which its decorators share.
    """
    try:
        import_module("uwsgidecorators").postfork(_begin_in_child)
    except ImportError:
        vars(uwsgi)["post_fork_hook"] = _begin_in_child


os.register_at_fork(after_in_child=_begin_in_child)
if "uwsgi" in sys.modules:
    _register_with_uwsgi(sys.modules["uwsgi"])
