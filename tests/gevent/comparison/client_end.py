"""End the use of a client without `close`: the hub ends, the last reference disappears, or the process ends.

Usage: ``python -m tests.gevent.comparison.client_end gmongo|pymongo URI SCENARIO``. The program
prints whether the hub, the client or the process ended.

With PyMongo, a scenario may never return. The test therefore limits the time of the program.
"""

# ruff: noqa: E402 - the process is monkey-patched before the other imports

from __future__ import annotations

import sys

from tests.gevent.comparison.drivers import error_text, import_driver, receive_line, send_line

driver = import_driver(sys.argv[1])

import gc
import weakref

import gevent


def join_hub() -> None:
    """Call `join` of the hub while a client is open.

    The call should return, because no operation runs.
    """
    client = driver.MongoClient(sys.argv[2])
    client.test.c.find_one()
    send_line("opened")
    gevent.get_hub().join()
    send_line("returned")


def delete_client() -> None:
    """Delete the last reference to an open client. Print whether Python releases the client."""
    client = driver.MongoClient(sys.argv[2])
    client.test.c.find_one()
    known = weakref.ref(client)
    send_line("opened")
    receive_line()
    del client
    for _ in range(20):
        gc.collect()
        if known() is None:
            break
        gevent.sleep(0.05)
    send_line("collected" if known() is None else "not collected")
    receive_line()


def use_in_other_thread() -> None:
    """Use a client in a native thread that did not create the client."""
    client = driver.MongoClient(sys.argv[2])
    client.test.c.find_one()

    def find_or_error_text() -> str:
        try:
            return "works" if client.test.c.find_one({}) is None else "?"
        except Exception as error:
            return error_text(error)

    send_line("opened")
    native = gevent.get_hub().threadpool.spawn(find_or_error_text)
    send_line("other thread:", native.get())
    send_line("own thread:", find_or_error_text())


def end_main_greenlet() -> None:
    """Return from the main greenlet while a client is open. The process should end."""
    client = driver.MongoClient(sys.argv[2])
    client.test.c.find_one()
    send_line("opened")


if __name__ == "__main__":
    {"join": join_hub, "drop": delete_client, "thread": use_in_other_thread, "end": end_main_greenlet}[sys.argv[3]]()
