"""Actions after a fork, in which a child process inherits sockets, the event loop and greenlets.

In the child, the function `_mark_inherited_objects` runs before any inherited greenlet runs. The
first use of a topology in the child starts new monitors and pools (CMAP-45, CMAP-169 to CMAP-171).
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
        """Mark the state as inherited. This method must neither do I/O nor switch greenlets."""


# The keys are the `id` of the objects. Any thread may register an object at any time.
_references: dict[int, weakref.ref[Forkable]] = {}


def register_after_fork(forkable: Forkable) -> None:
    """Register a weak reference to `forkable`, whose `mark_forked` runs in each forked child."""
    key = id(forkable)
    _references[key] = weakref.ref(forkable, lambda _gone: _references.pop(key, None))


def list_forkables() -> list[Forkable]:
    return [each for reference in list(_references.values()) if (each := reference()) is not None]


_process_id = os.getpid()


def _mark_inherited_objects() -> None:
    global _process_id
    if _process_id == os.getpid():  # the hook has already run in this process, or this process is the parent
        return
    _process_id = os.getpid()
    # Mark all objects before the first switch, after which inherited greenlets may use these objects.
    for forkable in list_forkables():
        forkable.mark_forked()
    # gevent.os.fork() calls reinit, but os.fork() does not. Without reinit, the child shares the epoll set with the
    # parent. The child would remove sockets from the epoll set, and the parent would not notice data on these sockets.
    gevent.reinit()


def _register_with_uwsgi(uwsgi: ModuleType) -> None:
    """Register the hook with uWSGI, which forks in C, and calls only ``uwsgi.post_fork_hook`` in each child."""
    try:
        import_module("uwsgidecorators").postfork(_mark_inherited_objects)
    except ImportError:
        vars(uwsgi)["post_fork_hook"] = _mark_inherited_objects


os.register_at_fork(after_in_child=_mark_inherited_objects)
if "uwsgi" in sys.modules:
    _register_with_uwsgi(sys.modules["uwsgi"])
