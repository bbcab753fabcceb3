"""A fork, and then the child uses the client: ``python -m tests.gevent.beside.forked gmongo|pymongo URI WAY STATE``.

``WAY`` is ``os``, ``gevent`` or ``multiprocessing``. In the state ``quiet`` the monitor rests for a minute between two
checks, so that nothing but the child has anything to send while it lives. In the state ``busy`` eight greenlets of the
parent wait for replies, which come while the child lives; it has inherited those greenlets.
"""

# ruff: noqa: E402 - PyMongo is patched before anything else is imported

from __future__ import annotations

import sys

from tests.gevent.beside.drivers import described, listen, load, say

driver = load(sys.argv[1])

import json
import multiprocessing
import os
from collections import Counter
from typing import Any

import gevent
import gevent.os

READERS = 8
QUIET = {"serverMonitoringMode": "poll", "heartbeatFrequencyMS": 60_000}
MEANWHILE = 0.8 if sys.argv[4] == "busy" else 0


def work(client: Any) -> None:
    """The child's first use."""
    try:
        with gevent.Timeout(30):
            client.test.c.insert_one({"_id": "child"})
            found = client.test.c.find_one({"_id": "child"})
            gevent.sleep(MEANWHILE)
            client.close()
        say("child:", "works" if found == {"_id": "child"} else found)
    except BaseException as error:
        say("child:", described(error))


def forked(fork: Any, waitpid: Any, client: Any) -> int:
    child = fork()
    if child == 0:
        try:
            work(client)
        finally:
            os._exit(0)
    while not (ended := waitpid(child, os.WNOHANG))[0]:
        gevent.sleep(0.005)
    return int(ended[1])


def processed(client: Any) -> int | None:
    child = multiprocessing.get_context("fork").Process(target=work, args=(client,))
    child.start()
    while child.exitcode is None:
        gevent.sleep(0.005)
    return child.exitcode


WAYS = {
    "os": lambda client: forked(os.fork, os.waitpid, client),
    "gevent": lambda client: forked(gevent.os.fork, gevent.os.waitpid, client),
    "multiprocessing": processed,
}


def read(client: Any, number: int) -> str:
    try:
        with gevent.Timeout(3):
            found = client.test.c.find_one({"number": number})
        return "answered" if found and found["number"] == number else f"read {found}"
    except BaseException as error:
        return "no answer" if isinstance(error, gevent.Timeout) else type(error).__name__


def main() -> None:
    """Play it."""
    busy = sys.argv[4] == "busy"
    client = driver.MongoClient(sys.argv[2], retryReads=False, **({} if busy else QUIET))
    client.test.c.insert_many([{"number": number} for number in range(READERS)])
    slow = {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 500}
    readers = []
    if busy:
        client.admin.command("configureFailPoint", "failCommand", mode={"times": READERS}, data=slow)
        readers = [gevent.spawn(read, client, number) for number in range(READERS)]
    say("before the fork")
    listen()
    ended = WAYS[sys.argv[3]](client)
    say("child ended with", ended)
    listen()
    say(json.dumps(Counter(each.get() for each in readers)))
    say("parent:", read(client, 1))
    client.close()


if __name__ == "__main__":
    main()
