"""Jobs in native threads return their results. A job keeps the event loop alive if `ref` is True."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import gevent
import pytest
from gevent import get_hub, monkey
from gevent.exceptions import InvalidSwitchError

from gmongo import _native_threads
from gmongo._native_threads import run_in_native_thread
from tests.support.wait import eventually

_NativeThread = monkey.get_original("threading", "Thread")


@pytest.fixture(autouse=True)
def gate() -> Iterator[threading.Event]:
    for jobs in (_native_threads._jobs.running, _native_threads._jobs.watched):
        jobs.clear()  # slow name lookups of earlier tests may still run
    gate = threading.Event()
    yield gate
    gate.set()
    eventually(lambda: not _native_threads._jobs.running)


def count_active_watchers() -> int:
    """Return the number of watchers that keep the event loop alive."""
    return int(get_hub().loop.activecnt)


@pytest.mark.parametrize("ref", [True, False])
def test_job_runs_in_other_thread_and_returns_result(ref: bool) -> None:
    thread, value = gevent.spawn(run_in_native_thread, lambda: (threading.get_ident(), 5), ref).get(timeout=5)
    assert value == 5
    assert thread != threading.get_ident()


def test_run_in_native_thread_returns_exception_of_job(capfd: pytest.CaptureFixture[str]) -> None:
    error = OSError("no")

    def job() -> None:
        raise error

    assert run_in_native_thread(job, True) is error
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ref", [True, False])
def test_waiting_job_keeps_event_loop_alive_only_with_ref(gate: threading.Event, ref: bool) -> None:
    watcher_count = count_active_watchers()
    waiter = gevent.spawn(run_in_native_thread, gate.wait, ref)
    gevent.sleep(0)
    assert count_active_watchers() - watcher_count == ref
    waiter.kill()
    assert count_active_watchers() == watcher_count
    assert len(_native_threads._jobs.running) == 1  # the native thread still runs the job


def test_abandoned_job_ends_without_error(gate: threading.Event) -> None:
    waiter = gevent.spawn(run_in_native_thread, gate.wait, True)
    gevent.sleep(0)
    timeout = gevent.Timeout(1000)
    waiter.kill(timeout)
    assert waiter.exception is timeout
    gate.set()
    eventually(lambda: not _native_threads._jobs.running)


def test_job_above_thread_limit_uses_thread_pool_of_gevent(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native_threads, "_MAX_THREADS", 2)
    jobs = [gevent.spawn(run_in_native_thread, gate.wait, True) for _ in range(2)]
    gevent.sleep(0)
    assert run_in_native_thread(lambda: 7, False) == 7
    assert len(_native_threads._jobs.running) == 2
    gate.set()
    gevent.joinall(jobs)
    assert not _native_threads._jobs.running and not _native_threads._jobs.watched


def test_job_uses_thread_pool_if_thread_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_error(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    # Let the thread pool of gevent start a thread before the test prevents new threads.
    get_hub().threadpool.apply(int)
    monkeypatch.setattr(_native_threads, "_start_new_thread", raise_error)
    watcher_count = count_active_watchers()
    assert run_in_native_thread(lambda: 7, True) == 7
    assert not _native_threads._jobs.running
    assert count_active_watchers() == watcher_count


def test_forked_child_does_not_wait_for_threads_of_parent(gate: threading.Event) -> None:
    watcher_count = count_active_watchers()
    waiters = [gevent.spawn(run_in_native_thread, gate.wait, True) for _ in range(2)]
    gevent.sleep(0)
    jobs = _native_threads._jobs
    running = jobs.running
    jobs.mark_forked()
    assert count_active_watchers() == watcher_count
    assert not jobs.running and not jobs.watched
    jobs.running = running
    gevent.killall(waiters)


@pytest.mark.parametrize("hub_is_destroyed", [True, False])
def test_job_of_ended_hub_is_removed_from_running_jobs(
    gate: threading.Event, hub_is_destroyed: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    def start_job_and_end_thread() -> None:
        gevent.spawn(run_in_native_thread, gate.wait, False)
        gevent.sleep(0)
        if hub_is_destroyed:
            get_hub().destroy(destroy_loop=True)

    thread = _NativeThread(target=start_job_and_end_thread)
    thread.start()
    thread.join()
    assert len(_native_threads._jobs.running) == 1
    gate.set()
    eventually(lambda: not _native_threads._jobs.running)
    eventually(lambda: not (hub_is_destroyed and _native_threads._jobs.watched))
    assert capfd.readouterr().err == ""


def test_switch_by_other_greenlet_to_waiting_greenlet_raises_invalid_switch(gate: threading.Event) -> None:
    waiter = gevent.spawn(run_in_native_thread, gate.wait, True)
    gevent.sleep(0)
    gevent.spawn(waiter.switch, "something else")
    message = r"switched into <Greenlet .* with 'something else', expected <.*_Job"
    with pytest.raises(InvalidSwitchError, match=message):
        waiter.get(timeout=5)
