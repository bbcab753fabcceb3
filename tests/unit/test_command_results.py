"""Effects of a finished or failed command on connection, session, server and cursor."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson.codec_options import DEFAULT_CODEC_OPTIONS
from bson.errors import InvalidBSON
from gevent import GreenletExit

from gmongo import _clock
from gmongo.errors import AutoReconnect, OperationFailure, ProtocolError
from gmongo.events.command import CommandEvents
from gmongo.execution.command import CommandRunner, _requires_reauthentication
from tests.support.cases import with_cases


class CommandScenario:
    def __init__(self, *, usable: bool = True, unanswered_request_id: int | None = None) -> None:
        self.topology: Any = Mock()
        self.events: Any = Mock(spec=CommandEvents)
        self.events.is_enabled = lambda: False
        self.runner = CommandRunner(self.topology, self.events, Mock())
        self.orphans: list[Any] = []
        self.runner.orphan_taker = lambda: self.orphans.append
        self.connection: Any = Mock(usable=usable, unanswered_request_id=unanswered_request_id, address=("h", 1))
        self.attempt: Any = SimpleNamespace(
            operation=Mock(opens_cursor=False, waits_for_documents=False),
            session=None,
            server_session=None,
        )
        self.attempt.operation.orphaned_cursor.return_value = "cursor"

    def report_error(self, error: BaseException, sent: Any = None, reply: Any = None) -> None:
        self.runner._report_error(error, self.attempt, self.connection, sent, reply)


@pytest.mark.parametrize(
    "error",
    [AutoReconnect("x"), OperationFailure("x"), ProtocolError("x"), InvalidBSON("x"), GreenletExit()],
)
@pytest.mark.parametrize("has_reply", [False, True])
def test_topology_handles_driver_error_and_protocol_error_breaks_connection(
    error: BaseException, has_reply: bool
) -> None:
    scenario = CommandScenario()
    scenario.report_error(error, None, {"ok": 1} if has_reply else None)
    is_driver_error = isinstance(error, (AutoReconnect, OperationFailure, ProtocolError))
    assert [call.args for call in scenario.topology.handle_error.call_args_list] == (
        [(scenario.connection, error)] if is_driver_error else []
    )
    assert scenario.connection.mark_unusable.called is isinstance(error, ProtocolError)
    assert scenario.orphans == (["cursor"] if has_reply and not is_driver_error else [])
    assert not scenario.connection.expect_late_reply.called and not scenario.events.failed.called


def test_interruption_of_listener_replaces_command_error() -> None:
    scenario = CommandScenario()
    sent: Any = SimpleNamespace(started=0.0)
    scenario.report_error(error := AutoReconnect("x"), sent)
    assert scenario.events.failed.call_args.args[0] is sent and scenario.events.failed.call_args.args[2] is error
    assert scenario.topology.handle_error.call_count == 1
    scenario.events.failed.side_effect = GreenletExit
    with pytest.raises(GreenletExit):
        scenario.report_error(error, sent, {"ok": 1})
    assert scenario.topology.handle_error.call_count == 1 and scenario.orphans == ["cursor"]


@with_cases
def test_only_error_391_of_authenticated_connection_requests_reauthentication(
    error: BaseException, is_authenticated: bool, is_requested: bool
) -> None:
    connection: Any = SimpleNamespace(authentication="a" if is_authenticated else None)
    assert _requires_reauthentication(error, connection) is is_requested


@pytest.mark.parametrize("error_391_count", [0, 1, 2])
@pytest.mark.parametrize("deadline", [None, inf])
def test_command_is_sent_again_after_one_reauthentication(error_391_count: int, deadline: float | None) -> None:
    scenario = CommandScenario()
    scenario.runner._fields = Mock()
    replies = [{"ok": 0, "code": 391, "errmsg": "again"}] * error_391_count + [{"ok": 1}]
    scenario.connection.exchange.side_effect = replies
    scenario.connection.hello = SimpleNamespace(max_command_size=1000, max_wire_version=21)
    operation = scenario.attempt.operation
    operation.command.side_effect = lambda hello: {"ping": 1}
    operation.context.codec_options = DEFAULT_CODEC_OPTIONS
    scenario.attempt.deadline, scenario.attempt.transaction = deadline, None
    if error_391_count < 2:
        assert scenario.runner.run(scenario.attempt, scenario.connection) is operation.result.return_value
    else:
        with pytest.raises(OperationFailure, match="again"):
            scenario.runner.run(scenario.attempt, scenario.connection)
    assert [call.args for call in scenario.connection.reauthenticate.call_args_list] == [(None,)] * min(
        error_391_count, 1
    )
    assert scenario.connection.exchange.call_count == 1 + min(error_391_count, 1)
    scenario.connection.exchange.side_effect = replies
    scenario.connection.reauthenticate.side_effect = GreenletExit
    if error_391_count:
        with pytest.raises(GreenletExit):
            scenario.runner.run(scenario.attempt, scenario.connection)


@pytest.mark.parametrize("error", [AutoReconnect("gone"), GreenletExit()])
def test_reauthentication_error_marks_session_dirty_or_interrupted(error: BaseException) -> None:
    scenario = scenario_with_reply()
    scenario.connection.exchange.return_value = {"ok": 0, "code": 391, "errmsg": "again"}
    scenario.connection.reauthenticate.side_effect = error
    scenario.connection.usable = False
    session = scenario.attempt.server_session = Mock(dirty=False)
    with pytest.raises(type(error)):
        scenario.runner.run(scenario.attempt, scenario.connection)
    is_network_error = isinstance(error, AutoReconnect)
    assert (session.dirty, session.record_interruption.called) == (
        is_network_error,
        not is_network_error,
    )
    assert scenario.topology.handle_error.called is isinstance(error, AutoReconnect)


@pytest.mark.parametrize("has_reply", [True, False])
def test_command_event_has_duration_despite_unreadable_reply(monkeypatch: pytest.MonkeyPatch, has_reply: bool) -> None:
    scenario = scenario_with_reply(acknowledged=has_reply)
    sent: Any = SimpleNamespace(started=1000.0)
    scenario.runner._events_enabled = lambda: True
    monkeypatch.setattr(scenario.runner, "_describe_command", Mock(return_value=sent))
    monkeypatch.setattr(_clock, "monotonic", lambda: 1007.0)
    if has_reply:
        scenario.events.monitored_reply.side_effect = failure = KeyError("x")
        with pytest.raises(KeyError):
            scenario.runner.run(scenario.attempt, scenario.connection)
        scenario.events.failed.assert_called_once_with(sent, 7.0, failure)
    else:
        scenario.runner.run(scenario.attempt, scenario.connection)
        scenario.events.succeeded.assert_called_once_with(sent, 7.0, {"ok": 1})


def scenario_with_reply(acknowledged: bool = True) -> CommandScenario:
    scenario = CommandScenario()
    scenario.runner._fields = Mock()
    operation = scenario.attempt.operation
    operation.command.return_value = operation.for_monitoring.return_value = {"ping": 1}
    operation.context.codec_options = DEFAULT_CODEC_OPTIONS
    operation.acknowledged, operation.operation_id = acknowledged, None
    scenario.attempt.deadline = scenario.attempt.transaction = None
    scenario.connection.hello.max_command_size = 1000
    scenario.connection.exchange.return_value = {"ok": 1}
    return scenario


def test_second_attempt_keeps_operation_id_of_first_attempt() -> None:
    scenario = scenario_with_reply()
    scenario.runner._events_enabled = lambda: True
    for _ in range(2):
        scenario.runner.run(scenario.attempt, scenario.connection)
    first_event, second_event = (call.args[0] for call in scenario.events.started.call_args_list)
    assert first_event.operation_id == second_event.operation_id == first_event.request_id != second_event.request_id
