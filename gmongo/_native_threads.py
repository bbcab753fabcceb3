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


class _Call:
    """Job of one thread, and the greenlet that waits for the job. `ref` is True if the wait keeps the loop alive."""

    def __init__(self, job: Callable[[], object], ref: bool) -> None:
        self._job = job
        self._greenlet = getcurrent()
        self._outcome: object = None
        # Only the thread of the hub may start and close the watcher. The hub closes the watcher when the job ends, even
        # if no greenlet waits for the job.
        self._done = get_hub().loop.async_(ref=ref)
        self._done.start(self._resume_greenlet)

    def run(self) -> None:
        """Run the job in the new thread, and wake the waiting greenlet if its hub still runs."""
        self._outcome = result_or_exception(self._job)
        _calls.running.discard(self)
        try:
            self._done.send()
        except Exception:  # the loop is destroyed: a ValueError of libev, an Exception of libuv
            _calls.awaited.discard(self)

    def _resume_greenlet(self) -> None:
        self.close()
        if self._greenlet is not None:
            self._greenlet.switch(self)

    def close(self) -> None:
        """Close the watcher. The method does not switch greenlets."""
        _calls.awaited.discard(self)
        done, self._done = self._done, None
        done.close()

    def wait(self) -> object:
        """Wait for the job, and return its result or exception."""
        try:
            result = get_hub().switch()
            if result is not self:
                raise InvalidSwitchError(f"switched into {getcurrent()!r} with {result!r}, expected {self!r}")
        finally:
            self._greenlet = None
            self.abandon()
        return self._outcome

    def abandon(self) -> None:
        """Let the job run, but do not keep the event loop alive. The method does not switch greenlets."""
        if self._done is not None:
            self._done.ref = False


class _Calls:
    """Jobs of this process: jobs of `running` threads, at most 32, and jobs with open watchers (`awaited`)."""

    def __init__(self) -> None:
        self.running: set[_Call] = set()
        self.awaited: set[_Call] = set()
        register_after_fork(self)

    def mark_forked(self) -> None:
        """Discard all jobs, because a forked child does not inherit the threads of its parent."""
        for each in self.awaited:
            each.abandon()
        self.running, self.awaited = set(), set()


_calls = _Calls()


def run_in_native_thread(job: Callable[[], T], ref: bool) -> T | Exception:
    """Run a job in a native thread, and wait for its result or exception.

    While 32 jobs are running, a further job uses gevent's thread pool.

    :param job: the function that the thread runs. The function must destroy a hub that it creates.
    :param ref: True if the wait keeps the event loop alive. gevent's thread pool always keeps the event loop alive.
    """
    call = _start_call(job, ref) if len(_calls.running) < _MAX_THREADS else None
    if call is None:
        return cast("T | Exception", get_hub().threadpool.apply(result_or_exception, (job,)))
    return cast("T | Exception", call.wait())


def _start_call(job: Callable[[], object], ref: bool) -> _Call | None:
    """Start the job in a new thread. Return None if the process cannot start another thread."""
    call = _Call(job, ref)
    _calls.running.add(call)
    _calls.awaited.add(call)
    try:
        _start_new_thread(call.run, ())
    except RuntimeError:
        _calls.running.discard(call)
        call.close()
        return None
    return call


def result_or_exception(job: Callable[..., T], *arguments: object) -> T | Exception:
    """Run a job, and return its result or exception. gevent's thread pool would print a raised exception."""
    try:
        return job(*arguments)
    except Exception as error:
        return error
