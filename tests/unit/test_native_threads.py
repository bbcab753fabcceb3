"""Jobs in native threads: what comes of them, and what keeps the hub running meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import gevent
import pytest
from gevent import get_hub

from gmongo import _threads
from gmongo._threads import in_a_thread
from tests.support.wait import eventually


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What jobs wait for."""
    gate = threading.Event()
    yield gate
    gate.set()
    eventually(lambda: not _threads._calls.under_way)


def active() -> int:
    """How many watchers keep the hub running."""
    return int(get_hub().loop.activecnt)


@pytest.mark.parametrize("ref", [True, False])
def test_the_outcome(ref: bool) -> None:
    thread, value = gevent.spawn(in_a_thread, lambda: (threading.get_ident(), 5), ref).get(timeout=5)
    assert value == 5
    assert thread != threading.get_ident()


def test_what_is_raised_is_returned(capfd: pytest.CaptureFixture[str]) -> None:
    error = OSError("no")

    def job() -> None:
        raise error

    assert in_a_thread(job, True) is error
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("ref", [True, False])
def test_the_wait_holds_the_hub_if_it_is_to(gate: threading.Event, ref: bool) -> None:
    before = active()
    waiting = gevent.spawn(in_a_thread, gate.wait, ref)
    gevent.sleep(0)
    assert active() - before == ref
    waiting.kill()
    assert active() == before  # nothing waits any more
    assert len(_threads._calls.under_way) == 1  # but the thread is at work


def test_a_job_that_is_given_up_ends_without_a_word(gate: threading.Event) -> None:
    waiting = gevent.spawn(in_a_thread, gate.wait, True)
    gevent.sleep(0)
    foreign = gevent.Timeout(1000)
    waiting.kill(foreign)
    assert waiting.exception is foreign
    gate.set()
    eventually(lambda: not _threads._calls.under_way)


def test_there_is_an_end_to_threads(gate: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after them queues for gevent's."""
    monkeypatch.setattr(_threads, "_MOST", 2)
    jobs = [gevent.spawn(in_a_thread, gate.wait, True) for _ in range(2)]
    gevent.sleep(0)
    assert in_a_thread(lambda: 7, False) == 7
    assert len(_threads._calls.under_way) == 2
    gate.set()
    gevent.joinall(jobs)
    assert not _threads._calls.under_way


def test_a_process_that_can_have_no_further_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    get_hub().threadpool.apply(int)  # which has a thread already
    monkeypatch.setattr(_threads, "_start_new_thread", refuse)
    before = active()
    assert in_a_thread(lambda: 7, True) == 7
    assert not _threads._calls.under_way
    assert active() == before


def test_a_child_waits_for_no_thread_of_its_parents(gate: threading.Event) -> None:
    before = active()
    waiting = gevent.spawn(in_a_thread, gate.wait, True)
    gevent.sleep(0)
    under_way = _threads._calls.under_way
    _threads._calls.mark_forked()
    assert active() == before
    assert not _threads._calls.under_way
    _threads._calls.under_way = under_way
    waiting.kill()
