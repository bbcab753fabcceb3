"""The prose tests of the Retryable Reads specification and of the Retryable Writes specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gevent
import pytest

from gmongo.errors import AutoReconnect, NotPrimaryError, OperationFailure, WriteConcernError
from gmongo.testing import Deployment
from tests.execution.harness import BOTH_LABELS, NO_WRITES_LABEL, RETRYABLE_LABEL, events_of_command, fail
from tests.support.clients import Client, Connect
from tests.support.recorder import Recorder
from tests.support.server import ScriptedServer
from tests.support.wait import eventually

WRITE_LABEL = "RetryableWriteError"


class OperationKind(NamedTuple):
    """A retryable read or write, and the error labels that the server sends with an error."""

    command: str
    run: Callable[[Client], Any]
    labels: list[str] | None


READ = OperationKind("find", lambda client: client.db.c.find_one(), None)
WRITE = OperationKind("insert", lambda client: client.db.c.insert_one({}), [WRITE_LABEL])
read_and_write = pytest.mark.parametrize("kind", [READ, WRITE], ids=["read", "write"])


def addresses_of_events(recorder: Recorder, event_name: str) -> list[Any]:
    """Return the server address of each event about a `find` or `insert`."""
    events = recorder.events_named(event_name)
    return [event.connection_id for event in events if event.command_name in ("find", "insert")]


@read_and_write
def test_operation_is_retried_after_pool_cleared_error(
    connect: Connect, recorder: Recorder, kind: OperationKind
) -> None:
    """Run test 1 of Retryable Reads and test 2 of Retryable Writes."""
    with Deployment.replica_set(1) as deployment:
        client = connect(deployment, maxPoolSize=1, serverMonitoringMode="poll")
        fail(deployment, kind.command, times=1, code=91, labels=kind.labels, blockConnection=True, blockTimeMS=100)
        greenlets = [gevent.spawn(kind.run, client) for _ in range(2)]
        gevent.joinall(greenlets, timeout=5, raise_error=True)
        event_names = ["ConnectionCheckedOut", "PoolCleared", "ConnectionCheckOutFailed"]
        assert recorder.lines_starting_with(*event_names)[:3] == event_names
        (failed,) = recorder.events_named("ConnectionCheckOutFailed")
        assert failed.reason == "connectionError"
        assert events_of_command(recorder, kind.command).count("CommandStarted") == 3
        assert client.db.c.count_documents({}) == (2 if kind is WRITE else 0)


@read_and_write
def test_operation_is_retried_on_a_different_mongos(connect: Connect, recorder: Recorder, kind: OperationKind) -> None:
    """Run test 2.1 of Retryable Reads and test 4 of Retryable Writes."""
    with Deployment.sharded(2) as cluster:
        client = connect(cluster, localThresholdMS=1000)
        eventually(lambda: len(client.nodes) == 2)
        for _ in range(8):
            recorder.clear()
            fail(cluster, kind.command, times=1, code=6, labels=kind.labels)
            with pytest.raises(OperationFailure):
                kind.run(client)
            failed = addresses_of_events(recorder, "CommandFailed")
            assert len(failed) == 2
            assert failed[0] != failed[1]


@read_and_write
def test_operation_is_retried_on_the_only_mongos(connect: Connect, recorder: Recorder, kind: OperationKind) -> None:
    """Run test 2.2 of Retryable Reads and test 5 of Retryable Writes."""
    with Deployment.sharded(1) as cluster:
        client = connect(cluster, directConnection=False)
        fault_data = {"closeConnection": True} if kind is WRITE else {}
        fail(cluster, kind.command, times=1, code=6, labels=kind.labels, **fault_data)
        kind.run(client)
        assert len(addresses_of_events(recorder, "CommandFailed")) == 1
        assert addresses_of_events(recorder, "CommandSucceeded") == addresses_of_events(recorder, "CommandFailed")


@pytest.mark.parametrize(
    ("labels", "options", "uses_same_member"),
    [(BOTH_LABELS, {"enableOverloadRetargeting": True}, False), ([RETRYABLE_LABEL], {}, True), (BOTH_LABELS, {}, True)],
    ids=["3.1", "3.2", "3.3"],
)
def test_only_overload_errors_with_retargeting_are_retried_on_another_member(
    connect: Connect,
    recorder: Recorder,
    backoffs: list[float],
    labels: list[str],
    options: dict[str, Any],
    uses_same_member: bool,
) -> None:
    """Run the tests 3.1, 3.2 and 3.3 of Retryable Reads."""
    with Deployment.replica_set(3) as deployment:
        client = connect(deployment, readPreference="primaryPreferred", **options)
        eventually(lambda: client.primary and len(client.secondaries) == 2)
        fail(deployment, "find", times=1, code=6, labels=labels, member=deployment.members.primary)
        client.db.c.find_one()
        (failed,), (succeeded,) = (
            addresses_of_events(recorder, "CommandFailed"),
            addresses_of_events(recorder, "CommandSucceeded"),
        )
        assert (failed == succeeded) is uses_same_member


@pytest.mark.requirement("BP-49")
def test_write_to_storage_engine_without_retryable_writes_raises_hint(
    server: ScriptedServer, scripted_client: Client
) -> None:
    """Run test 1 of Retryable Writes."""
    server.replies["insert"] = {"ok": 0, "code": 20, "errmsg": "Transaction numbers are only allowed on a replica set"}
    with pytest.raises(OperationFailure) as raised:
        scripted_client.db.c.insert_one({})
    assert raised.value.code == 20
    assert str(raised.value).startswith(
        "This MongoDB deployment does not support retryable writes. "
        "Please add retryWrites=false to your connection string."
    )


def test_write_concern_error_is_raised_if_retry_fails_with_no_writes_performed(
    deployment: Deployment, connect: Connect, recorder: Recorder
) -> None:
    """Run test 3 of Retryable Writes."""
    client = connect(deployment, serverMonitoringMode="poll")
    fail(deployment, "insert", times=1, code=None, labels=[WRITE_LABEL], writeConcernError={"code": 91, "errmsg": "x"})

    def set_next_fail_point(event: Any) -> None:
        if event.command_name == "insert" and event.reply.get("writeConcernError", {}).get("code") == 91:
            fail(deployment, "insert", times=1, code=10107, labels=[WRITE_LABEL, NO_WRITES_LABEL])

    recorder.hooks["CommandSucceeded"] = set_next_fail_point
    with pytest.raises(WriteConcernError) as raised:
        client.db.c.insert_one({})
    assert raised.value.code == 91
    assert len(deployment.commands.named("insert")) == 2


# Labels of the first error, code of later errors, labels of later errors, code of the raised error
WRITE_ERRORS = {
    "case 1": ([], 10107, [], 10107),
    "case 2": ([NO_WRITES_LABEL], 10107, [NO_WRITES_LABEL], 91),
    "case 3": ([], 91, [NO_WRITES_LABEL], 91),
}


@pytest.mark.requirement("BP-36", "BP-54")
@pytest.mark.parametrize("case", WRITE_ERRORS)
def test_last_error_with_writes_is_raised_after_several_errors(
    deployment: Deployment, connect: Connect, recorder: Recorder, backoffs: list[float], case: str
) -> None:
    """Run test 6 of Retryable Writes."""
    first_labels, code, later_labels, expected_code = WRITE_ERRORS[case]
    client = connect(deployment, serverMonitoringMode="poll", maxAdaptiveRetries=2)
    fail(deployment, "insert", times=1, code=91, labels=[*BOTH_LABELS, *first_labels])

    def set_next_fail_point(event: Any) -> None:
        if event.command_name == "insert" and event.failure.get("code") == 91:
            fail(deployment, "insert", code=code, labels=[*BOTH_LABELS, *later_labels])

    recorder.hooks["CommandFailed"] = set_next_fail_point
    with pytest.raises(AutoReconnect) as raised:
        client.db.c.insert_one({})
    assert isinstance(raised.value, NotPrimaryError)
    assert raised.value.code == expected_code
    assert len(deployment.commands.named("insert")) == 3
    if case == "case 3":
        assert not raised.value.has_error_label(NO_WRITES_LABEL)
