"""Tests of log handlers and event listeners that switch to the hub, are slow, or raise errors.

Each scenario runs in a monkey-patched process, in which many greenlets use one client. Operations
that do not time out must succeed, no resource may be lost, and the process must end.
"""

from __future__ import annotations

import json
import sys
from collections import Counter

import gevent
import gevent.subprocess
import pytest

from gmongo.testing import Deployment
from tests.support.wait import eventually

PROGRAM = """
from gevent import monkey
monkey.patch_all()
import collections, gc, gevent, json, logging, sys, threading, time
from gmongo import MongoClient
from tests.support.listeners import ForwardingListener

uri, callback_kind, callback_behavior, disturbance = sys.argv[1:]
lock = threading.Lock()
counts = collections.Counter()
loggers = set()

def locked():
    with lock:
        time.sleep(0.0005)

def slow():
    time.sleep(0.004)

def raising():
    time.sleep(0)
    raise ValueError("of the application")

disturb = {"locked": locked, "slow": slow, "raising": raising}[callback_behavior]

class Handler(logging.Handler):
    def emit(self, record):
        loggers.add(record.name)
        disturb()

class EventRecorder(ForwardingListener):
    def handle(self, event):
        counts[type(event).__name__] += 1

class SlowOrFailing(ForwardingListener):
    def handle(self, event):
        disturb()

def use(number):
    c = client.test.c
    c.insert_one({"_id": number})
    with client.start_session() as session, session.start_transaction():
        c.update_one({"_id": number}, {"$set": {"of": number}}, session=session)
    assert list(c.find({"of": number}, batch_size=1)) == [{"_id": number, "of": number}]

def interrupt(number):
    for milliseconds in (0, 1, 2, 4, 8, 16, 32, 64):
        mine = gevent.Timeout(milliseconds / 1000 + number / 10000)
        try:
            with mine:
                client.test.c.find_one({"_id": -1})
        except gevent.Timeout as error:
            assert error is mine
            counts["interrupted"] += 1

def drop(number):
    assert MongoClient(uri).test.c.find_one({"_id": -1}) is None

def is_settled():
    (pool,) = client.pool_stats()
    return (pool["in_use"], pool["pending"], pool["waiting"]) == (0, 0, 0)

logging.raiseExceptions = False
if callback_kind == "handler":
    logging.getLogger("gmongo").setLevel(logging.DEBUG)
    logging.getLogger("gmongo").addHandler(Handler())
    logging.getLogger("gmongo").propagate = False
    listeners = [EventRecorder()]
else:
    logging.getLogger("gmongo").addHandler(logging.NullHandler())
    listeners = [EventRecorder(), SlowOrFailing()]

with MongoClient(uri, maxPoolSize=3, heartbeatFrequencyMS=500, event_listeners=listeners) as client:
    acts = (use, interrupt, drop) if disturbance == "interrupted" else (use, drop)
    crowd = [gevent.spawn(each, number) for number in range(20) for each in acts if each is not drop or number < 2]
    gevent.joinall(crowd)
    with gevent.Timeout(10, False):
        while not is_settled():
            time.sleep(0.01)
    (pool,) = client.pool_stats()
    during = {
        "errors": sorted({repr(each.exception) for each in crowd if each.exception}),
        "settled": is_settled(),
        "generation": pool["generation"],
        "sessions": client._executor.sessions.in_use,
        "stored": client.test.c.count_documents({}),
    }
del crowd, client
gc.collect()
joined = gevent.get_hub().join(timeout=20)
print(json.dumps({"during": during, "joined": joined, "counts": counts, "loggers": sorted(loggers)}))
"""


@pytest.fixture
def deployment():
    with gevent.Timeout(100), Deployment.replica_set(members=1) as deployment:
        yield deployment


def run_program(deployment, *scenario):
    """Run :data:`PROGRAM` with the arguments of a scenario, and return the JSON object that the
    program prints.
    """
    command = [sys.executable, "-W", "error", "-c", PROGRAM, deployment.uri, *scenario]
    child = gevent.subprocess.run(command, capture_output=True, text=True)
    assert (child.returncode, child.stderr) == (0, "")
    return json.loads(child.stdout)


START_AND_END_EVENTS = [
    ("CommandStartedEvent", "CommandSucceededEvent", "CommandFailedEvent"),
    ("ServerHeartbeatStartedEvent", "ServerHeartbeatSucceededEvent", "ServerHeartbeatFailedEvent"),
    ("ConnectionCheckOutStartedEvent", "ConnectionCheckedOutEvent", "ConnectionCheckOutFailedEvent"),
    ("ConnectionCheckedOutEvent", "ConnectionCheckedInEvent"),
    ("ConnectionCreatedEvent", "ConnectionClosedEvent"),
    ("PoolCreatedEvent", "PoolClosedEvent"),
    ("ServerOpeningEvent", "ServerClosedEvent"),
    ("TopologyOpenedEvent", "TopologyClosedEvent"),
]
SCENARIOS = [
    ("handler", "locked", "undisturbed"),
    ("handler", "slow", "undisturbed"),
    ("handler", "raising", "undisturbed"),
    ("handler", "locked", "interrupted"),
    ("handler", "slow", "interrupted"),
    ("listener", "locked", "interrupted"),
    ("listener", "slow", "interrupted"),
    ("listener", "raising", "interrupted"),
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("callback_kind", "callback_behavior", "disturbance"), SCENARIOS)
def test_slow_or_failing_callback_loses_no_event_connection_or_session(
    deployment, callback_kind, callback_behavior, disturbance
):
    result = run_program(deployment, callback_kind, callback_behavior, disturbance)
    assert result["during"] == {"errors": [], "settled": True, "generation": 0, "sessions": 0, "stored": 20}
    counts = Counter(result["counts"])
    for start, *ends in START_AND_END_EVENTS:
        assert counts[start] == sum(counts[each] for each in ends) > 0, start
    assert bool(counts["interrupted"]) == (disturbance == "interrupted")
    assert result["joined"]
    components = {"gmongo.command", "gmongo.connection", "gmongo.serverSelection", "gmongo.topology"}
    assert set(result["loggers"]) >= (components if callback_kind == "handler" else set())
    eventually(lambda: not any(member.connections for member in deployment.members))
