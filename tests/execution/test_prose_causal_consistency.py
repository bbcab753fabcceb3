"""Prose tests of the Causal Consistency specification, which has no test 10.

Test 3 of the Driver Sessions specification covers test 12.
"""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import fail
from tests.execution.operations import SESSION_OPERATIONS
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder

READS = ("find_one", "find", "aggregate", "count_documents", "distinct")
WRITES = (
    "insert_one",
    "insert_many",
    "bulk_write",
    "update_one",
    "update_many",
    "replace_one",
    "delete_one",
    "delete_many",
    "find_one_and_update",
    "find_one_and_replace",
    "find_one_and_delete",
)


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


@pytest.mark.parametrize("operation", [*READS, *WRITES])
def test_4_13_operation_sends_operation_time_of_find_one(
    deployment: Deployment, client: Client, collection: Any, operation: str
) -> None:
    name, run = SESSION_OPERATIONS[operation]
    with client.start_session(causal_consistency=True) as session:
        collection.find_one({}, session=session)
        time = session.operation_time
        collection.insert_one({})  # a write outside the session
        run(client, session)
        assert last_command(deployment, name)["readConcern"] == {"afterClusterTime": time}


@pytest.mark.parametrize("operation_fails", [False, True])
@pytest.mark.parametrize("operation", ["find_one", *WRITES])
def test_3_5_find_one_sends_operation_time_of_previous_operation(
    deployment: Deployment, client: Client, collection: Any, recorder: Recorder, operation: str, operation_fails: bool
) -> None:
    """Check that an operation sets the operationTime of the session, even if the operation fails."""
    name, run = SESSION_OPERATIONS[operation]
    with client.start_session(causal_consistency=True) as session:
        if operation_fails:
            fail(deployment, name, times=1, labels=None, code=2)
            with pytest.raises(OperationFailure):
                run(client, session)
            reply = recorder.events_named("CommandFailed")[-1].failure
        else:
            run(client, session)
            reply = recorder.events_named("CommandSucceeded")[-1].reply
        assert session.operation_time == reply["operationTime"]
        collection.find_one({}, session=session)
        assert last_command(deployment, "find")["readConcern"] == {"afterClusterTime": reply["operationTime"]}


@pytest.mark.parametrize("read", READS)
def test_6_session_without_causal_consistency_sends_no_after_cluster_time(
    deployment: Deployment, client: Client, collection: Any, read: str
) -> None:
    name, run = SESSION_OPERATIONS[read]
    with client.start_session(causal_consistency=False) as session:
        run(client, session)
        assert session.operation_time is not None
        run(client, session)
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
    deployment: Deployment, connect: Connect, collection: Any, read: str, level: str | None
) -> None:
    """Check that the default read concern sends no level besides afterClusterTime (test 8).

    Check that the driver sends a custom level together with afterClusterTime (test 9).
    """
    name, run = SESSION_OPERATIONS[read]
    client = connect(deployment, **({"readConcernLevel": level} if level else {}))
    with client.start_session(causal_consistency=True) as session:
        client.db.c.find_one({}, session=session)
        time = session.operation_time
        run(client, session)
        expected: dict[str, Any] = {"afterClusterTime": time} | ({"level": level} if level else {})
        assert last_command(deployment, name)["readConcern"] == expected
