"""``python -m benchmarks.churn``: what interrupted operations cost in connections.

A simulated server in a process of its own takes 50 ms for each `find`. Greenlets cut theirs after 20 ms with
``gevent.Timeout``, as applications do, and then ask something that is answered at once. Each contender runs in a fresh
process, several times in turn; the medians are printed as a table for ``docs/time-limits.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from statistics import median
from typing import Any

ROUNDS = 5
GREENLETS = 10
CUTS = 100  # of each greenlet
SERVER_MS = 50
CUT_AFTER = 0.02  # seconds
CONTENDERS: dict[str, dict[str, Any]] = {
    "gmongo": {},
    "gmongo, drainLateReplies=true": {"drainLateReplies": True},
    "PyMongo, monkey-patched": {},
}
_WORKER_SECONDS = 60


def measure(contender: str, uri: str) -> dict[str, float]:
    """Run one contender in this process."""
    if contender.startswith("PyMongo"):
        from gevent import monkey

        monkey.patch_all()
        from pymongo import MongoClient
    else:
        from gmongo import MongoClient  # type: ignore[assignment]
    from time import monotonic, process_time

    import gevent

    client: Any = MongoClient(uri, **CONTENDERS[contender])
    client.churn.facts.count_documents({})  # the server is found
    opened = _connections(client)
    answers: list[float] = []

    def work() -> None:
        for _ in range(CUTS):
            try:
                with gevent.Timeout(CUT_AFTER):
                    client.churn.facts.find_one({})  # on a busy machine it may be answered in time
            except gevent.Timeout:
                pass
            begin = monotonic()
            client.churn.command("ping")
            answers.append(monotonic() - begin)

    begin, processor = monotonic(), process_time()
    gevent.joinall([gevent.spawn(work) for _ in range(GREENLETS)], raise_error=True)
    seconds, processor = monotonic() - begin, process_time() - processor
    answers.sort()
    return {
        "connections": _connections(client) - opened,
        "cuts a second": GREENLETS * CUTS / seconds,
        "median ms": 1000 * median(answers),
        "p99 ms": 1000 * answers[int(len(answers) * 0.99)],
        "CPU µs": 1e6 * processor / (GREENLETS * CUTS),
    }


def _connections(client: Any) -> int:
    """How many connections the server has accepted so far, those of monitors included."""
    return int(client.admin.command("serverStatus")["connections"]["totalCreated"])


def compare(rounds: int) -> dict[str, dict[str, float]]:
    """The medians of all contenders, each in `rounds` fresh processes, in turn."""
    from gmongo import MongoClient
    from gmongo.testing import DeploymentProcess

    found: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    with DeploymentProcess.standalone() as deployment, MongoClient(deployment.uri) as client:
        client.churn.facts.insert_one({})
        data = {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": SERVER_MS}
        client.admin.command({"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data})
        for _ in range(rounds):
            for name in CONTENDERS:
                command = [sys.executable, "-m", "benchmarks.churn", "--worker", name, "--uri", deployment.uri]
                output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_WORKER_SECONDS)
                found[name].append(json.loads(output.stdout))
    return {name: {key: median(each[key] for each in runs) for key in runs[0]} for name, runs in found.items()}


def table(results: dict[str, dict[str, float]]) -> str:
    """The results for people."""
    lines = [
        "| | connections opened | cuts a second | next answer, median | 99th percentile | client CPU, cut and answer |",
        "|---|---|---|---|---|---|",
    ]
    for name, values in results.items():
        connections, cuts, middle, late, processor = values.values()
        lines.append(
            f"| {name} | {connections:.0f} | {cuts:.0f} | {middle:.1f} ms | {late:.1f} ms | {processor:.0f} µs |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.churn", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of every contender; {ROUNDS} by default")
    parser.add_argument("--worker", choices=tuple(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--uri", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        print(json.dumps(measure(given.worker, given.uri)))
    else:
        print(
            f"{GREENLETS * CUTS} operations cut after {CUT_AFTER * 1000:g} ms of {SERVER_MS}, by {GREENLETS} greenlets"
        )
        print(table(compare(given.rounds)))


if __name__ == "__main__":
    main()
