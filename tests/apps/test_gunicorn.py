"""gunicorn with gevent workers: it forks, reloads, replaces and kills workers while requests come in."""

from __future__ import annotations

import signal
from pathlib import Path

import gevent
import pytest

from gmongo.testing import Deployment
from tests.support.wait import until

from .hosting import Load, assert_ends_with_requests_under_way, connections, get, hosted, owners

pytest.importorskip("gunicorn")
pytest.importorskip("packaging", reason="gunicorn's gevent worker needs it")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="nothing tells here which process has a connection"),
]

COMMAND = ("-m", "gunicorn", "-k", "gevent", "-b", "127.0.0.1:0", "--graceful-timeout", "5")
SETTINGS = ("-c", str(Path(__file__).with_name("gunicorn_settings.py")))
APPLICATION = "tests.apps.application:application"


@pytest.fixture
def deployment():
    with Deployment.replica_set(members=1) as deployment:
        yield deployment


@pytest.fixture
def gunicorn(deployment, tmp_path):
    """Starts gunicorn with these options."""

    def start(*options, **environment):
        return hosted(deployment, tmp_path / "log", *COMMAND, *SETTINGS, *options, APPLICATION, **environment)

    return start


def alive(processes):
    return {each for each in processes if Path(f"/proc/{each}").exists()}


def workers(host):
    """Those that were started, the dead included."""
    return {int(each) for each in host.said(r"Booting worker with pid: (\d+)")}


def belong_to_the_living(deployment, host):
    """Every connection at the server is that of one worker that lives, and of no other; each worker has some."""
    found = owners(deployment, {host.process.pid, *workers(host)})
    return {frozenset(each) for each in found} == {frozenset({each}) for each in alive(workers(host))}


def assert_ends_well(deployment, host):
    """It is told to end when both workers are up: gunicorn tells each of them once, and one that is only just being
    forked does not hear it, so that gunicorn would kill it after the whole grace period."""
    until(lambda: len(alive(workers(host))) == 2 and belong_to_the_living(deployment, host))
    assert host.end() == 0
    until(lambda: not connections(deployment))


def test_reload_under_load(gunicorn, deployment):
    with gunicorn("-w", "2") as host:
        with Load(host.port()) as load:
            before = set(until(load.lately)) | workers(host)
            host.signal(signal.SIGHUP)
            until(lambda: load.lately() and not load.lately() & before)
            until(lambda: not alive(before))
        assert_ends_well(deployment, host)
        assert len(workers(host)) == 4
        assert host.trouble == []


def test_workers_replaced_after_some_requests(gunicorn, deployment):
    """A worker answers 30 to 40 requests at least, then ends, and another one comes."""
    with gunicorn("-w", "2", "--max-requests", "30", "--max-requests-jitter", "10") as host:
        with Load(host.port()) as load:
            until(lambda: len(set(load.answered_by)) >= 5)
        retired = len(host.said("(Autorestarting worker)"))
        until(lambda: len(workers(host)) == 2 + retired and len(alive(workers(host))) == 2)
        assert_ends_well(deployment, host)
        assert retired >= 3
        assert load.dropped == []
        assert host.trouble == []


@pytest.mark.parametrize("use", ["request", "import"])
def test_preloaded_application(gunicorn, deployment, use):
    """The client is made, and perhaps used, in the process that forks the workers, and works in each of them."""
    with gunicorn("-w", "2", "--preload", HOSTED_USE=use) as host:
        master = host.process.pid
        with Load(host.port()) as load:
            until(lambda: len(set(load.answered_by)) == 2)
            assert master not in load.answered_by
        processes = {master, *workers(host)}
        until(lambda: all(len(each) == 1 for each in owners(deployment, processes)))
        assert set.union(*owners(deployment, processes)) - {master} == workers(host)
        assert host.end() == 0
        until(lambda: not connections(deployment))
        assert host.trouble == []


def test_worker_that_holds_its_loop_is_replaced(gunicorn, deployment):
    with gunicorn("-w", "2", "--timeout", "3") as host:
        port = host.port()
        with Load(port) as load:
            until(load.lately)
            holding = gevent.spawn(get, port, "hold")
            killed = int(until(lambda: host.said(r"WORKER TIMEOUT \(pid:(\d+)\)"))[0])
            holding.kill()
            until(lambda: not alive({killed}))
            until(lambda: len(alive(workers(host))) == 2)
            until(lambda: load.lately() and killed not in load.lately())
        assert_ends_well(deployment, host)
        assert not [line for line in host.trouble if "Warning" in line or "gmongo" in line]


def test_requests_under_way_are_answered_before_the_end(gunicorn, deployment):
    with gunicorn("-w", "1") as host:
        port = host.port()
        get(port, "first")
        assert_ends_with_requests_under_way(deployment, host, port)
        assert host.trouble == []
