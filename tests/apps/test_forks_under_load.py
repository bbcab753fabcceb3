"""A process that uses a client forks, also in a transaction while TLS connections are busy."""

from __future__ import annotations

import pytest

from gmongo.testing import Deployment
from tests.support.wait import until

from .hosting import hosted, open_connections

pytestmark = pytest.mark.long

pytest.importorskip("trustme")

TRANSACTION_PROGRAM = """
import multiprocessing, os, sys, gevent, gevent.os
from gmongo import MongoClient

client = MongoClient(os.environ["HOSTED_DATABASE"])
notes = client.hosted.notes

def work():
    notes.insert_one({"_id": "child"})
    assert notes.find_one({"_id": "parent"}) is None, "a transaction is visible before its commit"
    assert notes.find_one({"_id": "child"}) == {"_id": "child"}

def fork_and_wait(fork, waitpid):
    child = fork()
    if child == 0:
        status = 1
        try:
            with gevent.Timeout(30):
                work()
            status = 0
        except BaseException as error:
            print("child:", repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    while not (ended := waitpid(child, os.WNOHANG))[0]:
        gevent.sleep(0.005)
    return ended[1]

def run_process():
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    while child.exitcode is None:
        gevent.sleep(0.005)
    return child.exitcode

FORK_FUNCTIONS = {
    "os": lambda: fork_and_wait(os.fork, os.waitpid),
    "gevent": lambda: fork_and_wait(gevent.os.fork, gevent.os.waitpid),
    "multiprocessing": run_process,
}

notes.insert_one({"_id": "first"})
stream = notes.watch([{"$match": {"documentKey._id": "parent"}}])
busy = gevent.spawn(stream.next)  # returns after the commit of the transaction
with client.start_session() as session, session.start_transaction():
    notes.insert_one({"_id": "parent"}, session=session)
    print("ready", flush=True)
    while not os.path.exists(sys.argv[2]):
        gevent.sleep(0.005)
    print("child ended with", FORK_FUNCTIONS[sys.argv[1]](), flush=True)
    assert not busy.ready()
    notes.insert_one({"_id": "parent, later"}, session=session)
print("changed:", busy.get()["documentKey"]["_id"])
print([each["_id"] for each in notes.find().sort("_id", 1)], client.pool_stats()[0]["generation"])
"""


def running_commands(deployment):
    return {each.busy_with for each in open_connections(deployment).values()}


@pytest.mark.parametrize("fork_function", ["os", "gevent", "multiprocessing"])
def test_child_of_fork_in_transaction_can_use_client_and_parent_commits(tmp_path, fork_function):
    go = tmp_path / "go"
    with (
        Deployment.replica_set(members=1, tls=True) as deployment,
        hosted(deployment, tmp_path / "log", "-W", "error", "-c", TRANSACTION_PROGRAM, fork_function, str(go)) as host,
    ):
        until(lambda: "ready" in host.lines)
        # Wait until a monitor streams, and the change stream waits for a change.
        until(lambda: running_commands(deployment) >= {"hello", "getMore"})
        go.touch()
        assert host.process.wait() == 0
        until(lambda: not open_connections(deployment))
        assert host.lines == [
            "ready",
            "child ended with 0",
            "changed: parent",
            "['child', 'first', 'parent', 'parent, later'] 0",
        ]


FORK_PROGRAM = """
import os, sys, gevent, gevent.os
from gmongo import MongoClient

client = MongoClient(os.environ["HOSTED_DATABASE"], minPoolSize=int(sys.argv[1]))
notes = client.hosted.notes
notes.insert_many([{"_id": number} for number in range(20)])
child = gevent.os.fork()
if child == 0:
    status = 1
    try:
        with gevent.Timeout(30):
            notes.insert_one({"_id": "child"})
            assert len(list(notes.find(batch_size=5))) == 21
            client.close()
        status = 0
    except BaseException as error:
        print("child:", repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(status)
assert gevent.os.waitpid(child, 0)[1] == 0
assert len(list(notes.find(batch_size=5))) == 21
print("done")
"""


@pytest.mark.parametrize("min_pool_size", ["0", "2"])
@pytest.mark.parametrize("topology", ["standalone", "replica_set", "sharded", "load_balanced"])
def test_forked_child_can_use_client_in_each_topology(tmp_path, topology, min_pool_size):
    with (
        getattr(Deployment, topology)() as deployment,
        hosted(deployment, tmp_path / "log", "-W", "error", "-c", FORK_PROGRAM, min_pool_size) as host,
    ):
        assert host.process.wait() == 0
        until(lambda: not open_connections(deployment))
        assert host.lines == ["done"]
