"""`Wakeup` ends the sleep of a background greenlet. Another native thread may set a wakeup at any moment."""

from __future__ import annotations

import gevent
import pytest

from gmongo import _background
from gmongo._background import Wakeup


def test_wakeup_set_during_registration_of_sleeper_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    wakeup = Wakeup()

    def set_by_another_thread() -> object:
        wakeup.set()  # requests no callback of the event loop, because no greenlet sleeps yet
        return gevent.getcurrent()

    monkeypatch.setattr(_background, "getcurrent", set_by_another_thread)
    with gevent.Timeout(5):
        assert wakeup.sleep(None)


def test_wakeup_callback_after_end_of_sleep_wakes_no_greenlet() -> None:
    wakeup = Wakeup()
    sleeper = gevent.spawn(wakeup.sleep, None)
    gevent.sleep(0)
    wakeup.set()
    wakeup.set()  # requests a second callback, which may run after the end of the sleep
    assert sleeper.get(timeout=5)
    gevent.sleep(0)
    assert sleeper.ready()
