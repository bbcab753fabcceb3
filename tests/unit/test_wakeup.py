"""What background greenlets sleep on: another thread may wake them at any moment, also while they fall asleep."""

from __future__ import annotations

import gevent
import pytest

from gmongo import _background
from gmongo._background import Wakeup


def test_a_wakeup_that_is_set_while_the_sleeper_makes_itself_known_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    wakeup = Wakeup()

    def set_by_another_thread() -> object:
        wakeup.set()  # it finds no sleeper, and so asks for no callback
        return gevent.getcurrent()

    monkeypatch.setattr(_background, "getcurrent", set_by_another_thread)
    with gevent.Timeout(5):
        assert wakeup.sleep(None)


def test_a_callback_that_comes_after_its_sleep_wakes_no_greenlet() -> None:
    wakeup = Wakeup()
    sleeper = gevent.spawn(wakeup.sleep, None)
    gevent.sleep(0)
    wakeup.set()
    wakeup.set()  # as the timer may do in the same pass
    assert sleeper.get(timeout=5)
    gevent.sleep(0)
    assert sleeper.ready()
