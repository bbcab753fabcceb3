"""The prose tests of the Retryable Writes specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest

from gmongo.errors import AutoReconnect, NotPrimaryError, OperationFailure, WriteConcernError
from gmongo.testing import Deployment
from tests.execution.harness import BOTH, NO_WRITES, fail, told
from tests.support.clients import Client
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

LABEL = "RetryableWriteError"


def addresses(recorder: Recorder, kind: str) -> list[Any]:
    return [event.connection_id for event in recorder.of(kind) if event.command_name == "insert"]


@pytest.mark.requirement("BP-49")
def test_1_a_storage_engine_without_retryable_writes(server: ScriptedServer, scripted: Client) -> None:
    """1. Retryable writes raise an exception when using the MMAPv1 storage engine."""
    server.replies["insert"] = {"ok": 0, "code": 20, "errmsg": "Transaction numbers are only allowed on a replica set"}
    with pytest.raises(OperationFailure) as raised:
        scripted.db.c.insert_one({})
    assert raised.value.code == 20
    assert str(raised.value).startswith(
        "This MongoDB deployment does not support retryable writes. "
        "Please add retryWrites=false to your connection string."
    )


def test_2_pool_cleared_error(deployment: Deployment, connect: Callable[..., Client], recorder: Recorder) -> None:
    """2. Drivers properly retry after encountering PoolClearedErrors."""
    client = connect(deployment, maxPoolSize=1, serverMonitoringMode="poll")
    fail(deployment, "insert", times=1, code=91, labels=[LABEL], blockConnection=True, blockTimeMS=100)
    both = [gevent.spawn(client.db.c.insert_one, {}) for _ in range(2)]
    gevent.joinall(both, timeout=5, raise_error=True)
    kinds = ["ConnectionCheckedOut", "PoolCleared", "ConnectionCheckOutFailed"]
    assert recorder.only(*kinds)[:3] == kinds
    (failed,) = recorder.of("ConnectionCheckOutFailed")
    assert failed.reason == "connectionError"
    assert told(recorder, "insert").count("CommandStarted") == 3
    assert client.db.c.count_documents({}) == 2


def test_3_the_original_error(deployment: Deployment, connect: Callable[..., Client], recorder: Recorder) -> None:
    """3. Drivers return the original error after a WriteConcernError with a RetryableWriteError label."""
    client = connect(deployment, serverMonitoringMode="poll")
    fail(deployment, "insert", times=1, code=None, labels=[LABEL], writeConcernError={"code": 91, "errmsg": "shutting"})

    def then(event: Any) -> None:
        if event.command_name == "insert" and event.reply.get("writeConcernError", {}).get("code") == 91:
            fail(deployment, "insert", times=1, code=10107, labels=[LABEL, NO_WRITES])

    recorder.hooks["CommandSucceeded"] = then
    with pytest.raises(WriteConcernError) as raised:
        client.db.c.insert_one({})
    assert raised.value.code == 91
    assert len(deployment.commands.named("insert")) == 2


def test_4_on_a_different_mongos(connect: Callable[..., Client], recorder: Recorder) -> None:
    """4. In a sharded cluster writes are retried on a different mongos when one is available."""
    with Deployment.sharded(2) as cluster:
        client = connect(cluster, localThresholdMS=1000)
        eventually(lambda: len(client.nodes) == 2)
        for _ in range(8):
            recorder.forget()
            fail(cluster, "insert", times=1, code=6, labels=[LABEL])
            with pytest.raises(OperationFailure):
                client.db.c.insert_one({})
            failed = addresses(recorder, "CommandFailed")
            assert len(failed) == 2
            assert failed[0] != failed[1]


def test_5_on_the_same_mongos(connect: Callable[..., Client], recorder: Recorder) -> None:
    """5. In a sharded cluster writes are retried on the same mongos when no others are available."""
    with Deployment.sharded(1) as cluster:
        client = connect(cluster, directConnection=False)
        fail(cluster, "insert", times=1, code=6, labels=[LABEL], closeConnection=True)
        client.db.c.insert_one({})
        (failed,), (succeeded,) = addresses(recorder, "CommandFailed"), addresses(recorder, "CommandSucceeded")
        assert failed == succeeded


CASES = {  # case -> labels of the first error, code and labels of the others, the code that is raised
    "case 1": ([], 10107, [], 10107),
    "case 2": ([NO_WRITES], 10107, [NO_WRITES], 91),
    "case 3": ([], 91, [NO_WRITES], 91),
}


@pytest.mark.requirement("BP-36", "BP-54")
@pytest.mark.parametrize("case", CASES)
def test_6_which_of_several_errors(
    deployment: Deployment, connect: Callable[..., Client], recorder: Recorder, sleeps: list[float], case: str
) -> None:
    """6. Error propagation after encountering multiple errors."""
    first, code, others, expected = CASES[case]
    client = connect(deployment, serverMonitoringMode="poll", maxAdaptiveRetries=2)
    fail(deployment, "insert", times=1, code=91, labels=[*BOTH, *first])

    def then(event: Any) -> None:
        if event.command_name == "insert" and event.failure.get("code") == 91:
            fail(deployment, "insert", code=code, labels=[*BOTH, *others])

    recorder.hooks["CommandFailed"] = then
    with pytest.raises(AutoReconnect) as raised:
        client.db.c.insert_one({})
    assert isinstance(raised.value, NotPrimaryError)
    assert raised.value.code == expected
    assert len(deployment.commands.named("insert")) == 3
    if case == "case 3":
        assert not raised.value.has_error_label(NO_WRITES)
