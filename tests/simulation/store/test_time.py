"""Tests of long commands, and of the expiry of documents, in a simulated store."""

from __future__ import annotations

import datetime

import gevent
import pytest

from gmongo.testing.command import CommandError

from .shell import replica_set, standalone

NOW = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
HOUR = datetime.timedelta(hours=1)
PARAMETERS = {"transactionLifetimeLimitSeconds": 60, "ttlMonitorEnabled": True, "ttlMonitorSleepSecs": 0}


def create_ttl_index(shell, **options):
    index = {"key": {"at": 1}, "name": "ttl", "expireAfterSeconds": 60, **options}
    shell("createIndexes", "c", indexes=[index])
    shell.insert(
        {"_id": "old", "at": NOW - HOUR},
        {"_id": "new", "at": NOW + HOUR},
        {"_id": "one is old", "at": [NOW + HOUR, NOW - HOUR]},
        {"_id": "no date", "at": 5},
        {"_id": "missing"},
    )


def remaining_ids(shell):
    return [document["_id"] for document in shell.find()]


def test_documents_of_ttl_index_expire():
    shell = replica_set()
    create_ttl_index(shell)
    cursor = shell("aggregate", "c", pipeline=[{"$changeStream": {}}], cursor={})["cursor"]
    shell.store.run_due_work(PARAMETERS)
    assert remaining_ids(shell) == ["new", "no date", "missing"]
    events = shell("getMore", cursor["id"], collection="c", maxTimeMS=1)["cursor"]["nextBatch"]
    assert [event["operationType"] for event in events] == ["delete", "delete"]


def test_expired_documents_remain_until_ttl_monitor_runs():
    shell = standalone()
    create_ttl_index(shell)
    shell.store.run_due_work({**PARAMETERS, "ttlMonitorSleepSecs": 60})
    shell.store.run_due_work({**PARAMETERS, "ttlMonitorEnabled": False})
    assert len(remaining_ids(shell)) == 5


def test_partial_ttl_index_expires_only_documents_in_index():
    shell = standalone()
    create_ttl_index(shell, partialFilterExpression={"_id": "one is old"})
    shell.store.run_due_work(PARAMETERS)
    assert remaining_ids(shell) == ["old", "new", "no date", "missing"]


def test_document_written_in_open_transaction_does_not_expire_before_end_of_transaction():
    shell = replica_set()
    create_ttl_index(shell)
    transaction = shell.with_session().transaction(1)
    transaction("update", "c", updates=[{"q": {"_id": "old"}, "u": {"$set": {"x": 1}}}], startTransaction=True)
    shell.store.run_due_work(PARAMETERS)
    assert "old" in remaining_ids(shell)
    transaction.end_transaction("abortTransaction")
    shell.store.run_due_work(PARAMETERS)
    assert "old" not in remaining_ids(shell)


def insert_many_and_return_slow_pipeline(shell):
    shell.insert(*({"_id": number, "v": "x" * 50} for number in range(3000)))
    return [{"$project": {"n": {"$size": {"$map": {"input": [1] * 50, "in": {"$add": ["$_id", "$$this"]}}}}}}]


def test_other_greenlets_run_during_long_pipeline():
    shell = standalone()
    pipeline = insert_many_and_return_slow_pipeline(shell)
    runs = []

    def count_runs():
        while True:
            runs.append(1)
            gevent.sleep(0)

    other = gevent.spawn(count_runs)
    shell.aggregate(*pipeline)
    other.kill()
    assert len(runs) > 3


@pytest.mark.parametrize("command", ["aggregate", "find", "update"])
def test_time_limit_interrupts_long_command(command):
    shell = standalone()
    pipeline = insert_many_and_return_slow_pipeline(shell)
    slow = {"$expr": {"$lt": [pipeline[0]["$project"]["n"], 0]}}
    fields = {
        "aggregate": {"pipeline": pipeline, "cursor": {}},
        "find": {"filter": slow},
        "update": {"updates": [{"q": slow, "u": {"$set": {"x": 1}}, "multi": True}]},
    }
    with pytest.raises(CommandError) as caught:
        shell(command, "c", maxTimeMS=5, **fields[command])
    assert caught.value.code == 50


def test_update_skips_documents_that_no_longer_match_after_pause():
    shell = standalone()
    insert_many_and_return_slow_pipeline(shell)
    slow = {"$expr": {"$gte": [{"$size": {"$map": {"input": [1] * 300, "in": "$$this"}}}, 0]}}
    update = gevent.spawn(
        shell, "update", "c", updates=[{"q": {"done": None, **slow}, "u": {"$set": {"done": 1}}, "multi": True}]
    )
    gevent.sleep(0)
    shell.update({"_id": 2999}, {"$set": {"done": 2}})
    shell("delete", "c", deletes=[{"q": {"_id": 2998}, "limit": 1}])
    assert not update.ready()
    assert update.get(timeout=30)["n"] == 2998
    assert shell.find(filter={"_id": 2999})[0]["done"] == 2
