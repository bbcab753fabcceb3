"""Rules for the use of an explicit session.

A session copies the cluster time, operation time and snapshot time from replies.
"""

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


def make_executor(epoch: int = 0) -> Any:
    return SimpleNamespace(sessions=Mock(), epoch=epoch)


def make_session(executor: Any, *, causal_consistency: bool = True, snapshot: bool = False) -> SessionState:
    return SessionState(executor, Mock(), causal_consistency, snapshot)


def make_operation(
    *, acknowledged: bool = True, takes_session: bool = True, write_concern: Any = None, **attributes: Any
) -> Any:
    context = SimpleNamespace(write_concern=write_concern)
    usual = {"takes_write_concern": write_concern is not None, "ends_transaction": False}
    return SimpleNamespace(
        context=context, acknowledged=acknowledged, takes_session=takes_session, **{**usual, **attributes}
    )


def error_text_of_begin(session: SessionState, executor: Any, operation: Any = None) -> str:
    with pytest.raises((InvalidOperation, ConfigurationError)) as caught:
        session.begin(executor, operation or make_operation())
    return str(caught.value)


def test_unusable_session_raises_error_with_reason() -> None:
    executor = make_executor()
    session = make_session(executor)
    assert error_text_of_begin(session, make_executor()) == "Can only use session with the MongoClient that started it"
    executor.epoch = 1
    assert (
        error_text_of_begin(session, executor)
        == "the session was started before a fork, and belongs to the parent process"
    )
    executor.epoch = 0
    session.limit = 5.0
    assert error_text_of_begin(session, executor) == OTHER_LIMIT
    with until(4.0):
        assert error_text_of_begin(session, executor) == OTHER_LIMIT
    with until(5.0):
        session.begin(executor, make_operation())
    session.limit = None
    other = gevent.spawn(session.begin, executor, make_operation())
    other.join()
    assert str(other.exception) == ("the session is in use by another greenlet: start one session for each greenlet")
    # A command listener can run an operation in the session while the greenlet's first operation
    # runs.
    session.begin(executor, make_operation())
    session.end_use()
    other = gevent.spawn(session.begin, executor, make_operation())
    other.join()
    assert not other.successful()
    session.end_use()
    gevent.spawn(session.begin, executor, make_operation()).get()
    session.end_use()
    server_session = session.server_session
    for _ in range(2):
        session.release()
    executor.sessions.release.assert_called_once_with(server_session)
    assert session.has_ended and error_text_of_begin(session, executor) == "Cannot use ended session"
    with pytest.raises(InvalidOperation, match=r"^Cannot use ended session$"):
        session.server_session  # noqa: B018


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize(
    ("operation", "permitted_outside", "permitted_inside"),
    [
        (make_operation(), True, True),
        (make_operation(write_concern={"w": 1}), True, True),
        (make_operation(write_concern={"w": 0}), False, True),
        (make_operation(write_concern={"w": 0}, takes_write_concern=False), True, True),
        (make_operation(takes_session=False), False, True),
        (make_operation(acknowledged=False), False, False),
    ],
)
def test_unacknowledged_write_in_session_raises(
    in_transaction: bool, operation: Any, permitted_outside: bool, permitted_inside: bool
) -> None:
    executor = make_executor()
    session = make_session(executor)
    session.transaction.state = State.IN_PROGRESS if in_transaction else State.NONE
    if permitted_inside if in_transaction else permitted_outside:
        session.begin(executor, operation)
    else:
        message = "Explicit sessions are incompatible with unacknowledged write concern: w=0"
        assert error_text_of_begin(session, executor, operation) == message
        gevent.spawn(session.check_free).get()


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("ends_transaction", [False, True])
def test_next_operation_resets_state_of_ended_transaction(state: State, ends_transaction: bool) -> None:
    executor = make_executor()
    session = make_session(executor)
    session.transaction.state = state
    session.begin(executor, make_operation(ends_transaction=ends_transaction))
    stays = ends_transaction or state in (State.STARTING, State.IN_PROGRESS)
    assert session.transaction.state is (state if stays else State.NONE)


def test_cluster_time_and_operation_time_of_session_never_decrease() -> None:
    session = make_session(make_executor())
    assert (session.cluster_time, session.operation_time, session.after_cluster_time) == (None, None, None)
    for seen, kept in ((5, 5), (4, 5), (6, 6)):
        time = {"clusterTime": Timestamp(seen, 0)}
        session.observe({"$clusterTime": time, "operationTime": Timestamp(seen, 1)})
        assert session.cluster_time == {"clusterTime": Timestamp(kept, 0)}
        assert session.operation_time == Timestamp(kept, 1) == session.after_cluster_time
    session.observe({"ok": 1})
    assert session.operation_time == Timestamp(6, 1)
    other = make_session(make_executor(), causal_consistency=False)
    other.observe({"operationTime": Timestamp(6, 1)})
    assert other.operation_time == Timestamp(6, 1) and other.after_cluster_time is None


@pytest.mark.parametrize("is_causally_consistent", [False, True])
@pytest.mark.parametrize("has_operation_time", [False, True])
def test_causally_consistent_command_has_after_cluster_time(
    is_causally_consistent: bool, has_operation_time: bool
) -> None:
    session = make_session(make_executor())
    if has_operation_time:
        session.observe({"operationTime": Timestamp(6, 1)})
    hello: Any = SimpleNamespace(max_wire_version=21)
    concern = {"level": "majority"}
    for given in ({}, {"readConcern": concern}):
        command = dict(given)
        session.add_read_concern(command, is_causally_consistent, hello)
        follows = {"afterClusterTime": Timestamp(6, 1)} if is_causally_consistent and has_operation_time else {}
        assert command == ({"readConcern": {**given.get("readConcern", {}), **follows}} if given or follows else {})
    assert concern == {"level": "majority"}


@pytest.mark.parametrize("reply", [{"atClusterTime": Timestamp(3, 1)}, {"cursor": {"atClusterTime": Timestamp(3, 1)}}])
def test_snapshot_time_comes_from_first_reply(reply: dict[str, Any]) -> None:
    session = make_session(make_executor(), snapshot=True)
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
    plain = make_session(make_executor())
    plain.observe(reply)
    assert plain._snapshot_time is None
