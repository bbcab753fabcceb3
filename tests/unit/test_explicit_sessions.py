"""An explicit session keeps the latest cluster time and operation time of its replies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from bson import Timestamp

from gmongo.execution.server_session import ServerSession
from gmongo.execution.sessions import SessionState


def make_session(*, causal_consistency: bool = True) -> SessionState:
    executor: Any = SimpleNamespace(sessions=Mock(), epoch=0)
    return SessionState(executor, Mock(), causal_consistency, False)


def test_cluster_time_and_operation_time_of_session_never_decrease() -> None:
    session = make_session()
    assert (session.cluster_time, session.operation_time, session.after_cluster_time) == (None, None, None)
    for reply_seconds, session_seconds in ((5, 5), (4, 5), (6, 6)):
        time = {"clusterTime": Timestamp(reply_seconds, 0)}
        session.store_times({"$clusterTime": time, "operationTime": Timestamp(reply_seconds, 1)})
        assert session.cluster_time == {"clusterTime": Timestamp(session_seconds, 0)}
        assert session.operation_time == Timestamp(session_seconds, 1) == session.after_cluster_time
    session.store_times({"ok": 1})
    assert session.operation_time == Timestamp(6, 1)
    other = make_session(causal_consistency=False)
    other.store_times({"operationTime": Timestamp(6, 1)})
    assert other.operation_time == Timestamp(6, 1) and other.after_cluster_time is None


def test_background_abort_has_own_copy_of_session() -> None:
    session = make_session()
    session._server_session = ServerSession(0)
    aborted = session.hand_over_transaction()
    assert aborted.server_session.lsid == session.server_session.lsid
    # The abort uses the session ID. Therefore, the dirty session does not return to the pool.
    assert session.server_session.dirty and not aborted.server_session.dirty


def test_session_is_in_use_until_end_of_outer_operation() -> None:
    session = make_session()
    session.after_use = after_use = Mock()
    for _ in range(2):
        session.begin(session._executor, Mock())
    for is_last in (False, True):
        session.end_use()
        assert (session._user is None) is after_use.called is is_last
