"""Failovers: the time until callers write again, and the writes that are lost or applied twice.

All contenders work on one replica set at the same time, so that each election affects all contenders.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.processes import ROOT
from benchmarks.real.partition import MemberProxies
from gmongo import MongoClient
from gmongo.testing import EmbeddedReplicaSet
from gmongo.testing.mongod.connection import CommandFailedError, run_command
from gmongo.testing.mongod.server import Server

CONTENDERS = ("gmongo", "pymongo", "threads")
FAILURE_KINDS = ("killed", "stopped", "stepped down", "cut off")  # "stopped" means suspended by SIGSTOP.
_ELECTION_TIMEOUT = 1.0  # seconds
_PROBE_INTERVAL = 0.001  # seconds
_SECONDS_BEFORE, _SECONDS_AFTER = 1.0, 3.0  # The pauses before a failure and before its repair.
_PROBE_UPDATE = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "upsert": True}
_PROBE_COMMAND = {"update": "probe", "$db": "benchmark", "updates": [_PROBE_UPDATE]}


def measure(failover_count: int, report_progress: Callable[[str], Any]) -> dict[str, Any]:
    """Measure failovers of each kind.

    :param failover_count: the number of failovers of each kind.
    :returns: ``delays`` and ``faults``. ``delays`` contains, by kind and contender, quantiles of
        the milliseconds until callers write again. ``faults`` contains the numbers of writes,
        errors, lost writes and repeated writes of each contender.
    """
    with ExitStack() as stack:
        replica_set = stack.enter_context(EmbeddedReplicaSet(election_timeout=_ELECTION_TIMEOUT))
        proxies = stack.enter_context(MemberProxies(replica_set))
        end_functions = stack.enter_context(_run_workers(proxies.uri))
        first_write_times: dict[str, list[float]] = {kind: [] for kind in FAILURE_KINDS}
        for number in range(failover_count):
            for kind in FAILURE_KINDS:
                report_progress(f"failover {number + 1}: primary {kind}")
                first_write_times[kind] += _cause_failover(replica_set, proxies, kind)
        results = {name: end_worker() for name, end_worker in end_functions.items()}
        with MongoClient(replica_set.uri) as client:
            faults = {name: _compare_with_data(client, name, result) for name, result in results.items()}
    return {
        "delays": {
            kind: {name: _delay_quantiles(result, times) for name, result in results.items()}
            for kind, times in first_write_times.items()
        },
        "faults": faults,
    }


@contextmanager
def _run_workers(uri: str) -> Iterator[dict[str, Callable[[], dict[str, Any]]]]:
    """Start a worker process for each contender.

    Yield, by contender, a function that ends the worker and returns its results.
    """
    with TemporaryDirectory() as folder:
        started = {}
        for name in CONTENDERS:
            command = [sys.executable, "-m", "benchmarks.real.failover_worker", name, uri, str(Path(folder, name))]
            started[name] = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE)

        def make_end_function(name: str) -> Callable[[], dict[str, Any]]:
            def end() -> dict[str, Any]:
                started[name].communicate(timeout=120)
                return dict(json.loads(Path(folder, name).read_text()))

            return end

        try:
            time.sleep(3)  # the workers connect during this pause
            yield {name: make_end_function(name) for name in started}
        finally:
            for process in started.values():
                process.kill()
                process.wait()


def _cause_failover(replica_set: EmbeddedReplicaSet, proxies: MemberProxies, kind: str) -> list[float]:
    """Make the primary unavailable, and later available again.

    Return a list that contains the time of the first successful write to the new primary. The list
    is empty if the members elect no primary within 60 seconds.
    """
    old_primary = replica_set.primary
    others = [member for member in replica_set.members if member is not old_primary]
    time.sleep(_SECONDS_BEFORE)
    write_times: list[float] = []
    probes = [threading.Thread(target=_probe, args=(member, write_times), daemon=True) for member in others]
    for probe in probes:
        probe.start()
    _make_primary_unavailable(old_primary, proxies, kind)
    for probe in probes:
        while probe.is_alive() and not write_times:
            time.sleep(_PROBE_INTERVAL)
    time.sleep(_SECONDS_AFTER)
    proxies.open(old_primary)
    if old_primary.is_stopped:
        old_primary.resume()
    elif not old_primary.is_running:
        old_primary.restart()
    replica_set.await_members()
    return write_times[:1]


def _make_primary_unavailable(old_primary: Server, proxies: MemberProxies, kind: str) -> None:
    if kind == "killed":
        old_primary.kill()
    elif kind == "stopped":
        old_primary.stop()
    elif kind == "cut off":
        proxies.close(old_primary)
    else:
        old_primary.step_down(10)


def _probe(member: Server, write_times: list[float]) -> None:
    """Send writes to a member for up to 60 seconds, until any probe has appended to `write_times`.

    If the member accepts a write, append the time of the write.
    """
    host, _colon, port = member.address.rpartition(":")
    end = time.monotonic() + 60
    while not write_times and time.monotonic() < end:
        try:
            run_command((host, int(port)), _PROBE_COMMAND)
        except (CommandFailedError, OSError):
            time.sleep(_PROBE_INTERVAL)
        else:
            write_times.append(time.monotonic())


def _delay_quantiles(result: dict[str, Any], first_write_times: list[float]) -> dict[str, float]:
    """Return quantiles of the milliseconds from a probe's write to the next write of each caller."""
    delays = []
    for first_time in first_write_times:
        for write_times in result["write_times"]:
            later_times = [each for each in write_times if each >= first_time]
            delays.append((later_times[0] - first_time) * 1e3 if later_times else float("inf"))
    delays.sort()
    return {"p50": median(delays), "p99": delays[int(len(delays) * 0.99)]}


def _compare_with_data(client: MongoClient[dict[str, Any]], name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Compare the acknowledged writes with the stored data.

    Return the numbers of acknowledged, lost and repeated writes, and the number of each error.
    """
    database = client["benchmark"]
    stored_ids = {each["_id"] for each in database[f"facts_{name}"].find({}, {"_id": 1})}
    counts = {each["_id"]: each["n"] for each in database[f"counters_{name}"].find()}
    acknowledged_ids = set(result["inserted_ids"])
    return {
        "writes": len(acknowledged_ids) + sum(result["acknowledged_updates"]),
        "errors": result["errors"],
        "lost": len(acknowledged_ids - stored_ids)
        + sum(max(0, done - counts.get(number, 0)) for number, done in enumerate(result["acknowledged_updates"])),
        "twice": sum(max(0, counts.get(number, 0) - sent) for number, sent in enumerate(result["attempted_updates"])),
    }
