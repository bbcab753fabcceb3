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
