"""A failed check of the server ends no cursor: its next batch waits until the server is found again."""

from __future__ import annotations

from typing import Any

import pytest

from gmongo import MongoClient
from gmongo.errors import ServerSelectionTimeoutError
from gmongo.monitoring import CommandListener, ServerHeartbeatListener
from gmongo.testing import Deployment
from tests.support.server import eventually


class Heartbeats(ServerHeartbeatListener):
    def __init__(self) -> None:
        self.failures = 0

    def started(self, event: Any) -> None:
        pass

    def succeeded(self, event: Any) -> None:
        pass

    def failed(self, event: Any) -> None:
        self.failures += 1


def fail_checks(deployment: Deployment, times: int) -> None:
    data = {"failCommands": ["hello", "isMaster", "ismaster"], "closeConnection": True, "appName": "checked"}
    deployment.set_fail_point("failCommand", {"times": times}, data)


def test_the_next_batch_waits_for_the_server() -> None:
    heartbeats = Heartbeats()
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient[Any](
            deployment.uri, heartbeatFrequencyMS=500, appName="checked", event_listeners=[heartbeats]
        ) as client,
    ):
        client.db.c.insert_many([{"_id": number} for number in range(5)])
        cursor = client.db.c.find({}, batch_size=1)
        next(cursor)
        fail_checks(deployment, 4)
        eventually(lambda: heartbeats.failures > 0)
        assert [each["_id"] for each in cursor.to_list()] == [1, 2, 3, 4]


def test_but_not_for_longer_than_a_server_is_waited_for() -> None:
    heartbeats = Heartbeats()
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient[Any](
            deployment.uri,
            heartbeatFrequencyMS=500,
            serverSelectionTimeoutMS=300,
            appName="checked",
            event_listeners=[heartbeats],
        ) as client,
    ):
        client.db.c.insert_many([{"_id": number} for number in range(5)])
        cursor = client.db.c.find({}, batch_size=1)
        next(cursor)
        fail_checks(deployment, 1000)
        eventually(lambda: heartbeats.failures > 0)
        with pytest.raises(ServerSelectionTimeoutError, match="which has the cursor"):
            cursor.to_list()


class Commands(CommandListener):
    def __init__(self) -> None:
        self.operations: list[tuple[str, int]] = []

    def started(self, event: Any) -> None:
        self.operations.append((event.command_name, event.operation_id))

    def succeeded(self, event: Any) -> None:
        pass

    def failed(self, event: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("find", lambda c: c.find_one()),
        ("insert", lambda c: c.insert_one({})),
        ("update", lambda c: c.update_one({}, {"$set": {"a": 1}})),
        ("findAndModify", lambda c: c.find_one_and_delete({"_id": 1})),
        ("listIndexes", lambda c: c.list_indexes().to_list()),
    ],
)
def test_all_tries_of_an_operation_have_its_number(command: str, call: Any) -> None:
    commands = Commands()
    with (
        Deployment.replica_set(members=1) as deployment,
        MongoClient[Any](deployment.uri, event_listeners=[commands], heartbeatFrequencyMS=500) as client,
    ):
        client.db.c.insert_one({"_id": 1})
        deployment.set_fail_point("failCommand", {"times": 1}, {"failCommands": [command], "closeConnection": True})
        commands.operations.clear()
        call(client.db.c)
        assert [name for name, _ in commands.operations] == [command, command]
        assert len({number for _, number in commands.operations}) == 1
