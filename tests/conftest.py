"""Fixtures of all tests. Those of one subject are in the ``conftest.py`` of its folder."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import gevent
import pytest
from gevent.hub import Hub
from hypothesis import HealthCheck, settings

from gmongo.testing import EmbeddedDatabase, database_uri
from tests.support.clients import Client, clients_of
from tests.support.garbage import leave_out_what_lives
from tests.support.recorder import Recorder
from tests.support.tiers import tiers_of

pytest_plugins = ["gmongo.testing.pytest_plugin"]

# A test's time may be up while the hub runs. The hub logs errors and goes on, but throws these at the test.
Hub.SYSTEM_ERROR += (pytest.fail.Exception,)

# In these folders time is virtual: the servers run in the test's hub, so a busy machine changes nothing.
_VIRTUAL = {"auth", "cmap", "execution", "hostile", "load_balanced", "sdam", "stable_api", "telemetry"}

_failed: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=("default", "long", "all"),
        default="default",
        help="which tests to run: those of some milliseconds (default), those that are marked long, or all; "
        "a file that is named runs whole",
    )
    parser.addoption(
        "--engine",
        choices=("nx", "secantus", "mongod"),
        help="the engine of the embedded database; by default the server of MONGODB_URI, else mongod, else nx-27017",
    )


# How long an example takes is the machine's business.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each test is in one tier, and runs when that tier does or when its file is named."""
    tiers = {path: tiers_of(config, path) for path in {item.path for item in items}}
    wanted: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        tier = "long" if _is_long(item) else "default"
        (wanted if tier in tiers[item.path] else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = wanted


def _is_long(item: pytest.Item) -> bool:
    one_in = item.get_closest_marker("one_in")
    if one_in is not None and crc32(item.nodeid.encode()) % one_in.args[0]:
        return True
    return item.get_closest_marker("long") is not None


def pytest_collection_finish() -> None:
    leave_out_what_lives()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.append(report.nodeid)


def pytest_runtest_logfinish() -> None:
    """Collect what a failed test leaves. Error and frames refer to each other, and `sys` to the error: its
    clients live on, and others that look for what is left over find their monitors.
    """
    if _failed:
        _failed.clear()
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            vars(sys).pop(name, None)
        gc.collect()


@pytest.fixture(autouse=True)
def which_time(request: pytest.FixtureRequest) -> None:
    """Time is virtual in some folders, but for tests that are marked with `real_time`."""
    tests = Path(__file__).parent
    folders = {request.path.relative_to(tests).parts[0]} if tests in request.path.parents else set()
    if folders & _VIRTUAL and request.node.get_closest_marker("real_time") is None:
        request.getfixturevalue("virtual_time")


@pytest.fixture
def collector_off() -> Iterator[None]:
    """The garbage collector does not run: what is gone, went by itself."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The connection string of a real database: the server of MONGODB_URI, else of an embedded database."""
    engine = request.config.getoption("--engine")
    if engine is None:
        with database_uri() as uri:
            yield uri
    else:
        with EmbeddedDatabase(engine=engine) as embedded:
            yield embedded.uri


@pytest.fixture
def recorder() -> Recorder:
    """Hears everything of the clients of the test."""
    return Recorder()


@pytest.fixture
def connect(recorder: Recorder) -> Iterator[Callable[..., Client]]:
    """Makes clients of deployments, scripted servers or URIs, as ``tests.support.clients`` says, and ends them."""
    with clients_of(recorder) as make:
        yield make


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second is the least between two checks of a server; here it is less, so that tests need not wait."""
    monkeypatch.setattr("gmongo.sdam.monitor.MIN_HEARTBEAT_FREQUENCY", 0.01)


@pytest.fixture
def head_start() -> float:
    """For how long ``go`` lets a greenlet run before the test goes on; 0 is as far as it can without I/O."""
    return 0


@pytest.fixture
def go(head_start: float) -> Iterator[Callable[..., gevent.Greenlet[..., Any]]]:
    """Starts greenlets, and lets them run for the head start."""
    greenlets: list[gevent.Greenlet[..., Any]] = []

    def start(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> gevent.Greenlet[..., Any]:
        greenlets.append(gevent.spawn(function, *arguments, **keywords))
        gevent.sleep(head_start)
        return greenlets[-1]

    yield start
    gevent.killall(greenlets, timeout=5)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A network with a name server that has no records yet."""
    from tests.support.dns import NameServer, install

    with NameServer() as name_server:
        yield install(monkeypatch.setattr, name_server)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Paths of PEM files: certificates of every kind."""
    pytest.importorskip("trustme")
    from tests.support.tls import write_certificates

    return write_certificates(tmp_path_factory.mktemp("certificates"))
