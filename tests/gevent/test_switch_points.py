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
from gmongo.engines import session_reaper
from gmongo.gridfs import grid_in
from gmongo.sdam import monitor
from tests.gevent.switching.harness import MOST_POINTS, explore
from tests.gevent.switching.operations import GROUPS, OPERATIONS
from tests.gevent.switching.public import CLASSES, EXEMPT
from tests.gevent.switching.scenarios import SCENARIOS
from tests.gevent.switching.servers import RealDeployment
from tests.gevent.switching.sharing import SHARED
from tests.gevent.switching.thrown import KILL, KILL_AND_TIMEOUT, KINDS, LATE_TIMEOUT, SECOND, UNBORN, know_timeouts
from tests.support import wait


@pytest.fixture(scope="module")
def real(request):
    """The real server, with the option ``--mongodb-members``; None on simulated deployments."""
    if not request.config.getoption("--mongodb-members"):
        return None
    return RealDeployment(request.getfixturevalue("mongodb_server").uri)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch, request, real):
    """Shorten the waits of the driver, and follow its timeouts and its greenlets."""
    if real is None:
        request.getfixturevalue("virtual_time")
    else:
        monkeypatch.setattr(wait, "turns", 20_000)
    know_timeouts(monkeypatch)
    monkeypatch.setattr(monitor, "MIN_HEARTBEAT_FREQUENCY", 0.002)
    monkeypatch.setattr(_background, "_AFTER_INTERRUPTION", 0.002)
    # A real server may execute an interrupted command some time later.
    monkeypatch.setattr(grid_in, "_PAUSES", (0.0, 0.002) if real is None else (0.0, 0.002, 0.1, 2.0))
    monkeypatch.setattr(session_reaper, "_DELAYS", (0.002, 0.02, 0.2) if real is None else (0.002, 0.02, 0.2, 2.0))


def kinds(*wanted):
    return pytest.mark.parametrize("kind", wanted, ids=lambda kind: f"{kind.name}-{kind.landing}".replace(" ", "-"))


# The three kinds that each switch of a public operation meets, and each of them in the instant of waking.
THROWN = [kind for kind in KINDS if kind.foreign and kind.makes is not None and len(kind.makes) == 1]
LONG = [pytest.param(kind, marks=pytest.mark.long) for kind in (LATE_TIMEOUT, KILL_AND_TIMEOUT)]


def scenarios(wanted):
    return pytest.mark.parametrize("scenario", wanted, ids=lambda scenario: scenario.name.replace(" ", "-"))


def explored(scenario, kind, real, yields=False):
    if real is not None and not scenario.is_real:
        pytest.skip("the scenario needs a simulated deployment")
    if real is not None and real.version < scenario.oldest_server:
        pytest.skip("the server is MongoDB {}.{}, and lacks the command".format(*real.version))
    return explore(scenario, kind, yields, real)


@pytest.mark.one_in(24)
@scenarios(OPERATIONS)
def test_public_operation_loses_nothing_at_any_switch(scenario, real):
    for kind in THROWN:
        switches, thrown = explored(scenario, kind, real)
        # The last switch may be one of a callback, after which the greenlet ends before the harness throws.
        assert switches - thrown in (0, 1)


@pytest.mark.one_in(16)
@scenarios(SHARED)
def test_second_greenlet_waits_or_is_refused_at_any_switch(scenario, real):
    explored(scenario, SECOND, real)


@pytest.mark.one_in(16)
@scenarios([scenario for scenario in SCENARIOS if scenario.most_points == MOST_POINTS])  # the others follow a monitor
def test_kill_of_a_new_greenlet_loses_nothing(scenario, real):
    switches, thrown = explored(scenario, UNBORN, real)
    assert thrown == switches


@pytest.mark.one_in(6)
@kinds(*KINDS)
@scenarios(SCENARIOS)
def test_nothing_is_lost(scenario, kind, real):
    switches, thrown = explored(scenario, kind, real)
    if kind.foreign:
        assert thrown == switches
    else:
        assert bool(thrown) == scenario.limited


# An ordinary exception in a listener is logged and goes no further, so only the others are thrown here.
@pytest.mark.one_in(3)
@kinds(KILL, *LONG)
@scenarios([scenario for scenario in SCENARIOS if not scenario.survives])
def test_nothing_is_lost_while_listeners_yield(scenario, kind, real):
    """The same with listeners that switch in every event: of commands, of pools, of the topology."""
    _switches, thrown = explored(scenario, kind, real, yields=True)
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


@pytest.mark.one_in(3)
@kinds(KILL, *LONG)
@scenarios([scenario for scenario in SCENARIOS if not scenario.survives])
def test_nothing_is_lost_while_observers_yield(scenario, kind, monkeypatch, real):
    """The same with clients whose observers switch in every span: nothing is lost, and every span has its end."""
    spans, provider = Yielding(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(spans)
    observed = TelemetrySettings(traces=True, tracer_provider=provider, slow=60.0)
    monkeypatch.setattr(ClientOptions, "telemetry", lambda self: observed)
    _switches, thrown = explored(scenario, kind, real)
    assert thrown
    assert spans.begun
    assert spans.open == set()
    assert trace.get_current_span() is trace.INVALID_SPAN


def public_names(kind):
    iteration = {"__next__", "__getitem__", "__exit__"}
    return {name for name in dir(kind) if name in iteration or not name.startswith("_")} - set(dir(object))


def covered(kind):
    """The public names of a class that have a scenario, perhaps under the name of a class with the same code."""
    names = set()
    for group, rows in GROUPS.items():
        other = CLASSES.get(group)
        names |= {
            name
            for name in rows
            if getattr(kind, name, None) is not None and getattr(kind, name, 1) is getattr(other, name, 2)
        }
    return names


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_operation_has_a_scenario_or_a_reason_for_none(name):
    kind = CLASSES[name]
    exempt = [each for names in EXEMPT[name].values() for each in names.split()]
    assert len(exempt) == len(set(exempt))
    assert public_names(kind) == covered(kind) | set(exempt)
    assert not covered(kind) & set(exempt)
