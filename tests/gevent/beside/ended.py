"""How clients end: ``python -m tests.gevent.beside.ended gmongo|pymongo URI SCENE`` prints what came of it.

``SCENE`` is one of those below. The test bounds them, since one of them may never return.
"""

# ruff: noqa: E402 - PyMongo is patched before anything else is imported

from __future__ import annotations

import sys

from tests.gevent.beside.drivers import described, listen, load, say

driver = load(sys.argv[1])

import gc
import weakref

import gevent


def join() -> None:
    """The hub is joined with a client open: it returns when nothing is left to be done."""
    client = driver.MongoClient(sys.argv[2])
    client.test.c.find_one()
    say("opened")
    gevent.get_hub().join()
    say("returned")


def drop() -> None:
    """The last reference to a client goes."""
    client = driver.MongoClient(sys.argv[2])
    client.test.c.find_one()
    known = weakref.ref(client)
    say("opened")
    listen()
    del client
    for _ in range(20):
        gc.collect()
        if known() is None:
            break
        gevent.sleep(0.05)
    say("collected" if known() is None else "still there")
    listen()


def thread() -> None:
    """A native thread uses the client of another one."""
    client = driver.MongoClient(sys.argv[2])
    client.test.c.find_one()

    def use() -> str:
        try:
            return "works" if client.test.c.find_one({}) is None else "?"
        except Exception as error:
            return described(error)

    say("opened")
    native = gevent.get_hub().threadpool.spawn(use)
    say("there:", native.get())
    say("here:", use())


def end() -> None:
    """The main greenlet ends with a client open."""
    client = driver.MongoClient(sys.argv[2])
    client.test.c.find_one()
    say("opened")


if __name__ == "__main__":
    {"join": join, "drop": drop, "thread": thread, "end": end}[sys.argv[3]]()
