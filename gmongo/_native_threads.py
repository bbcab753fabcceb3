"""Native threads for blocking calls, such as the host look-up of the C library.

The driver starts its own threads, because gevent's thread pool keeps the event loop alive until a job ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from gevent import get_hub, getcurrent, monkey
from gevent.exceptions import InvalidSwitchError

from gmongo._fork import register_after_fork

T = TypeVar("T")

_start_new_thread = monkey.get_original("_thread", "start_new_thread")
_MAX_THREADS = 32  # maximum number of running threads


class _Job:
    """Function that a thread runs for a waiting greenlet. `ref` is True if the wait keeps the event loop alive."""

    def __init__(self, function: Callable[[], object], ref: bool) -> None:
        self._function = function
        self._greenlet = getcurrent()
        self._outcome: object = None
        # Only the thread of the hub may start and close the watcher. The hub closes the watcher when
        # the function ends, even if no greenlet waits for the function.
        self._watcher = get_hub().loop.async_(ref=ref)
        self._watcher.start(self._resume_greenlet)

    def run(self) -> None:
        """Run the function in the new thread, and wake the waiting greenlet if its hub still runs."""
        self._outcome = result_or_exception(self._function)
        _jobs.running.discard(self)
        try:
            self._watcher.send()
        except Exception:  # if the loop ended, libev raises ValueError, and libuv raises Exception
            _jobs.watched.discard(self)

    def _resume_greenlet(self) -> None:
        self.close()
        if self._greenlet is not None:
            self._greenlet.switch(self)

    def close(self) -> None:
        """Close the watcher. The method does not switch greenlets."""
        _jobs.watched.discard(self)
        watcher, self._watcher = self._watcher, None
        watcher.close()

    def wait(self) -> object:
        """Wait for the function, and return its result or exception."""
        try:
            result = get_hub().switch()
            if result is not self:
                raise InvalidSwitchError(f"switched into {getcurrent()!r} with {result!r}, expected {self!r}")
        finally:
            self._greenlet = None
            self.abandon()
        return self._outcome

    def abandon(self) -> None:
        """Let the function run, but do not keep the event loop alive. The method does not switch greenlets."""
        if self._watcher is not None:
            self._watcher.ref = False


class _Jobs:
    """Jobs of this process: `running` jobs (at most 32), and jobs with open watchers (`watched`)."""

    def __init__(self) -> None:
        self.running: set[_Job] = set()
        self.watched: set[_Job] = set()
        register_after_fork(self)

    def mark_forked(self) -> None:
        """Discard all jobs, because a forked child does not inherit the threads of its parent."""
        for each in self.watched:
            each.abandon()
        self.running, self.watched = set(), set()


_jobs = _Jobs()


def run_in_native_thread(function: Callable[[], T], ref: bool) -> T | Exception:
    """Run a function in a native thread, wait for its end, and return its result or exception.

    If the function creates a hub, the function must destroy this hub. `ref` is True if the wait keeps
    the event loop alive. If 32 jobs are running or no thread can start, gevent's thread pool runs the
    function. The thread pool always keeps the event loop alive.
    """
    job = _start_job(function, ref) if len(_jobs.running) < _MAX_THREADS else None
    if job is None:
        return cast("T | Exception", get_hub().threadpool.apply(result_or_exception, (function,)))
    return cast("T | Exception", job.wait())


def _start_job(function: Callable[[], object], ref: bool) -> _Job | None:
    """Start a function in a new thread. Return None if the process cannot start a thread."""
    job = _Job(function, ref)
    _jobs.running.add(job)
    _jobs.watched.add(job)
    try:
        _start_new_thread(job.run, ())
    except RuntimeError:
        _jobs.running.discard(job)
        job.close()
        return None
    return job


def result_or_exception(function: Callable[..., T], *arguments: object) -> T | Exception:
    """Run a function, and return its result or exception. gevent's thread pool would print a raised exception."""
    try:
        return function(*arguments)
    except Exception as error:
        return error
