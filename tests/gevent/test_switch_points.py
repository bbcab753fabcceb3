"""Tests that the driver loses no resource, reply, event or document if a greenlet is interrupted.

Most tests run a scenario repeatedly, and interrupt the greenlet at a different switch in each run.
``tests/gevent/switching/checks.py`` contains the checks after each run.
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
from tests.gevent.switching.harness import MAX_SWITCHES, explore
from tests.gevent.switching.interruptions import (
    INTERRUPTION_KINDS,
    KILL,
    KILL_AND_TIMEOUT,
    KILL_AT_SPAWN,
    LATE_TIMEOUT,
    SECOND_GREENLET,
    track_timeouts,
)
from tests.gevent.switching.operations import OPERATIONS, ROW_GROUPS
from tests.gevent.switching.public_members import EXEMPT_MEMBERS, PUBLIC_CLASSES
from tests.gevent.switching.scenarios import SCENARIOS
from tests.gevent.switching.servers import RealDeployment
from tests.gevent.switching.shared_objects import SHARED_OBJECTS
from tests.support import wait


@pytest.fixture(scope="module")
def real_deployment(request):
    """Return a real server if the command line has the option ``--mongodb-members``, and None
    otherwise.
    """
    if not request.config.getoption("--mongodb-members"):
        return None
    return RealDeployment(request.getfixturevalue("mongodb_server").uri)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch, request, real_deployment):
    """Shorten the waits of the driver, and let the harness track the driver's timeouts and
    greenlets.
    """
    if real_deployment is None:
        request.getfixturevalue("virtual_time")
    else:
        monkeypatch.setattr(wait, "max_wait_count", 20_000)
    track_timeouts(monkeypatch)
    monkeypatch.setattr(monitor, "MIN_HEARTBEAT_FREQUENCY", 0.002)
    monkeypatch.setattr(_background, "_PAUSE_AFTER_EXCEPTION", 0.002)
    # After an interruption, a real server may still execute the sent command. The driver must
    # therefore repeat its cleanup later.
    monkeypatch.setattr(grid_in, "_PAUSES", (0.0, 0.002) if real_deployment is None else (0.0, 0.002, 0.1, 2.0))
    monkeypatch.setattr(
        session_reaper, "_DELAYS", (0.002, 0.02, 0.2) if real_deployment is None else (0.002, 0.02, 0.2, 2.0)
    )


def with_kinds(*selected):
    return pytest.mark.parametrize("kind", selected, ids=lambda kind: f"{kind.name}-{kind.moment}".replace(" ", "-"))


# The kinds of interruption that throw exactly one error, which is an error of the application.
SINGLE_ERROR_KINDS = [
    kind
    for kind in INTERRUPTION_KINDS
    if kind.is_from_application and kind.error_factories is not None and len(kind.error_factories) == 1
]
LONG_KINDS = [pytest.param(kind, marks=pytest.mark.long) for kind in (LATE_TIMEOUT, KILL_AND_TIMEOUT)]


def with_scenarios(selected):
    return pytest.mark.parametrize("scenario", selected, ids=lambda scenario: scenario.name.replace(" ", "-"))


def explore_scenario(scenario, kind, real_deployment, listeners_switch=False):
    if real_deployment is not None and not scenario.can_use_real_server:
        pytest.skip("the scenario needs a simulated deployment")
    if real_deployment is not None and real_deployment.version < scenario.min_server_version:
        pytest.skip("the server is MongoDB {}.{}, and lacks the command".format(*real_deployment.version))
    return explore(scenario, kind, listeners_switch, real_deployment)


@pytest.mark.one_in(100)
@with_scenarios(OPERATIONS)
def test_interruption_of_public_operation_at_any_switch_loses_nothing(scenario, real_deployment):
    for kind in SINGLE_ERROR_KINDS:
        switch_count, thrown_count = explore_scenario(scenario, kind, real_deployment)
        # After its last switch, the greenlet may end before the harness throws the error.
        assert switch_count - thrown_count in (0, 1)


@pytest.mark.one_in(40)
@with_scenarios(SHARED_OBJECTS)
def test_concurrent_call_waits_or_raises_invalid_operation(scenario, real_deployment):
    explore_scenario(scenario, SECOND_GREENLET, real_deployment)


@pytest.mark.one_in(40)
# The test omits scenarios that limit the number of switches, such as the scenarios of monitors.
@with_scenarios([scenario for scenario in SCENARIOS if scenario.max_switches == MAX_SWITCHES])
def test_kill_of_new_driver_greenlet_loses_nothing(scenario, real_deployment):
    switch_count, thrown_count = explore_scenario(scenario, KILL_AT_SPAWN, real_deployment)
    assert thrown_count == switch_count


@pytest.mark.one_in(50)
@with_kinds(*INTERRUPTION_KINDS)
@with_scenarios(SCENARIOS)
def test_interruption_at_any_switch_loses_nothing(scenario, kind, real_deployment):
    switch_count, thrown_count = explore_scenario(scenario, kind, real_deployment)
    if kind.is_from_application:
        assert thrown_count == switch_count
    else:
        assert bool(thrown_count) == scenario.has_time_limit


# The driver catches and logs an Exception that is thrown in a listener. The next two tests therefore
# throw only errors that are no Exceptions.
@pytest.mark.one_in(40)
@with_kinds(KILL, *LONG_KINDS)
@with_scenarios([scenario for scenario in SCENARIOS if not scenario.interrupts_driver])
def test_interruption_loses_nothing_with_switching_listeners(scenario, kind, real_deployment):
    """Use a listener that switches to the hub in each command, pool and heartbeat event."""
    _switch_count, thrown_count = explore_scenario(scenario, kind, real_deployment, listeners_switch=True)
    assert thrown_count


class SwitchingProcessor(SpanProcessor):
    """Span processor that switches to the hub at the end of each span."""

    def __init__(self):
        self.span_count = 0
        self.open_spans = set()

    def on_start(self, span, parent_context=None):
        self.span_count += 1
        self.open_spans.add(span.context.span_id)

    def on_end(self, span):
        self.open_spans.discard(span.context.span_id)
        sleep(0)


@pytest.mark.one_in(12)
@with_kinds(KILL, *LONG_KINDS)
@with_scenarios([scenario for scenario in SCENARIOS if not scenario.interrupts_driver])
def test_interruption_loses_nothing_with_switching_span_processor(scenario, kind, monkeypatch, real_deployment):
    """Check that the driver ends each started span, even if a greenlet is interrupted."""
    processor, tracer_provider = SwitchingProcessor(), TracerProvider(shutdown_on_exit=False)
    tracer_provider.add_span_processor(processor)
    telemetry = TelemetrySettings(tracing_enabled=True, tracer_provider=tracer_provider, slow_limit=60.0)
    monkeypatch.setattr(ClientOptions, "telemetry", lambda self: telemetry)
    _switch_count, thrown_count = explore_scenario(scenario, kind, real_deployment)
    assert thrown_count
    assert processor.span_count
    assert processor.open_spans == set()
    assert trace.get_current_span() is trace.INVALID_SPAN


def public_names(class_):
    special_names = {"__next__", "__getitem__", "__exit__"}
    return {name for name in dir(class_) if name in special_names or not name.startswith("_")} - set(dir(object))


def names_with_scenario(class_):
    """Return the names of the public members of a class that have a scenario.

    If two classes share a member, a scenario of one class counts for both classes.
    """
    names = set()
    for group, rows in ROW_GROUPS.items():
        other_class = PUBLIC_CLASSES.get(group)
        names |= {
            name
            for name in rows
            if getattr(class_, name, None) is not None and getattr(class_, name, 1) is getattr(other_class, name, 2)
        }
    return names


@pytest.mark.parametrize("name", PUBLIC_CLASSES)
def test_each_public_operation_has_scenario_or_exemption(name):
    class_ = PUBLIC_CLASSES[name]
    exempt_names = [each for names in EXEMPT_MEMBERS[name].values() for each in names.split()]
    assert len(exempt_names) == len(set(exempt_names))
    assert public_names(class_) == names_with_scenario(class_) | set(exempt_names)
    assert not names_with_scenario(class_) & set(exempt_names)
