"""MongoDB 4.2, the oldest supported version, streams no hello replies, and labels no
retryable errors.
"""

from __future__ import annotations

from collections.abc import Iterator

import gevent
import pytest

from gmongo.errors import OperationFailure, PyMongoError
from gmongo.testing import Deployment
from tests.execution.harness import fail
from tests.support.clients import Client, Connect


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with Deployment.replica_set(1, version="4.2") as deployment:
        yield deployment


@pytest.mark.parametrize("code", [91, 189, 10107])
def test_write_is_retried_after_retryable_error_code(deployment: Deployment, client: Client, code: int) -> None:
    fail(deployment, "insert", times=1, code=code, labels=None)
    client.db.c.insert_one({"_id": 1})
    sent = deployment.commands.named("insert")
    assert len(sent) == 2
    assert sent[0].body["txnNumber"] == sent[1].body["txnNumber"]


def test_driver_adds_retryable_write_label_to_retryable_errors_only(deployment: Deployment, client: Client) -> None:
    fail(deployment, "insert", code=189, labels=None)
    with pytest.raises(PyMongoError) as raised:
        client.db.c.insert_one({"_id": 1})
    assert raised.value.has_error_label("RetryableWriteError")
    fail(deployment, "insert", code=2, labels=None)
    with pytest.raises(OperationFailure) as other_error:
        client.db.c.insert_one({"_id": 1})
    assert not other_error.value.has_error_label("RetryableWriteError")


@pytest.mark.parametrize("deployment_kind", ["replica_set", "sharded"])
@pytest.mark.parametrize("code", [91, 262])
def test_retryable_write_concern_error_is_retried_except_on_mongos(
    connect: Connect, deployment_kind: str, code: int
) -> None:
    with getattr(Deployment, deployment_kind)(1, version="4.2") as deployment:
        client = connect(deployment)
        concern = {"code": code, "errmsg": "not yet"}
        fail(deployment, "insert", times=1, code=None, labels=None, writeConcernError=concern)
        if deployment_kind == "sharded":
            with pytest.raises(PyMongoError) as raised:
                client.db.c.insert_one({"_id": 1})
            assert not raised.value.has_error_label("RetryableWriteError")
            assert len(deployment.commands.named("insert")) == 1
        else:
            client.db.c.insert_one({"_id": 1})
            assert len(deployment.commands.named("insert")) == 2


@pytest.mark.parametrize(("code", "stream_resumes"), [(91, True), (189, True), (11601, False)])
def test_change_stream_of_server_4_2_resumes_by_error_code(
    deployment: Deployment, client: Client, code: int, stream_resumes: bool
) -> None:
    client.db.c.insert_one({"_id": 0})
    with client.db.c.watch(max_await_time_ms=200) as stream, gevent.Timeout(5):
        fail(deployment, "getMore", times=1, code=code, labels=None)
        client.db.c.insert_one({"_id": 1})
        if stream_resumes:
            assert stream.next()["fullDocument"] == {"_id": 1}
            assert len(deployment.commands.named("aggregate")) == 2
        else:
            with pytest.raises(OperationFailure):
                stream.next()
