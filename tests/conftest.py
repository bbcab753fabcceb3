"""Fixtures and hooks for all tests.

The ``conftest.py`` of a folder contains the fixtures for the tests of the folder.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent.hub import Hub
from hypothesis import HealthCheck, settings

from gmongo.testing import EmbeddedDatabase, database_uri
from tests.support.clients import Client, client_factory
from tests.support.garbage import freeze_living_objects
from tests.support.recorder import Recorder
from tests.support.tiers import default_tier, tiers_of

pytest_plugins = ["gmongo.testing.pytest_plugin"]

# If the time limit of a test expires while the hub runs, this entry makes the hub raise the error of
# pytest in the test. Without this entry, the hub only logs the error, and the test continues.
Hub.SYSTEM_ERROR += (pytest.fail.Exception,)

# Folders whose tests run in virtual time, so that the speed of the machine has no effect. The
# servers of these tests run in the hub of the test.
_VIRTUAL_TIME_FOLDERS = {"auth", "cmap", "execution", "hostile", "load_balanced", "sdam", "stable_api", "telemetry"}

_failed_test_ids: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=("default", "long", "all"),
        default="default",
        help="which tests to run: default (milliseconds each), long (marked long), or all; "
        "a file on the command line runs completely",
    )
    parser.addoption(
        "--engine",
        choices=("nx", "mongod"),
        help="the engine of the embedded database; by default the server of MONGODB_URI, else mongod, else nx-27017",
    )


# Hypothesis has no deadline, because the duration of an example depends on the machine.
settings.register_profile("long", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", settings.get_profile("long"), max_examples=40)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("default" if config.getoption("--tier") == "default" else "long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the tests of the tier that ``--tier`` selects, and all tests of files that the
    command line names.
    """
    tiers = {path: tiers_of(config, path) for path in {item.path for item in items}}
    default_items = default_tier(items)
    selected: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        tier = "default" if item in default_items else "long"
        (selected if tier in tiers[item.path] else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = selected


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Disable the garbage collector while pytest collects tests, because the collected tests live until
    the end of the run.
    """
    gc.disable()
    yield
    gc.enable()


def pytest_collection_finish() -> None:
    freeze_living_objects()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed_test_ids.append(report.nodeid)


def pytest_runtest_logfinish() -> None:
    """Collect the garbage of a failed test.

    `sys.last_value`, and a cycle between the error and its traceback frames, keep clients alive.
    Without a garbage collection, the monitors of these clients run during later tests.
    """
    if _failed_test_ids:
        _failed_test_ids.clear()
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            vars(sys).pop(name, None)
        gc.collect()


@pytest.fixture(autouse=True)
def select_clock(request: pytest.FixtureRequest) -> None:
    """Run a test in virtual time if `_VIRTUAL_TIME_FOLDERS` contains its folder, unless the test has
    the marker `real_time`.
    """
    tests = Path(__file__).parent
    folders = {request.path.relative_to(tests).parts[0]} if tests in request.path.parents else set()
    if folders & _VIRTUAL_TIME_FOLDERS and request.node.get_closest_marker("real_time") is None:
        request.getfixturevalue("virtual_time")


@pytest.fixture
def collector_off() -> Iterator[None]:
    """Disable the garbage collector during a test.

    Without the collector, an object is released only when its last reference disappears.
    """
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def mongodb_uri(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the URI in MONGODB_URI. If the variable is not set, or the command line contains
    ``--engine``, yield the URI of an embedded database.
    """
    engine = request.config.getoption("--engine")
    if engine is None:
        with database_uri() as uri:
            yield uri
    else:
        with EmbeddedDatabase(engine=engine) as embedded:
            yield embedded.uri


@pytest.fixture
def recorder() -> Recorder:
    """Return a recorder of all events that clients of the fixture `connect` publish."""
    return Recorder()


@pytest.fixture
def connect(recorder: Recorder) -> Iterator[Callable[..., Client]]:
    """Yield a function that creates a client.

    The positional arguments of the function are deployments, scripted servers, host names or URIs.

    Close the created clients at the end of the test.
    """
    with client_factory(recorder) as create_client:
        yield create_client


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the minimum interval between two checks of a server from 0.5 s to 0.01 s."""
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)


@pytest.fixture
def head_start() -> float:
    """Return the number of seconds for which `start_greenlet` waits after the start of a greenlet.

    If the fixture returns 0, the new greenlet runs until its first wait.
    """
    return 0


@pytest.fixture
def start_greenlet(head_start: float) -> Iterator[Callable[..., gevent.Greenlet[..., Any]]]:
    """Yield a function that starts a greenlet and then waits for `head_start` seconds, so that the
    greenlet can run.
    """
    greenlets: list[gevent.Greenlet[..., Any]] = []

    def spawn_and_wait(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> gevent.Greenlet[..., Any]:
        greenlets.append(gevent.spawn(function, *arguments, **keywords))
        gevent.sleep(head_start)
        return greenlets[-1]

    yield spawn_and_wait
    gevent.killall(greenlets, timeout=5)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Make the driver send its DNS queries to a new name server without records.

    Yield the :class:`Network`.
    """
    from tests.support.dns import NameServer, install

    with NameServer() as name_server:
        yield install(monkeypatch.setattr, name_server)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Return the paths of PEM files with valid and invalid certificates."""
    pytest.importorskip("trustme")
    from tests.support.tls import write_certificates

    return write_certificates(tmp_path_factory.mktemp("certificates"))
