"""Native threads for what would hold the loop, such as asking the C library for a host's addresses.

gevent's own pool of threads keeps the hub running until a job is done, even when nothing waits for it any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from gevent import get_hub, getcurrent, monkey
from gevent.exceptions import InvalidSwitchError

from gmongo._fork import register_after_fork

T = TypeVar("T")

_start_new_thread = monkey.get_original("_thread", "start_new_thread")
_MOST = 32


class _Call:
    """One job and the greenlet that waits for it.

    :param job: runs in the thread.
    :param ref: whether the wait keeps the hub running.
    """

    def __init__(self, job: Callable[[], object], ref: bool) -> None:
        self._job = job
        self._greenlet = getcurrent()
        self._outcome: object = None
        # Only the hub's own thread may start and close it, so it is closed when the job is done, whatever waits then.
        self._done = get_hub().loop.async_(ref=ref)
        self._done.start(self._end)

    def run(self) -> None:
        """Run the job in the thread, and return the place of the thread: the hub may have ended by then."""
        self._outcome = caught(self._job)
        _calls.under_way.discard(self)
        try:
            self._done.send()
        except Exception:  # the loop is destroyed: a ValueError of libev, an Exception of libuv
            _calls.awaited.discard(self)

    def _end(self) -> None:
        """In the hub."""
        self.close()
        if self._greenlet is not None:
            self._greenlet.switch(self)

    def close(self) -> None:
        """Close the watcher. Does not switch."""
        _calls.awaited.discard(self)
        done, self._done = self._done, None
        done.close()

    def wait(self) -> object:
        """The outcome of the job."""
        try:
            result = get_hub().switch()
            if result is not self:
                raise InvalidSwitchError(f"switched into {getcurrent()!r} with {result!r}, expected {self!r}")
        finally:
            self._greenlet = None
            self.abandon()
        return self._outcome

    def abandon(self) -> None:
        """The job may go on, but nothing waits for it any more. Does not switch."""
        if self._done is not None:
            self._done.ref = False


class _Calls:
    """The calls of this process.

    `under_way` has the calls whose threads run: jobs that do not end cannot fill the process with threads. `awaited`
    has the calls whose watchers are open.
    """

    def __init__(self) -> None:
        self.under_way: set[_Call] = set()
        self.awaited: set[_Call] = set()
        register_after_fork(self)

    def mark_forked(self) -> None:
        """Called in a forked child, which has none of its parent's threads."""
        for each in self.awaited:
            each.abandon()
        self.under_way, self.awaited = set(), set()


_calls = _Calls()


def in_a_thread(job: Callable[[], T], ref: bool) -> T | Exception:
    """Run a job in a native thread, and wait for it.

    :param job: if it makes a hub in the thread, it must destroy it.
    :param ref: whether the wait keeps the hub running. If so many jobs are under way that they have to queue for
        gevent's threads, it does in any case.
    :returns: what the job returns or raises.
    """
    call = _started(job, ref) if len(_calls.under_way) < _MOST else None
    if call is None:
        return cast("T | Exception", get_hub().threadpool.apply(caught, (job,)))
    return cast("T | Exception", call.wait())


def _started(job: Callable[[], object], ref: bool) -> _Call | None:
    """The job, under way; None if the process can have no further thread."""
    call = _Call(job, ref)
    _calls.under_way.add(call)
    _calls.awaited.add(call)
    try:
        _start_new_thread(call.run, ())
    except RuntimeError:
        _calls.under_way.discard(call)
        call.close()
        return None
    return call


def caught(job: Callable[[], T]) -> T | Exception:
    """What a job returns or raises. gevent's pool prints what is raised in its threads."""
    try:
        return job()
    except Exception as error:
        return error
