"""uWSGI with its gevent loop runs an application that uses a client.

uWSGI calls ``fork`` from C code, so Python's fork hooks run only with an option of uWSGI. At a
reload, uWSGI calls ``exec``, which replaces the program in the process.

uWSGI is no dependency of the tests, because pip needs a minute to compile uWSGI. ``pip install
uwsgi`` installs uWSGI with the gevent loop.
"""

from __future__ import annotations

import itertools
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wait import until

from .hosting import (
    Load,
    assert_pending_requests_are_answered_at_end,
    free_port,
    hosted,
    open_connections,
    owners_of_connections,
    request_document,
)

UWSGI = shutil.which("uwsgi") or shutil.which("uwsgi", path=str(Path(sys.executable).parent))
SERVER_OPTIONS = ("--master", "--processes", "2", "--gevent", "100", "--home", sys.prefix, "--disable-logging")
GRACEFUL_STOP_OPTIONS = ("--hook-master-start", "unix_signal:15 gracefully_kill_them_all")
APPLICATION_OPTIONS = ("--module", "tests.apps.application:application")


def output_of(option: str) -> str:
    assert UWSGI is not None
    return subprocess.run([UWSGI, option], capture_output=True, text=True).stdout


def missing_requirement() -> str:
    """Return the reason why the tests cannot run on this machine, or an empty text if the tests can
    run.
    """
    if not Path("/proc/net/tcp").exists():
        return "the owner of a connection is unknown here"
    if UWSGI is None:
        return "there is no uwsgi"
    if not output_of("--python-version").startswith("{}.{}.".format(*sys.version_info)):
        return "uwsgi was built with a different version of Python"
    return "" if "--gevent " in output_of("--help") else "uwsgi was built without gevent"


MISSING_REQUIREMENT = missing_requirement()
pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(MISSING_REQUIREMENT), reason=MISSING_REQUIREMENT)]


@pytest.fixture
def port():
    """Return a free port.

    The test must choose the port, because uWSGI cannot report a port that the system chooses.
    """
    return free_port()


@pytest.fixture
def start_uwsgi(deployment, tmp_path, port):
    def start(*options, **environment):
        listen = ("--http-socket", f"127.0.0.1:{port}")
        arguments = (*SERVER_OPTIONS, *GRACEFUL_STOP_OPTIONS, *listen, *APPLICATION_OPTIONS, *options)
        return hosted(deployment, tmp_path / "log", *arguments, program=(UWSGI,), **environment)

    return start


def started_workers(host):
    """Return the process IDs of all workers that uWSGI has started, including dead workers."""
    return {int(each) for each in host.matches(r"spawned uWSGI worker \d+ \(pid: (\d+)")}


def two_workers(host, earlier_workers=frozenset()):
    """Return the process IDs of two workers that are not in `earlier_workers`, or False until both
    have started.
    """
    new_workers = started_workers(host) - earlier_workers
    return len(new_workers) == 2 and new_workers


def assert_each_connection_has_one_owner(deployment, host, live_workers):
    """Assert that each connection belongs to exactly one live process, and that each live worker
    has a connection.
    """
    process_ids = {host.process.pid, *started_workers(host)}
    until(lambda: all(len(each) == 1 for each in owners_of_connections(deployment, process_ids)))
    assert set.union(*owners_of_connections(deployment, process_ids)) - {host.process.pid} == live_workers


def warnings_and_errors(host):
    return [line for line in host.warnings_and_errors if "running uWSGI as root" not in line]


# For each case: the options of uWSGI, and the first use of the client. A client that was used
# before the fork needs Python's fork hooks, which uWSGI calls only if an option is set.
FORK_CASES = {
    "unused client": ((), "request"),
    "used client": (("--py-call-uwsgi-fork-hooks",), "import"),
    "used client and hook in child only": (("--py-call-osafterfork",), "import"),
    "client per worker": (("--lazy-apps",), "import"),
}


@pytest.mark.parametrize("fork_case", FORK_CASES.values(), ids=[each.replace(" ", "-") for each in FORK_CASES])
def test_after_reload_each_new_worker_and_no_old_worker_has_connections(start_uwsgi, deployment, port, fork_case):
    options, use = fork_case
    with start_uwsgi(*options, HOSTED_USE=use) as host:
        with Load(port) as load:
            old_workers = until(lambda: two_workers(host))
            # Wait for an answer of each worker, because a worker ignores signals while it starts.
            until(lambda: old_workers <= set(load.answered_by))
            assert_each_connection_has_one_owner(deployment, host, old_workers)
            host.signal(signal.SIGHUP)
            new_workers = until(lambda: two_workers(host, old_workers))
            until(lambda: new_workers <= set(load.answered_by))
        assert_each_connection_has_one_owner(deployment, host, new_workers)
        assert host.end() == 0
        until(lambda: not open_connections(deployment))
        assert warnings_and_errors(host) == []


def test_fork_without_hook_shares_no_connection(start_uwsgi, deployment, port):
    with start_uwsgi(HOSTED_USE="import") as host:
        started, answered, numbers = until(lambda: two_workers(host)), set(), itertools.count()
        while not started <= answered:
            answered.add(request_document(port, f"note-{next(numbers)}")[0])
        process_ids = {host.process.pid, *started}
        assert [each for each in owners_of_connections(deployment, process_ids) if len(each) > 1] == []


def test_pending_requests_are_answered_before_uwsgi_ends(start_uwsgi, deployment, port):
    with start_uwsgi() as host:
        with Load(port) as load:
            until(lambda: two_workers(host) and two_workers(host) <= set(load.answered_by))
        assert_pending_requests_are_answered_at_end(deployment, host, port)
        assert warnings_and_errors(host) == []
