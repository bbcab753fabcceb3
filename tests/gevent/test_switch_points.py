"""Whatever is thrown into a greenlet, at whichever of its switches: nothing is lost.

Each test takes one scenario and one kind of interruption through all switches of the scenario; what is checked after
each run is in ``tests/switching/harness.py``.
"""

from __future__ import annotations

import pytest

from gmongo import background
from gmongo.sdam import monitor
from tests.switching.harness import explore
from tests.switching.scenarios import SCENARIOS
from tests.switching.thrown import KINDS, know_timeouts


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    """Nothing rests for long, and the driver's own time-outs are known."""
    know_timeouts(monkeypatch)
    monkeypatch.setattr(monitor, "MIN_HEARTBEAT_FREQUENCY", 0.002)
    monkeypatch.setattr(background, "_AFTER_INTERRUPTION", 0.002)


def kinds(*wanted):
    return pytest.mark.parametrize("kind", wanted, ids=lambda kind: f"{kind.name}-{kind.landing}".replace(" ", "-"))


def scenarios(wanted):
    return pytest.mark.parametrize("scenario", wanted, ids=lambda scenario: scenario.name.replace(" ", "-"))


@kinds(*KINDS)
@scenarios(SCENARIOS)
def test_nothing_is_lost(scenario, kind, record_property):
    switches, runs = explore(scenario, kind)
    record_property("switches", switches)
    record_property("runs", runs)


# An ordinary exception in a listener is logged and goes no further, so only the others are thrown here.
@kinds(*(kind for kind in KINDS if kind.name in ("kill", "foreign time-out", "kill and time-out")))
@scenarios([scenario for scenario in SCENARIOS if not scenario.survives])
def test_nothing_is_lost_while_listeners_yield(scenario, kind, record_property):
    """The same with listeners that switch in every event: of commands, of pools, of the topology."""
    switches, runs = explore(scenario, kind, yields=True)
    record_property("switches", switches)
    record_property("runs", runs)
