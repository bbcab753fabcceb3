"""uWSGI with its gevent loop: it forks in C, executes itself again to reload, and stops when its requests are done.

uWSGI is no dependency of the tests, since pip has to compile it, which takes a minute. ``pip install uwsgi`` does so;
its gevent loop is always part of it.
"""

from __future__ import annotations

import itertools
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gmongo.testing import Deployment
from tests.support.wait import until

from .hosting import Load, assert_ends_with_requests_under_way, connections, get, hosted, owners

UWSGI = shutil.which("uwsgi") or shutil.which("uwsgi", path=str(Path(sys.executable).parent))
SERVER = ("--master", "--processes", "2", "--gevent", "100", "--home", sys.prefix, "--disable-logging")
GENTLE_END = ("--hook-master-start", "unix_signal:15 gracefully_kill_them_all")
APPLICATION = ("--module", "tests.apps.application:application")


def says(option: str) -> str:
    assert UWSGI is not None
    return subprocess.run([UWSGI, option], capture_output=True, text=True).stdout


def lacking() -> str:
    """Why the tests cannot run here; empty if they can."""
    if not Path("/proc/net/tcp").exists():
        return "nothing tells here whose a connection is"
    if UWSGI is None:
        return "there is no uwsgi"
    if not says("--python-version").startswith("{}.{}.".format(*sys.version_info)):
        return "uwsgi has another version of Python"
    return "" if "--gevent " in says("--help") else "uwsgi was built without gevent"


LACKING = lacking()
pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(LACKING), reason=LACKING)]


@pytest.fixture
def deployment():
    with Deployment.replica_set(members=1) as deployment:
        yield deployment


@pytest.fixture
def port():
    """It must have a number of its own: uWSGI does not find a port again that it was given by the system."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def uwsgi(deployment, tmp_path, port):
    """Starts uWSGI with these options."""

    def start(*options, **environment):
        listen = ("--http-socket", f"127.0.0.1:{port}")
        arguments = (*SERVER, *GENTLE_END, *listen, *APPLICATION, *options)
        return hosted(deployment, tmp_path / "log", *arguments, program=(UWSGI,), **environment)

    return start


def workers(host):
    """Those that were started, the dead included."""
    return {int(each) for each in host.said(r"spawned uWSGI worker \d+ \(pid: (\d+)")}


def both(host, others=frozenset()):
    """The two workers that were started last; False until then."""
    found = workers(host) - others
    return len(found) == 2 and found


def assert_each_connection_is_of_one(deployment, host, living):
    """Every connection at the server is that of one process, which lives, and each worker has some."""
    processes = {host.process.pid, *workers(host)}
    until(lambda: all(len(each) == 1 for each in owners(deployment, processes)))
    assert set.union(*owners(deployment, processes)) - {host.process.pid} == living


def trouble(host):
    return [line for line in host.trouble if "running uWSGI as root" not in line]


# Python's own hooks are what a driver learns of a fork by; uWSGI calls them only if it is told to.
FORKS = {
    "a client that has not been used": ((), "request"),
    "a client that has been used": (("--py-call-uwsgi-fork-hooks",), "import"),
    "used, and only the child is told": (("--py-call-osafterfork",), "import"),
    "a client of the worker's own": (("--lazy-apps",), "import"),
}


@pytest.mark.parametrize("fork", FORKS.values(), ids=[each.replace(" ", "-") for each in FORKS])
def test_reload_under_load(uwsgi, deployment, port, fork):
    options, use = fork
    with uwsgi(*options, HOSTED_USE=use) as host:
        with Load(port) as load:
            before = until(lambda: both(host))
            until(lambda: before <= set(load.answered_by))  # a worker that is only just starting hears no signal
            assert_each_connection_is_of_one(deployment, host, before)
            host.signal(signal.SIGHUP)
            after = until(lambda: both(host, before))
            until(lambda: after <= set(load.answered_by))
        assert_each_connection_is_of_one(deployment, host, after)
        assert host.end() == 0
        until(lambda: not connections(deployment))
        assert trouble(host) == []


def test_used_before_a_fork_that_no_hook_hears_of(uwsgi, deployment, port):
    with uwsgi(HOSTED_USE="import") as host:
        started, answered, names = until(lambda: both(host)), set(), itertools.count()
        while not started <= answered:
            answered.add(get(port, f"note-{next(names)}")[0])
        processes = {host.process.pid, *started}
        assert [each for each in owners(deployment, processes) if len(each) > 1] == []


def test_requests_under_way_are_answered_before_the_end(uwsgi, deployment, port):
    with uwsgi() as host:
        with Load(port) as load:
            until(lambda: both(host) and both(host) <= set(load.answered_by))
        assert_ends_with_requests_under_way(deployment, host, port)
        assert trouble(host) == []
