"""The prose tests of the Retryable Reads specification."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.errors import OperationFailure
from gmongo.testing import Deployment
from tests.execution.harness import BOTH, RETRYABLE, events_of_command, fail
from tests.support.clients import Connect
from tests.support.recorder import Recorder
from tests.support.wait import eventually


def addresses_of_events(recorder: Recorder, event_name: str) -> list[Any]:
    return [event.connection_id for event in recorder.events_named(event_name) if event.command_name == "find"]


def test_1_read_is_retried_after_pool_cleared_error(connect: Connect, recorder: Recorder) -> None:
    with Deployment.standalone() as deployment:
        client = connect(deployment, maxPoolSize=1, serverMonitoringMode="poll")
        fail(deployment, "find", times=1, code=91, labels=None, blockConnection=True, blockTimeMS=100)
        both = [gevent.spawn(client.db.c.find_one) for _ in range(2)]
        gevent.joinall(both, timeout=5, raise_error=True)
        kinds = ["ConnectionCheckedOut", "PoolCleared", "ConnectionCheckOutFailed"]
        assert recorder.lines_starting_with(*kinds)[:3] == kinds
        (failed,) = recorder.events_named("ConnectionCheckOutFailed")
        assert failed.reason == "connectionError"
        assert events_of_command(recorder, "find").count("CommandStarted") == 3


def test_2_1_read_is_retried_on_a_different_mongos(connect: Connect, recorder: Recorder) -> None:
    with Deployment.sharded(2) as cluster:
        client = connect(cluster, localThresholdMS=1000)
        eventually(lambda: len(client.nodes) == 2)
        for _ in range(8):
            recorder.clear()
            fail(cluster, "find", times=1, code=6, labels=None)
            with pytest.raises(OperationFailure):
                client.db.c.find_one()
            failed = addresses_of_events(recorder, "CommandFailed")
            assert len(failed) == 2
            assert failed[0] != failed[1]


def test_2_2_read_is_retried_on_the_only_mongos(connect: Connect, recorder: Recorder) -> None:
    with Deployment.sharded(1) as cluster:
        client = connect(cluster, directConnection=False)
        fail(cluster, "find", times=1, code=6, labels=None)
        client.db.c.find_one()
        assert len(addresses_of_events(recorder, "CommandFailed")) == 1
        assert addresses_of_events(recorder, "CommandSucceeded") == addresses_of_events(recorder, "CommandFailed")


@pytest.mark.parametrize(
    ("labels", "options", "uses_same_member"),
    [(BOTH, {"enableOverloadRetargeting": True}, False), ([RETRYABLE], {}, True), (BOTH, {}, True)],
    ids=["3.1", "3.2", "3.3"],
)
def test_3_only_overload_errors_with_retargeting_are_retried_on_another_member(
    connect: Connect,
    recorder: Recorder,
    sleeps: list[float],
    labels: list[str],
    options: dict[str, Any],
    uses_same_member: bool,
) -> None:
    """Check an overload error with retargeting (test 3.1) and without retargeting (test 3.3).

    Test 3.2 checks a retryable error that has no overload label.
    """
    with Deployment.replica_set(3) as members:
        client = connect(members, readPreference="primaryPreferred", **options)
        eventually(lambda: client.primary and len(client.secondaries) == 2)
        fail(members, "find", times=1, code=6, labels=labels, member=members.members.primary)
        client.db.c.find_one()
        (failed,), (succeeded,) = (
            addresses_of_events(recorder, "CommandFailed"),
            addresses_of_events(recorder, "CommandSucceeded"),
        )
        assert (failed == succeeded) is uses_same_member
