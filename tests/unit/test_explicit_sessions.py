"""Use of an explicit session, and the times that the session takes from replies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gevent
import pytest
from bson import Timestamp

from gmongo.errors import ConfigurationError, InvalidOperation
from gmongo.execution.deadline import until
from gmongo.execution.session_state import OTHER_LIMIT, SessionState
from gmongo.execution.transaction import State


def executor_of(epoch: int = 0) -> Any:
    return SimpleNamespace(sessions=Mock(), epoch=epoch)


def session_of(executor: Any, *, causal: bool = True, snapshot: bool = False) -> SessionState:
    return SessionState(executor, Mock(), causal, snapshot)


def operation_of(*, acknowledged: bool = True, takes_session: bool = True, concern: Any = None, **more: Any) -> Any:
    context = SimpleNamespace(write_concern=concern)
    usual = {"takes_write_concern": concern is not None, "ends_transaction": False}
    return SimpleNamespace(context=context, acknowledged=acknowledged, takes_session=takes_session, **{**usual, **more})


def error_of_use(session: SessionState, executor: Any, operation: Any = None) -> str:
    with pytest.raises((InvalidOperation, ConfigurationError)) as caught:
        session.begin(executor, operation or operation_of())
    return str(caught.value)


def test_unusable_session_raises_error_with_reason() -> None:
    executor = executor_of()
    session = session_of(executor)
    assert error_of_use(session, executor_of()) == "Can only use session with the MongoClient that started it"
    executor.epoch = 1
    assert error_of_use(session, executor) == "the session was started before a fork, and belongs to the parent process"
    executor.epoch = 0
    session.limit = 5.0
    assert error_of_use(session, executor) == OTHER_LIMIT
    with until(4.0):
        assert error_of_use(session, executor) == OTHER_LIMIT
    with until(5.0):
        session.begin(executor, operation_of())
    session.limit = None
    other = gevent.spawn(session.begin, executor, operation_of())
    other.join()
    assert str(other.exception) == ("the session is in use by another greenlet: start one session for each greenlet")
    session.begin(executor, operation_of())  # a listener can nest operations in one greenlet
    session.end_use()
    other = gevent.spawn(session.begin, executor, operation_of())
    other.join()
    assert not other.successful()
    session.end_use()
    gevent.spawn(session.begin, executor, operation_of()).get()
    session.end_use()
    server_session = session.server_session
    for _ in range(2):
        session.release()
    executor.sessions.release.assert_called_once_with(server_session)
    assert session.has_ended and error_of_use(session, executor) == "Cannot use ended session"
    with pytest.raises(InvalidOperation, match=r"^Cannot use ended session$"):
        session.server_session  # noqa: B018


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize(
    ("operation", "outside", "inside"),
    [
        (operation_of(), True, True),
        (operation_of(concern={"w": 1}), True, True),
        (operation_of(concern={"w": 0}), False, True),
        (operation_of(concern={"w": 0}, takes_write_concern=False), True, True),
        (operation_of(takes_session=False), False, True),
        (operation_of(acknowledged=False), False, False),
    ],
)
def test_unacknowledged_write_in_session_raises(active: bool, operation: Any, outside: bool, inside: bool) -> None:
    executor = executor_of()
    session = session_of(executor)
    session.transaction.state = State.IN_PROGRESS if active else State.NONE
    if inside if active else outside:
        session.begin(executor, operation)
    else:
        message = "Explicit sessions are incompatible with unacknowledged write concern: w=0"
        assert error_of_use(session, executor, operation) == message
        gevent.spawn(session.check_free).get()


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("ends", [False, True])
def test_operation_after_ended_transaction_resets_its_state(state: State, ends: bool) -> None:
    executor = executor_of()
    session = session_of(executor)
    session.transaction.state = state
    session.begin(executor, operation_of(ends_transaction=ends))
    stays = ends or state in (State.STARTING, State.IN_PROGRESS)
    assert session.transaction.state is (state if stays else State.NONE)


def test_session_times_never_decrease() -> None:
    session = session_of(executor_of())
    assert (session.cluster_time, session.operation_time, session.operation_time_to_follow) == (None, None, None)
    for seen, kept in ((5, 5), (4, 5), (6, 6)):
        time = {"clusterTime": Timestamp(seen, 0)}
        session.observe({"$clusterTime": time, "operationTime": Timestamp(seen, 1)})
        assert session.cluster_time == {"clusterTime": Timestamp(kept, 0)}
        assert session.operation_time == Timestamp(kept, 1) == session.operation_time_to_follow
    session.observe({"ok": 1})
    assert session.operation_time == Timestamp(6, 1)
    other = session_of(executor_of(), causal=False)
    other.observe({"operationTime": Timestamp(6, 1)})
    assert other.operation_time == Timestamp(6, 1) and other.operation_time_to_follow is None


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("seen", [False, True])
def test_consistent_command_has_after_cluster_time(consistent: bool, seen: bool) -> None:
    session = session_of(executor_of())
    if seen:
        session.observe({"operationTime": Timestamp(6, 1)})
    hello: Any = SimpleNamespace(max_wire_version=21)
    concern = {"level": "majority"}
    for given in ({}, {"readConcern": concern}):
        command = dict(given)
        session.add_read_concern(command, consistent, hello)
        follows = {"afterClusterTime": Timestamp(6, 1)} if consistent and seen else {}
        assert command == ({"readConcern": {**given.get("readConcern", {}), **follows}} if given or follows else {})
    assert concern == {"level": "majority"}


@pytest.mark.parametrize("reply", [{"atClusterTime": Timestamp(3, 1)}, {"cursor": {"atClusterTime": Timestamp(3, 1)}}])
def test_snapshot_time_comes_from_first_reply(reply: dict[str, Any]) -> None:
    session = session_of(executor_of(), snapshot=True)
    hello: Any = SimpleNamespace(max_wire_version=13)
    command: dict[str, Any] = {}
    session.add_read_concern(command, True, hello)
    assert command == {"readConcern": {"level": "snapshot"}}
    session.observe(reply)
    session.observe({"atClusterTime": Timestamp(9, 1)})
    session.add_read_concern(command, False, hello)
    assert command == {"readConcern": {"level": "snapshot", "atClusterTime": Timestamp(3, 1)}}
    hello.max_wire_version = 12
    with pytest.raises(ConfigurationError, match=r"^Snapshot reads require MongoDB 5.0 or later$"):
        session.add_read_concern({}, True, hello)
    plain = session_of(executor_of())
    plain.observe(reply)
    assert plain._snapshot_time is None
