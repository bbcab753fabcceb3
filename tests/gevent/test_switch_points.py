"""Whatever is thrown into a greenlet, at whichever of its switches: nothing is lost.

Each test takes one scenario and one kind of interruption through all switches of the scenario; what is checked after
each run is in ``tests/gevent/switching/harness.py``.
"""

from __future__ import annotations

import pytest
from gevent import sleep
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from gmongo import _background
from gmongo._telemetry.settings import TelemetrySettings
from gmongo.client_options import ClientOptions
from gmongo.gridfs import grid_in
from gmongo.sdam import monitor
from tests.gevent.switching.harness import explore
from tests.gevent.switching.scenarios import SCENARIOS
from tests.gevent.switching.thrown import KILL, KILL_AND_TIMEOUT, KINDS, LATE_TIMEOUT, know_timeouts


@pytest.fixture(autouse=True)
def hurry(monkeypatch, virtual_time):
    """Nothing rests for long, and the driver's own time-outs are known."""
    know_timeouts(monkeypatch)
    monkeypatch.setattr(monitor, "MIN_HEARTBEAT_FREQUENCY", 0.002)
    monkeypatch.setattr(_background, "_AFTER_INTERRUPTION", 0.002)
    monkeypatch.setattr(grid_in, "_PAUSES", (0.0, 0.002))


def kinds(*wanted):
    return pytest.mark.parametrize("kind", wanted, ids=lambda kind: f"{kind.name}-{kind.landing}".replace(" ", "-"))


LONG = [pytest.param(kind, marks=pytest.mark.long) for kind in (LATE_TIMEOUT, KILL_AND_TIMEOUT)]


def scenarios(wanted):
    return pytest.mark.parametrize("scenario", wanted, ids=lambda scenario: scenario.name.replace(" ", "-"))


@pytest.mark.one_in(4)
@kinds(*KINDS)
@scenarios(SCENARIOS)
def test_nothing_is_lost(scenario, kind):
    switches, thrown = explore(scenario, kind)
    if kind.foreign:
        assert thrown == switches
    else:
        assert bool(thrown) == scenario.limited


# An ordinary exception in a listener is logged and goes no further, so only the others are thrown here.
@pytest.mark.one_in(2)
@kinds(KILL, *LONG)
@scenarios([scenario for scenario in SCENARIOS if not scenario.survives])
def test_nothing_is_lost_while_listeners_yield(scenario, kind):
    """The same with listeners that switch in every event: of commands, of pools, of the topology."""
    _switches, thrown = explore(scenario, kind, yields=True)
    assert thrown


class Yielding(SpanProcessor):
    """Lets others run whenever a span ends, as one does that exports at once."""

    def __init__(self):
        self.begun = 0
        self.open = set()

    def on_start(self, span, parent_context=None):
        self.begun += 1
        self.open.add(span.context.span_id)

    def on_end(self, span):
        self.open.discard(span.context.span_id)
        sleep(0)


@pytest.mark.one_in(2)
@kinds(KILL, *LONG)
@scenarios([scenario for scenario in SCENARIOS if not scenario.survives])
def test_nothing_is_lost_while_observers_yield(scenario, kind, monkeypatch):
    """The same with clients whose observers switch in every span: nothing is lost, and every span has its end."""
    spans, provider = Yielding(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(spans)
    observed = TelemetrySettings(traces=True, tracer_provider=provider, slow=60.0)
    monkeypatch.setattr(ClientOptions, "telemetry", lambda self: observed)
    _switches, thrown = explore(scenario, kind)
    assert thrown
    assert spans.begun
    assert spans.open == set()
    assert trace.get_current_span() is trace.INVALID_SPAN
