"""The prose tests of the Retryable Writes specification."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect, NotPrimaryError, OperationFailure, WriteConcernError
from gmongo.testing import Deployment
from tests.execution.harness import BOTH, NO_WRITES, events_of_command, fail
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

LABEL = "RetryableWriteError"


def addresses_of_events(recorder: Recorder, event_name: str) -> list[Any]:
    return [event.connection_id for event in recorder.events_named(event_name) if event.command_name == "insert"]


@pytest.mark.requirement("BP-49")
def test_1_storage_engine_without_retryable_writes_raises_hint(server: ScriptedServer, scripted: Client) -> None:
    server.replies["insert"] = {"ok": 0, "code": 20, "errmsg": "Transaction numbers are only allowed on a replica set"}
    with pytest.raises(OperationFailure) as raised:
        scripted.db.c.insert_one({})
    assert raised.value.code == 20
    assert str(raised.value).startswith(
        "This MongoDB deployment does not support retryable writes. "
        "Please add retryWrites=false to your connection string."
    )


def test_2_write_is_retried_after_pool_cleared(deployment: Deployment, connect: Connect, recorder: Recorder) -> None:
    client = connect(deployment, maxPoolSize=1, serverMonitoringMode="poll")
    fail(deployment, "insert", times=1, code=91, labels=[LABEL], blockConnection=True, blockTimeMS=100)
    both = [gevent.spawn(client.db.c.insert_one, {}) for _ in range(2)]
    gevent.joinall(both, timeout=5, raise_error=True)
    kinds = ["ConnectionCheckedOut", "PoolCleared", "ConnectionCheckOutFailed"]
    assert recorder.lines_starting_with(*kinds)[:3] == kinds
    (failed,) = recorder.events_named("ConnectionCheckOutFailed")
    assert failed.reason == "connectionError"
    assert events_of_command(recorder, "insert").count("CommandStarted") == 3
    assert client.db.c.count_documents({}) == 2


def test_3_write_concern_error_is_raised_if_retry_fails_with_no_writes_performed(
    deployment: Deployment, connect: Connect, recorder: Recorder
) -> None:
    client = connect(deployment, serverMonitoringMode="poll")
    fail(deployment, "insert", times=1, code=None, labels=[LABEL], writeConcernError={"code": 91, "errmsg": "shutting"})

    def set_next_fail_point(event: Any) -> None:
        if event.command_name == "insert" and event.reply.get("writeConcernError", {}).get("code") == 91:
            fail(deployment, "insert", times=1, code=10107, labels=[LABEL, NO_WRITES])

    recorder.hooks["CommandSucceeded"] = set_next_fail_point
    with pytest.raises(WriteConcernError) as raised:
        client.db.c.insert_one({})
    assert raised.value.code == 91
    assert len(deployment.commands.named("insert")) == 2


def test_4_write_is_retried_on_a_different_mongos(connect: Connect, recorder: Recorder) -> None:
    with Deployment.sharded(2) as cluster:
        client = connect(cluster, localThresholdMS=1000)
        eventually(lambda: len(client.nodes) == 2)
        for _ in range(8):
            recorder.clear()
            fail(cluster, "insert", times=1, code=6, labels=[LABEL])
            with pytest.raises(OperationFailure):
                client.db.c.insert_one({})
            failed = addresses_of_events(recorder, "CommandFailed")
            assert len(failed) == 2
            assert failed[0] != failed[1]


def test_5_write_is_retried_on_the_only_mongos(connect: Connect, recorder: Recorder) -> None:
    with Deployment.sharded(1) as cluster:
        client = connect(cluster, directConnection=False)
        fail(cluster, "insert", times=1, code=6, labels=[LABEL], closeConnection=True)
        client.db.c.insert_one({})
        (failed,), (succeeded,) = (
            addresses_of_events(recorder, "CommandFailed"),
            addresses_of_events(recorder, "CommandSucceeded"),
        )
        assert failed == succeeded


# For each case: the labels of the first error, the code and labels of the later errors, and the
# code of the raised error.
CASES = {
    "case 1": ([], 10107, [], 10107),
    "case 2": ([NO_WRITES], 10107, [NO_WRITES], 91),
    "case 3": ([], 91, [NO_WRITES], 91),
}


@pytest.mark.requirement("BP-36", "BP-54")
@pytest.mark.parametrize("case", CASES)
def test_6_last_error_with_writes_is_raised_after_several_errors(
    deployment: Deployment, connect: Connect, recorder: Recorder, sleeps: list[float], case: str
) -> None:
    first, code, others, expected = CASES[case]
    client = connect(deployment, serverMonitoringMode="poll", maxAdaptiveRetries=2)
    fail(deployment, "insert", times=1, code=91, labels=[*BOTH, *first])

    def set_next_fail_point(event: Any) -> None:
        if event.command_name == "insert" and event.failure.get("code") == 91:
            fail(deployment, "insert", code=code, labels=[*BOTH, *others])

    recorder.hooks["CommandFailed"] = set_next_fail_point
    with pytest.raises(AutoReconnect) as raised:
        client.db.c.insert_one({})
    assert isinstance(raised.value, NotPrimaryError)
    assert raised.value.code == expected
    assert len(deployment.commands.named("insert")) == 3
    if case == "case 3":
        assert not raised.value.has_error_label(NO_WRITES)
