"""Prose tests of the Causal Consistency specification. The specification has no test 10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bson import Timestamp

from gmongo import InsertOne
from gmongo.errors import OperationFailure
from gmongo.read_concern import ReadConcern
from gmongo.testing import Deployment
from tests.execution.harness import fail
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder

Run = Callable[[Any, Any], Any]

READS: dict[str, tuple[str, Run]] = {
    "find_one": ("find", lambda c, s: c.find_one({}, session=s)),
    "find": ("find", lambda c, s: list(c.find({}, session=s))),
    "aggregate": ("aggregate", lambda c, s: list(c.aggregate([{"$match": {}}], session=s))),
    "count_documents": ("aggregate", lambda c, s: c.count_documents({}, session=s)),
    "distinct": ("distinct", lambda c, s: c.distinct("x", session=s)),
}
WRITES: dict[str, tuple[str, Run]] = {
    "insert_one": ("insert", lambda c, s: c.insert_one({}, session=s)),
    "insert_many": ("insert", lambda c, s: c.insert_many([{}, {}], session=s)),
    "bulk_write": ("insert", lambda c, s: c.bulk_write([InsertOne({})], session=s)),
    "update_one": ("update", lambda c, s: c.update_one({}, {"$set": {"x": 1}}, session=s)),
    "update_many": ("update", lambda c, s: c.update_many({}, {"$set": {"x": 1}}, session=s)),
    "replace_one": ("update", lambda c, s: c.replace_one({"_id": 1}, {"x": 1}, session=s)),
    "delete_one": ("delete", lambda c, s: c.delete_one({"_id": 0}, session=s)),
    "delete_many": ("delete", lambda c, s: c.delete_many({"_id": 0}, session=s)),
    "find_one_and_update": ("findAndModify", lambda c, s: c.find_one_and_update({}, {"$set": {"x": 1}}, session=s)),
    "find_one_and_replace": ("findAndModify", lambda c, s: c.find_one_and_replace({}, {"x": 1}, session=s)),
    "find_one_and_delete": ("findAndModify", lambda c, s: c.find_one_and_delete({"_id": 0}, session=s)),
}
LABELS = {"labels": None, "code": 2}


def last_command(deployment: Deployment, name: str) -> dict[str, Any]:
    return deployment.commands.named(name)[-1].body


@pytest.fixture
def collection(client: Client) -> Any:
    client.db.c.insert_many([{"_id": number, "x": number} for number in range(3)])
    return client.db.c


def test_1_2_first_read_sends_no_after_cluster_time(deployment: Deployment, client: Client, collection: Any) -> None:
    """Check that a new session has no operationTime (test 1).

    Check that the first read in the session sends no afterClusterTime (test 2).
    """
    with client.start_session(causal_consistency=True) as session:
        assert session.operation_time is None
        collection.find_one({}, session=session)
        assert "readConcern" not in last_command(deployment, "find")


@pytest.mark.parametrize("operation_fails", [False, True])
def test_3_first_operation_sets_operation_time(
    deployment: Deployment, client: Client, collection: Any, recorder: Recorder, operation_fails: bool
) -> None:
    """Check that the first read sets the operationTime of the session, even if the read fails (test
    3).
    """
    with client.start_session() as session:
        if operation_fails:
            fail(deployment, "find", times=1, **LABELS)
            with pytest.raises(OperationFailure):
                collection.find_one({}, session=session)
            reply = recorder.events_named("CommandFailed")[-1].failure
        else:
            collection.find_one({}, session=session)
            reply = recorder.events_named("CommandSucceeded")[-1].reply
        assert session.operation_time == reply["operationTime"]
        assert isinstance(session.operation_time, Timestamp)


@pytest.mark.parametrize("read", READS)
def test_4_read_sends_operation_time_of_find_one(
    deployment: Deployment, client: Client, collection: Any, read: str
) -> None:
    name, run = READS[read]
    with client.start_session(causal_consistency=True) as session:
        collection.find_one({}, session=session)
        time = session.operation_time
        collection.insert_one({})  # increases the server's operation time, but not the session's
        run(collection, session)
        assert last_command(deployment, name)["readConcern"] == {"afterClusterTime": time}


@pytest.mark.parametrize("write_fails", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_5_find_one_sends_operation_time_of_write(
    deployment: Deployment, client: Client, collection: Any, write: str, write_fails: bool
) -> None:
    name, run = WRITES[write]
    with client.start_session(causal_consistency=True) as session:
        if write_fails:
            fail(deployment, name, times=1, **LABELS)
            with pytest.raises(OperationFailure):
                run(collection, session)
        else:
            run(collection, session)
        time = session.operation_time
        assert time is not None
        collection.find_one({}, session=session)
        assert last_command(deployment, "find")["readConcern"] == {"afterClusterTime": time}


@pytest.mark.parametrize("read", READS)
def test_6_session_without_causal_consistency_sends_no_after_cluster_time(
    deployment: Deployment, client: Client, collection: Any, read: str
) -> None:
    name, run = READS[read]
    with client.start_session(causal_consistency=False) as session:
        run(collection, session)
        assert session.operation_time is not None
        run(collection, session)
        assert "readConcern" not in last_command(deployment, name)


def test_7_11_standalone_receives_no_cluster_time(connect: Connect) -> None:
    """Check that commands to a standalone have no afterClusterTime (test 7) and no $clusterTime
    (test 11).
    """
    with Deployment.standalone() as deployment:
        client = connect(deployment)
        with client.start_session(causal_consistency=True) as session:
            for _ in range(2):
                client.db.c.find_one({}, session=session)
                assert "readConcern" not in last_command(deployment, "find")
                assert "$clusterTime" not in last_command(deployment, "find")


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("level", [None, "majority"])
def test_8_9_read_concern_level_is_merged_with_after_cluster_time(
    deployment: Deployment, client: Client, collection: Any, read: str, level: str | None
) -> None:
    """Check that the default read concern sends no level besides afterClusterTime (test 8).

    Check that the driver sends a custom level together with afterClusterTime (test 9).
    """
    name, run = READS[read]
    custom = collection.with_options(read_concern=ReadConcern(level))
    with client.start_session(causal_consistency=True) as session:
        custom.find_one({}, session=session)
        time = session.operation_time
        run(custom, session)
        expected: dict[str, Any] = {"afterClusterTime": time} | ({"level": level} if level else {})
        assert last_command(deployment, name)["readConcern"] == expected


def test_12_commands_have_cluster_time(deployment: Deployment, client: Client, collection: Any) -> None:
    collection.find_one({})
    assert isinstance(last_command(deployment, "find")["$clusterTime"]["clusterTime"], Timestamp)


@pytest.mark.parametrize("write", WRITES)
def test_13_write_sends_operation_time_of_find_one(
    deployment: Deployment, client: Client, collection: Any, write: str
) -> None:
    name, run = WRITES[write]
    with client.start_session(causal_consistency=True) as session:
        collection.find_one({}, session=session)
        time = session.operation_time
        run(collection, session)
        assert last_command(deployment, name)["readConcern"] == {"afterClusterTime": time}
