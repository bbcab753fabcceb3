"""Greenlets or threads that read and write until the end of the standard input.

``python -m benchmarks.real.failover_worker CONTENDER URI FILE`` writes a JSON object to the file.
The object contains the attributes of :class:`CallerResults`.
"""

from __future__ import annotations

import json
import select
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.worker import patch_if_pymongo

CALLER_COUNT = 50
_PAUSE = 0.02  # seconds between two operations of a caller


class CallerResults:
    """Write times of each caller, update counts of each caller, inserted IDs, and error counts.

    :param caller_count: the number of callers.
    """

    def __init__(self, caller_count: int) -> None:
        self.write_times: list[list[float]] = [[] for _ in range(caller_count)]
        self.attempted_updates, self.acknowledged_updates = [0] * caller_count, [0] * caller_count
        self.inserted_ids: list[str] = []
        self.errors: dict[str, int] = {}
        self.ended = False


def call(database: Any, name: str, number: int, results: CallerResults, error_class: type[Exception]) -> None:
    """Repeat an insert, an update and a read until ``results.ended`` is true."""
    facts, counters = database[f"facts_{name}"], database[f"counters_{name}"]
    turn = 0
    while not results.ended:
        turn += 1
        try:
            if turn % 3 == 0:
                counters.find_one({"_id": number})
            elif turn % 3 == 1:
                facts.insert_one({"_id": f"{number}-{turn}"})
                results.inserted_ids.append(f"{number}-{turn}")
                results.write_times[number].append(time.monotonic())
            else:
                results.attempted_updates[number] += 1
                counters.update_one({"_id": number}, {"$inc": {"n": 1}}, upsert=True)
                results.acknowledged_updates[number] += 1
                results.write_times[number].append(time.monotonic())
        except error_class as error:
            text = f"{type(error).__name__}: {str(error)[:80]}"
            results.errors[text] = results.errors.get(text, 0) + 1
        time.sleep(_PAUSE)


def main() -> None:
    """Run the callers, and write the results to the file."""
    name, uri, file = sys.argv[1:]
    if name == "gmongo":
        from gevent import monkey

        monkey.patch_all()  # after patching, the threads of the callers are greenlets
    else:
        patch_if_pymongo(name)
    package = "gmongo" if name == "gmongo" else "pymongo"
    client = import_module(package).MongoClient(uri, w="majority", maxPoolSize=CALLER_COUNT)
    error_class = import_module(f"{package}.errors").PyMongoError
    results = CallerResults(CALLER_COUNT)
    arguments = (client["benchmark"], name)
    callers = [
        threading.Thread(target=call, args=(*arguments, number, results, error_class)) for number in range(CALLER_COUNT)
    ]
    for caller in callers:
        caller.start()
    select.select([sys.stdin], [], [])  # reading from the standard input would block the event loop
    results.ended = True
    for caller in callers:
        caller.join()
    Path(file).write_text(json.dumps(vars(results)))
    client.close()


if __name__ == "__main__":
    main()
