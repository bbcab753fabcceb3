"""Forks of processes whose clients authenticate over TLS."""

from __future__ import annotations

import subprocess
import sys

import gevent
import gevent.subprocess
import pytest

from gmongo.testing import Deployment

pytest.importorskip("trustme")

PROGRAM = """
import os, sys, gevent
from gmongo import MongoClient
from gmongo.auth.scram_keys import ScramKeys

client = MongoClient(sys.argv[1], retryReads=False)
moment = sys.argv[2]
keys = ScramKeys()
question = "sha256", b"password", b"salt", 300_000

if moment == "after":
    client.db.c.find_one()
elif moment == "amid":
    first = gevent.spawn(client.db.c.find_one)
    derivation = gevent.spawn(keys.derive, *question)
    gevent.sleep(0.005)

child = os.fork()
if child == 0:
    status = 1
    try:
        with gevent.Timeout(10):
            assert client.db.c.find_one() is None
            assert len(keys.derive(*question)) == 2
        status = 0
    except BaseException as error:
        print("child:", repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(status)
with gevent.Timeout(15):
    if moment == "amid":
        first.get()
    assert client.db.c.find_one() is None
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        gevent.sleep(0.005)
    assert ended[1] == 0, ended
print("well")
"""


@pytest.mark.real_time
@pytest.mark.parametrize("moment", ["before", "after", "amid"])
def test_a_child_authenticates_by_itself(moment):
    warn = ["-W", "error"] if moment != "amid" else []  # there is a thread under way then, as a child is warned
    with Deployment.standalone(users={"ann": "pencil"}, tls=True) as deployment:
        child = gevent.subprocess.Popen(
            [sys.executable, *warn, "-c", PROGRAM, deployment.uri, moment],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            output, errors = child.communicate(timeout=40)
        finally:
            child.kill()
    assert output == "well\n", errors
    assert moment == "amid" or not errors
