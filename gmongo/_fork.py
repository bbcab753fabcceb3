"""Forking. A child inherits the parent's sockets, the epoll set of its loop, and its greenlets, which go on running.

The hook below runs in the child before any of them. It marks what belongs to the parent, and the topology starts afresh
when it is first used. CMAP-45, CMAP-169 to CMAP-171.
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
    """What has state that a forked child must not use."""

    def mark_forked(self) -> None:
        """Called in the child, before anything else: no I/O and no switch."""


# By identity. Other threads make clients at any time: the values of a dictionary are copied in one step, and those of a
# WeakSet are not.
_registered: dict[int, weakref.ref[Forkable]] = {}


def register_after_fork(forkable: Forkable) -> None:
    """Have ``forkable.mark_forked()`` called in every forked child, for as long as `forkable` lives."""
    key = id(forkable)
    _registered[key] = weakref.ref(forkable, lambda _gone: _registered.pop(key, None))


def forkables() -> list[Forkable]:
    """All that has been registered and lives."""
    found = [reference() for reference in list(_registered.values())]
    return [each for each in found if each is not None]


_process = os.getpid()


def _begin_in_child() -> None:
    global _process
    if _process == os.getpid():  # called twice, or in the parent
        return
    _process = os.getpid()
    # First of all, and without a switch: the copies of the parent's greenlets run from the next switch on, and have to
    # find what they use marked.
    for forkable in forkables():
        forkable.mark_forked()
    # gevent.os.fork() does this by itself, os.fork() in a program that is not monkey-patched does not. The loop
    # compares its process ID only when its next iteration begins. Until then it shares the epoll set with the parent,
    # and takes out of it a socket that nothing in the child waits for: the parent is never woken for it again.
    gevent.reinit()


def _register_with_uwsgi(uwsgi: ModuleType) -> None:
    """uWSGI forks in C, and calls Python's hooks only on demand. It has one hook of its own, which its
    decorators share out.
    """
    try:
        import_module("uwsgidecorators").postfork(_begin_in_child)
    except ImportError:
        vars(uwsgi)["post_fork_hook"] = _begin_in_child


os.register_at_fork(after_in_child=_begin_in_child)
if "uwsgi" in sys.modules:
    _register_with_uwsgi(sys.modules["uwsgi"])
