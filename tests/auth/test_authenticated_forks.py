"""A process forks before, during or after the first operation of a client with TLS and a user.

The client in the child process must open and authenticate its own connections.
"""

from __future__ import annotations

import subprocess
import sys

import gevent
import gevent.subprocess
import pytest

from gmongo.testing import Deployment

pytest.importorskip("trustme")

FORK_PROGRAM = """
import os, sys, gevent
from gmongo import MongoClient
from gmongo.auth.scram import ScramKeys

client = MongoClient(sys.argv[1], retryReads=False)
fork_time = sys.argv[2]
keys = ScramKeys()
key_arguments = "sha256", b"password", b"salt", 300_000

if fork_time == "after":
    client.db.c.find_one()
elif fork_time == "during":
    first = gevent.spawn(client.db.c.find_one)
    derivation = gevent.spawn(keys.derive, *key_arguments)
    gevent.sleep(0.005)

child = os.fork()
if child == 0:
    status = 1
    try:
        with gevent.Timeout(10):
            assert client.db.c.find_one() is None
            assert len(keys.derive(*key_arguments)) == 2
        status = 0
    except BaseException as error:
        print("child:", repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(status)
with gevent.Timeout(15):
    if fork_time == "during":
        first.get()
    assert client.db.c.find_one() is None
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        gevent.sleep(0.005)
    assert ended[1] == 0, ended
print("passed")
"""


@pytest.mark.real_time
@pytest.mark.parametrize("fork_time", ["before", "after", "during"])
def test_forked_child_authenticates_with_own_connections(fork_time):
    # During authentication, a native thread derives keys. Python warns of a fork while threads run.
    warning_options = ["-W", "error"] if fork_time != "during" else []
    with Deployment.standalone(users={"ann": "pencil"}, tls=True) as deployment:
        child = gevent.subprocess.Popen(
            [sys.executable, *warning_options, "-c", FORK_PROGRAM, deployment.uri, fork_time],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            output, errors = child.communicate(timeout=40)
        finally:
            child.kill()
    assert output == "passed\n", errors
    assert fork_time == "during" or not errors
