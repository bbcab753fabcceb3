"""gunicorn with gevent workers forks, reloads, replaces and kills workers during requests."""

from __future__ import annotations

import signal
from pathlib import Path

import gevent
import pytest

from tests.support.wait import until

from .hosting import (
    Load,
    assert_pending_requests_are_answered_at_end,
    hosted,
    open_connections,
    owners_of_connections,
    request_document,
)

pytest.importorskip("gunicorn")
pytest.importorskip("packaging", reason="gunicorn's gevent worker needs it")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the owner of a connection is unknown here"),
]

COMMAND = ("-m", "gunicorn", "-k", "gevent", "-b", "127.0.0.1:0", "--graceful-timeout", "5")
SETTINGS = ("-c", str(Path(__file__).with_name("gunicorn_settings.py")))
APPLICATION = "tests.apps.application:application"


@pytest.fixture
def start_gunicorn(deployment, tmp_path):
    def start(*options, **environment):
        return hosted(deployment, tmp_path / "log", *COMMAND, *SETTINGS, *options, APPLICATION, **environment)

    return start


def living_processes(process_ids):
    return {each for each in process_ids if Path(f"/proc/{each}").exists()}


def started_workers(host):
    """Return the process IDs of all workers that gunicorn has started, including dead workers."""
    return {int(each) for each in host.matches(r"Booting worker with pid: (\d+)")}


def connections_belong_to_live_workers(deployment, host):
    """Return True if each connection belongs to exactly one live worker, and each live worker has a
    connection.
    """
    owners = owners_of_connections(deployment, {host.process.pid, *started_workers(host)})
    return {frozenset(each) for each in owners} == {
        frozenset({each}) for each in living_processes(started_workers(host))
    }


def assert_clean_end(deployment, host):
    """Send SIGTERM to gunicorn, and check that gunicorn exits with 0 and leaves no connection.

    First wait until two workers have started, because gunicorn signals a worker only once.
    """
    until(
        lambda: (
            len(living_processes(started_workers(host))) == 2 and connections_belong_to_live_workers(deployment, host)
        )
    )
    assert host.end() == 0
    until(lambda: not open_connections(deployment))


def test_reload_under_load_moves_connections_to_new_workers(start_gunicorn, deployment):
    with start_gunicorn("-w", "2") as host:
        with Load(host.port()) as load:
            old_processes = set(until(load.recent_process_ids)) | started_workers(host)
            host.signal(signal.SIGHUP)
            until(lambda: load.recent_process_ids() and not load.recent_process_ids() & old_processes)
            until(lambda: not living_processes(old_processes))
        assert_clean_end(deployment, host)
        assert len(started_workers(host)) == 4
        assert host.warnings_and_errors == []


def test_replacement_of_workers_drops_no_request(start_gunicorn, deployment):
    with start_gunicorn("-w", "2", "--max-requests", "30", "--max-requests-jitter", "10") as host:
        with Load(host.port()) as load:
            until(lambda: len(set(load.answered_by)) >= 5)
        retired = len(host.matches("(Autorestarting worker)"))
        until(lambda: len(started_workers(host)) == 2 + retired and len(living_processes(started_workers(host))) == 2)
        assert_clean_end(deployment, host)
        assert retired >= 3
        assert load.dropped == []
        assert host.warnings_and_errors == []


@pytest.mark.parametrize("use", ["request", "import"])
def test_client_of_preloaded_application_is_usable_in_each_worker(start_gunicorn, deployment, use):
    """Create the client in the process that forks the workers.

    With the parameter ``import``, this process also uses the client before the forks.
    """
    with start_gunicorn("-w", "2", "--preload", HOSTED_USE=use) as host:
        master = host.process.pid
        with Load(host.port()) as load:
            until(lambda: len(set(load.answered_by)) == 2)
            assert master not in load.answered_by
        process_ids = {master, *started_workers(host)}
        until(lambda: all(len(each) == 1 for each in owners_of_connections(deployment, process_ids)))
        assert set.union(*owners_of_connections(deployment, process_ids)) - {master} == started_workers(host)
        assert host.end() == 0
        until(lambda: not open_connections(deployment))
        assert host.warnings_and_errors == []


def test_worker_with_blocked_event_loop_is_replaced(start_gunicorn, deployment):
    with start_gunicorn("-w", "2", "--timeout", "3") as host:
        port = host.port()
        with Load(port) as load:
            until(load.recent_process_ids)
            blocking = gevent.spawn(request_document, port, "block")
            killed = int(until(lambda: host.matches(r"WORKER TIMEOUT \(pid:(\d+)\)"))[0])
            blocking.kill()
            until(lambda: not living_processes({killed}))
            until(lambda: len(living_processes(started_workers(host))) == 2)
            until(lambda: load.recent_process_ids() and killed not in load.recent_process_ids())
        assert_clean_end(deployment, host)
        assert not [line for line in host.warnings_and_errors if "Warning" in line or "gmongo" in line]


def test_pending_requests_are_answered_before_gunicorn_ends(start_gunicorn, deployment):
    with start_gunicorn("-w", "1") as host:
        port = host.port()
        request_document(port, "first")
        assert_pending_requests_are_answered_at_end(deployment, host, port)
        assert host.warnings_and_errors == []
