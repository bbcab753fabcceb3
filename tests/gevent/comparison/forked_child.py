"""Use a client in a forked child process.

Usage: ``python -m tests.gevent.comparison.forked_child gmongo|pymongo URI FORK_FUNCTION STATE``.

``FORK_FUNCTION`` is ``os``, ``gevent`` or ``multiprocessing``. If ``STATE`` is ``quiet``, the
heartbeat interval is 60 s, so that the parent sends no commands while the child runs. If ``STATE``
is ``busy``, the parent forks while eight of its greenlets wait for replies. The child has copies of
the eight greenlets. The replies arrive while the child runs.
"""

# ruff: noqa: E402 - import_driver must run before the other imports

from __future__ import annotations

import sys

from tests.gevent.comparison.drivers import error_text, import_driver, receive_line, send_line

driver = import_driver(sys.argv[1])

import json
import multiprocessing
import os
from collections import Counter
from typing import Any

import gevent
import gevent.os

READER_COUNT = 8
QUIET_OPTIONS = {"serverMonitoringMode": "poll", "heartbeatFrequencyMS": 60_000}
CHILD_PAUSE_SECONDS = 0.8 if sys.argv[4] == "busy" else 0


def use_in_child(client: Any) -> None:
    """Insert and read a document in the child, and print the outcome."""
    try:
        with gevent.Timeout(30):
            client.test.c.insert_one({"_id": "child"})
            document = client.test.c.find_one({"_id": "child"})
            gevent.sleep(CHILD_PAUSE_SECONDS)
            client.close()
        send_line("child:", "works" if document == {"_id": "child"} else document)
    except BaseException as error:
        send_line("child:", error_text(error))


def fork_and_wait(fork: Any, waitpid: Any, client: Any) -> int:
    child = fork()
    if child == 0:
        try:
            use_in_child(client)
        finally:
            os._exit(0)
    while not (status := waitpid(child, os.WNOHANG))[0]:
        gevent.sleep(0.005)
    return int(status[1])


def run_process(client: Any) -> int | None:
    child = multiprocessing.get_context("fork").Process(target=use_in_child, args=(client,))
    child.start()
    while child.exitcode is None:
        gevent.sleep(0.005)
    return child.exitcode


FORK_FUNCTIONS = {
    "os": lambda client: fork_and_wait(os.fork, os.waitpid, client),
    "gevent": lambda client: fork_and_wait(gevent.os.fork, gevent.os.waitpid, client),
    "multiprocessing": run_process,
}


def read(client: Any, number: int) -> str:
    try:
        with gevent.Timeout(3):
            document = client.test.c.find_one({"number": number})
        return "answered" if document and document["number"] == number else f"read {document}"
    except BaseException as error:
        return "no answer" if isinstance(error, gevent.Timeout) else type(error).__name__


def main() -> None:
    """Use a client in the parent, fork, use the client in the child and the parent, and print the
    outcomes.
    """
    is_busy = sys.argv[4] == "busy"
    client = driver.MongoClient(sys.argv[2], retryReads=False, **({} if is_busy else QUIET_OPTIONS))
    client.test.c.insert_many([{"number": number} for number in range(READER_COUNT)])
    fail_point_data = {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 500}
    readers = []
    if is_busy:
        client.admin.command("configureFailPoint", "failCommand", mode={"times": READER_COUNT}, data=fail_point_data)
        readers = [gevent.spawn(read, client, number) for number in range(READER_COUNT)]
    send_line("before the fork")
    receive_line()
    status = FORK_FUNCTIONS[sys.argv[3]](client)
    send_line("child ended with", status)
    receive_line()
    send_line(json.dumps(Counter(each.get() for each in readers)))
    send_line("parent:", read(client, 1))
    client.close()


if __name__ == "__main__":
    main()
