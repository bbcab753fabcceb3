"""Background runs of a pool, and pools after a fork (CMAP-45, CMAP-169 to CMAP-177).

A background run closes idle and stale connections, and opens connections up to minPoolSize.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from gevent import subprocess
from gevent.event import Event

from tests.cmap.harness import connection_counts, fill_pool
from tests.support.server import ScriptedServer, hold_reply
from tests.support.wait import eventually


@pytest.mark.requirement("CMAP-172", "CMAP-173", "CMAP-192", "CMAP-177")
def test_background_run_closes_idle_connections(new_pool: Any, server: Any, recorder: Any) -> None:
    pool = new_pool(max_idle_time=0.02, background_interval=0.005)
    fill_pool(pool, 3)
    recorder.wait_for("Closed", 3)
    assert sorted(recorder.lines_starting_with("Closed")) == ["Closed 1 idle", "Closed 2 idle", "Closed 3 idle"]
    assert connection_counts(pool) == (0, 0, 0, 0)
    eventually(lambda: not server.peers)


@pytest.mark.requirement("CMAP-173", "CMAP-174", "CMAP-191")
def test_clear_starts_background_run_that_closes_stale_connections(new_pool: Any, recorder: Any) -> None:
    pool = new_pool(background_interval=3600)
    fill_pool(pool, 3)
    pool.clear()
    assert not recorder.events_named("Closed")
    recorder.wait_for("Closed", 3)
    assert sorted(recorder.lines_starting_with("Closed")) == ["Closed 1 stale", "Closed 2 stale", "Closed 3 stale"]


@pytest.mark.requirement("CMAP-175", "CMAP-176", "CMAP-172")
def test_background_run_closes_idle_connection_while_handshakes_hang(
    new_pool: Any, server: Any, recorder: Any, start_greenlet: Any
) -> None:
    pool = new_pool(ready=False, min_pool_size=3, max_connecting=1, max_idle_time=0.02, background_interval=0.005)
    pool.ready()
    pool.machine._may_populate = False
    spare = pool.check_out()
    gate = Event()
    server.fail("handshake", hold_reply(gate))
    pool.machine._allow_populating(pool.generation)
    server.wait_for("handshake", 2)
    pool.check_in(spare)
    recorder.wait_for("Closed")
    assert recorder.lines_starting_with("Closed") == ["Closed 1 idle"]
    assert connection_counts(pool) == (1, 1, 0, 0)
    gate.set()


PROGRAM = """
import os, sys, gevent.os
from gmongo import MongoClient
from tests.support.recorder import PoolRecorder

recorder = PoolRecorder()
client = MongoClient(sys.argv[1], event_listeners=[recorder])
client.db.c.find_one({"_id": "before"})
child = gevent.os.fork()
client.db.c.find_one({"_id": "after" if child else "in the child"})
print(recorder.lines_starting_with("CheckedOut")[-1], "in the", "parent" if child else "child", flush=True)
if child == 0:
    os._exit(0)
gevent.os.waitpid(child, 0)
"""


@pytest.mark.real_time
@pytest.mark.requirement("CMAP-45", "CMAP-169", "CMAP-171")
def test_child_process_opens_own_connection(server: ScriptedServer) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, server.name], cwd=Path(__file__).parents[2], capture_output=True, timeout=60
    )
    output = sorted(result.stdout.decode().splitlines())
    assert output == ["CheckedOut 1 in the parent", "CheckedOut 2 in the child"], result.stderr
    connections = {each.command["filter"]["_id"]: each.connection for each in server.received if each.name == "find"}
    assert connections["after"] == connections["before"] != connections["in the child"]
