"""After failed heartbeats, cursors wait for server selection, and all attempts of an operation have
one ID.
"""

from __future__ import annotations

from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.testing import Deployment
from tests.support.fail_points import close_connection_at, fail
from tests.support.recorder import Recorder

CHECKS = ("hello", "isMaster", "ismaster")


def test_get_more_after_failed_heartbeat_waits_for_server_selection() -> None:
    recorder = Recorder()
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient[Any](
            deployment.uri, heartbeatFrequencyMS=500, appName="checked", event_listeners=[recorder]
        ) as client,
    ):
        client.db.c.insert_many([{"_id": number} for number in range(5)])
        cursor = client.db.c.find({}, batch_size=1)
        next(cursor)
        fail(deployment, *CHECKS, times=4, closeConnection=True, appName="checked")
        recorder.wait_for("HeartbeatFailed")
        assert [each["_id"] for each in cursor.to_list()] == [1, 2, 3, 4]


def test_get_more_after_failed_heartbeats_raises_after_server_selection_timeout() -> None:
    recorder = Recorder()
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient[Any](
            deployment.uri,
            heartbeatFrequencyMS=500,
            serverSelectionTimeoutMS=300,
            appName="checked",
            event_listeners=[recorder],
        ) as client,
    ):
        client.db.c.insert_many([{"_id": number} for number in range(5)])
        cursor = client.db.c.find({}, batch_size=1)
        next(cursor)
        fail(deployment, *CHECKS, times=1000, closeConnection=True, appName="checked")
        recorder.wait_for("HeartbeatFailed")
        with pytest.raises(ServerSelectionTimeoutError, match="which has the cursor"):
            cursor.to_list()


@pytest.mark.parametrize(
    ("command", "run_operation"),
    [
        ("find", lambda c: c.find_one()),
        ("insert", lambda c: c.insert_one({})),
        ("update", lambda c: c.update_one({}, {"$set": {"a": 1}})),
        ("findAndModify", lambda c: c.find_one_and_delete({"_id": 1})),
        ("listIndexes", lambda c: c.list_indexes().to_list()),
    ],
)
def test_all_attempts_of_an_operation_have_one_operation_id(command: str, run_operation: Any) -> None:
    recorder = Recorder()
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient[Any](deployment.uri, event_listeners=[recorder], heartbeatFrequencyMS=500) as client,
    ):
        client.db.c.insert_one({"_id": 1})
        close_connection_at(deployment, command)
        recorder.clear()
        run_operation(client.db.c)
        assert recorder.commands == [command, command]
        assert len({event.operation_id for event in recorder.events_named("CommandStarted")}) == 1
