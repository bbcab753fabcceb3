"""A process with an open client and running operations ends without errors or warnings, and leaves
no connection.
"""

from __future__ import annotations

import signal

import pytest

from tests.support.fail_points import fail
from tests.support.wait import until

from .hosting import hosted, open_connections

pytestmark = pytest.mark.long

PROGRAM_START = """
import os, signal, sys, threading, time, gevent
from gmongo import MongoClient

def begin():
    client = MongoClient(os.environ["HOSTED_DATABASE"], minPoolSize=3)
    client.hosted.notes.insert_one({})
    readers = [gevent.spawn(client.hosted.held.find_one) for _ in range(3)]  # the server does not reply
    gevent.sleep(0.05)
    print("begun", flush=True)
    return client, readers

def destroy():
    gevent.get_hub().destroy(destroy_loop=True)
"""

# Programs that end in different ways, each with the expected exit status.
ENDING_PROGRAMS = {
    "end of program": ("kept = begin()", 0),
    "sys.exit": ("kept = begin(); sys.exit(3)", 3),
    "sys.exit in greenlet": ("kept = begin(); gevent.spawn(sys.exit, 3).join(); gevent.sleep(60)", 3),
    "hub destroyed": ("kept = begin(); destroy()", 0),
    "hub destroyed and new hub used": (
        "kept = begin(); destroy(); gevent.sleep(0.1); more = begin()",
        0,
    ),
}
# Programs in which a native thread ends. The programs run only without gevent's patches, because the
# patches replace native threads by greenlets.
THREAD_PROGRAMS = {
    "thread ends": "each = threading.Thread(target=begin); each.start(); each.join()",
    "hub of thread destroyed": (
        "each = threading.Thread(target=lambda: (begin(), destroy())); each.start(); each.join()"
    ),
}

# For each case: the statement that installs a signal handler, the signal, and the expected exit
# status.
SIGNAL_CASES = {
    "SIGTERM without handler": ("", signal.SIGTERM, -signal.SIGTERM),
    "SIGTERM with signal handler": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))",
        signal.SIGTERM,
        4,
    ),
    "SIGTERM with gevent handler": (
        "gevent.signal_handler(signal.SIGTERM, sys.exit, 4)",
        signal.SIGTERM,
        4,
    ),
    "SIGTERM with closed client": (
        "gevent.signal_handler(signal.SIGTERM, lambda: (kept[0].close(), sys.exit(4)))",
        signal.SIGTERM,
        4,
    ),
}


@pytest.fixture
def silent_deployment(deployment):
    """Return a deployment that does not reply to `find`."""
    fail(deployment, "find", times=None, blockConnection=True, blockTimeMS=60_000)
    return deployment


def run_program(deployment, tmp_path, lines):
    return hosted(deployment, tmp_path / "log", "-W", "error", "-c", f"{PROGRAM_START}\n{lines}\n")


@pytest.mark.parametrize("is_patched", [True, False], ids=["patched", "not patched"])
@pytest.mark.parametrize("ending_program", ENDING_PROGRAMS.values(), ids=ENDING_PROGRAMS)
def test_ending_process_closes_connections_silently(silent_deployment, tmp_path, ending_program, is_patched):
    lines, status = ending_program
    with run_program(silent_deployment, tmp_path, f"{patch_statement(is_patched)}\n{lines}") as host:
        assert host.process.wait() == status
        until(lambda: not open_connections(silent_deployment))
        assert set(host.lines) == {"begun"}


@pytest.mark.parametrize("lines", THREAD_PROGRAMS.values(), ids=THREAD_PROGRAMS)
def test_ending_thread_closes_connections_silently(silent_deployment, tmp_path, lines):
    with run_program(silent_deployment, tmp_path, lines) as host:
        assert host.process.wait() == 0
        until(lambda: not open_connections(silent_deployment))
        assert host.lines == ["begun"]


@pytest.mark.parametrize("is_patched", [True, False], ids=["patched", "not patched"])
@pytest.mark.parametrize("signal_case", SIGNAL_CASES.values(), ids=SIGNAL_CASES)
def test_signalled_process_closes_connections_silently(silent_deployment, tmp_path, signal_case, is_patched):
    lines, number, status = signal_case
    with run_program(
        silent_deployment,
        tmp_path,
        f"{patch_statement(is_patched)}\n{lines}\nkept = begin()\ngevent.sleep(60)",
    ) as host:
        until(lambda: "begun" in host.lines)
        host.signal(number)
        assert host.process.wait() == status
        until(lambda: not open_connections(silent_deployment))
        assert host.lines == ["begun"]


def patch_statement(is_patched):
    return "from gevent import monkey; monkey.patch_all()" if is_patched else ""
