"""What the end of a command does to its connection, its session, its server and the cursor it may have opened."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import bson
import pytest
from bson.binary import UuidRepresentation
from bson.codec_options import DEFAULT_CODEC_OPTIONS, CodecOptions
from bson.errors import InvalidBSON
from gevent import GreenletExit

from gmongo import _clock
from gmongo.errors import AutoReconnect, OperationFailure, ProtocolError
from gmongo.events.command import CommandEvents
from gmongo.execution.command import CommandRunner, _requires_reauthentication
from gmongo.execution.late_reply import LateReply


class Scene:
    def __init__(self, *, usable: bool = True, unanswered: int | None = None) -> None:
        self.topology: Any = Mock()
        self.events: Any = Mock(spec=CommandEvents)
        self.events.wanted = lambda: False
        self.runner = CommandRunner(self.topology, self.events, Mock())
        self.taken: list[Any] = []
        self.runner.orphan_taker = lambda: self.taken.append
        self.connection: Any = Mock(usable=usable, unanswered=unanswered, address=("h", 1))
        self.attempt: Any = SimpleNamespace(
            operation=Mock(opens_cursor=False, waits_for_documents=False), session=None, server_session=None
        )
        self.attempt.operation.orphaned_cursor.return_value = "cursor"

    def report(self, error: BaseException, sent: Any = None, reply: Any = None) -> None:
        self.runner._report_error(error, self.attempt, self.connection, sent, reply)


@pytest.mark.parametrize(
    "error", [AutoReconnect("x"), OperationFailure("x"), ProtocolError("x"), InvalidBSON("x"), GreenletExit()]
)
@pytest.mark.parametrize("replied", [False, True])
def test_an_error_takes_effect(error: BaseException, replied: bool) -> None:
    scene = Scene()
    scene.report(error, None, {"ok": 1} if replied else None)
    of_driver = isinstance(error, (AutoReconnect, OperationFailure, ProtocolError))
    assert [call.args for call in scene.topology.handle_error.call_args_list] == (
        [(scene.connection, error)] if of_driver else []
    )
    assert scene.connection.mark_unusable.called is isinstance(error, ProtocolError)
    assert scene.taken == (["cursor"] if replied and not of_driver else [])
    assert not scene.connection.expect_late_reply.called and not scene.events.failed.called


@pytest.mark.parametrize("usable", [False, True])
@pytest.mark.parametrize("whose", ["given", "own", "none"])
def test_a_session_is_dirty_when_the_server_may_be_busy_with_it(usable: bool, whose: str) -> None:
    scene = Scene(usable=usable)
    server_session = SimpleNamespace(dirty=False)
    if whose == "given":
        scene.attempt.session = SimpleNamespace(server_session=server_session)
    elif whose == "own":
        scene.attempt.server_session = server_session
    scene.report(AutoReconnect("x"))
    assert server_session.dirty is (not usable and whose != "none")


@pytest.mark.parametrize("unanswered", [None, 5])
def test_a_reply_that_is_outstanding_is_expected(unanswered: int | None) -> None:
    scene = Scene(unanswered=unanswered)
    scene.report(GreenletExit())
    calls = scene.connection.expect_late_reply.call_args_list
    assert [type(call.args[0]) for call in calls] == ([LateReply] if unanswered else [])


def test_a_listener_that_is_interrupted_takes_the_place_of_the_error() -> None:
    scene = Scene()
    sent: Any = SimpleNamespace(started=0.0)
    scene.report(error := AutoReconnect("x"), sent)
    assert scene.events.failed.call_args.args[0] is sent and scene.events.failed.call_args.args[2] is error
    assert scene.topology.handle_error.call_count == 1
    scene.events.failed.side_effect = GreenletExit
    with pytest.raises(GreenletExit):
        scene.report(error, sent, {"ok": 1})
    assert scene.topology.handle_error.call_count == 1 and scene.taken == ["cursor"]


def test_a_command_is_encoded_as_the_options_of_its_operation_say() -> None:
    scene = Scene()
    value, operation = uuid4(), scene.attempt.operation
    scene.attempt.deadline, scene.runner._fields = None, Mock()
    scene.connection.hello.max_command_size = 1000
    operation.command.return_value = {"value": value}
    operation.context.codec_options = CodecOptions(uuid_representation=UuidRepresentation.STANDARD)
    operation.message.side_effect = GreenletExit
    with pytest.raises(GreenletExit):
        scene.runner.run(scene.attempt, scene.connection)
    body = operation.message.call_args.args[2]
    assert bson.decode(body, operation.context.codec_options) == {"value": value}


def test_orphans_are_taken_by_what_is_there() -> None:
    scene = Scene()
    scene.runner.reap(None)
    scene.runner.reap("one")
    scene.runner.orphan_taker = lambda: None
    scene.runner.reap("two")
    assert scene.taken == ["one"]
    assert CommandRunner(scene.topology, scene.events, Mock()).orphan_taker() is None


@pytest.mark.parametrize(
    ("error", "authenticated", "asks"),
    [
        (OperationFailure("x", 391), True, True),
        (OperationFailure("x", 391), False, False),
        (OperationFailure("x", 18), True, False),
        (AutoReconnect("x"), True, False),
    ],
)
def test_what_asks_to_authenticate_again(error: BaseException, authenticated: bool, asks: bool) -> None:
    connection: Any = SimpleNamespace(authentication="a" if authenticated else None)
    assert _requires_reauthentication(error, connection) is asks


@pytest.mark.parametrize("times", [0, 1, 2])
@pytest.mark.parametrize("deadline", [None, inf])
def test_a_command_is_sent_again_after_one_reauthentication(times: int, deadline: float | None) -> None:
    scene = Scene()
    scene.runner._fields = Mock()
    replies = [{"ok": 0, "code": 391, "errmsg": "again"}] * times + [{"ok": 1}]
    scene.connection.exchange.side_effect = replies
    scene.connection.hello = SimpleNamespace(max_command_size=1000, max_wire_version=21)
    operation = scene.attempt.operation
    operation.command.side_effect = lambda hello: {"ping": 1}
    operation.context.codec_options = DEFAULT_CODEC_OPTIONS
    scene.attempt.deadline, scene.attempt.transaction = deadline, None
    if times < 2:
        assert scene.runner.run(scene.attempt, scene.connection) is operation.result.return_value
    else:
        with pytest.raises(OperationFailure, match="again"):
            scene.runner.run(scene.attempt, scene.connection)
    assert [call.args for call in scene.connection.reauthenticate.call_args_list] == [(None,)] * min(times, 1)
    assert scene.connection.exchange.call_count == 1 + min(times, 1)
    scene.connection.exchange.side_effect = replies
    scene.connection.reauthenticate.side_effect = GreenletExit
    if times:
        with pytest.raises(GreenletExit):
            scene.runner.run(scene.attempt, scene.connection)


@pytest.mark.parametrize("error", [AutoReconnect("gone"), GreenletExit()])
def test_a_reauthentication_that_fails_takes_effect(error: BaseException) -> None:
    scene = ready_to_run()
    scene.connection.exchange.return_value = {"ok": 0, "code": 391, "errmsg": "again"}
    scene.connection.reauthenticate.side_effect = error
    scene.connection.usable = False
    session = scene.attempt.server_session = Mock(dirty=False)
    with pytest.raises(type(error)):
        scene.runner.run(scene.attempt, scene.connection)
    is_network = isinstance(error, AutoReconnect)
    assert (session.dirty, session.interrupted.called) == (is_network, not is_network)
    assert scene.topology.handle_error.called is isinstance(error, AutoReconnect)


# What cannot be read


def test_a_reply_that_an_operation_cannot_read_is_an_error_of_the_driver() -> None:
    scene = ready_to_run()
    scene.attempt.operation.result.side_effect = failure = TypeError("'int' is not iterable")
    with pytest.raises(ProtocolError) as caught:
        scene.runner.run(scene.attempt, scene.connection)
    assert caught.value.__cause__ is failure
    assert scene.topology.handle_error.call_args.args == (scene.connection, caught.value)


@pytest.mark.parametrize("replied", [True, False])
def test_how_long_it_took_though_the_reply_cannot_be_shown(monkeypatch: pytest.MonkeyPatch, replied: bool) -> None:
    scene = Scene()
    sent: Any = SimpleNamespace(started=1000.0)
    monkeypatch.setattr(_clock, "monotonic", lambda: 1007.0)
    if replied:
        scene.events.monitored_reply.side_effect = failure = KeyError("x")
        with pytest.raises(KeyError):
            scene.runner._announce_end(sent, scene.attempt.operation, {"ok": 1})
        scene.events.failed.assert_called_once_with(sent, 7.0, failure)
    else:
        scene.runner._announce_end(sent, scene.attempt.operation, None)
        scene.events.succeeded.assert_called_once_with(sent, 7.0, {"ok": 1})


# What is sent


def ready_to_run(acknowledged: bool = True) -> Scene:
    scene = Scene()
    scene.runner._fields = Mock()
    operation = scene.attempt.operation
    operation.command.return_value = operation.for_monitoring.return_value = {"ping": 1}
    operation.context.codec_options = DEFAULT_CODEC_OPTIONS
    operation.acknowledged, operation.operation_id = acknowledged, None
    scene.attempt.deadline = scene.attempt.transaction = None
    scene.connection.hello.max_command_size = 1000
    scene.connection.exchange.return_value = {"ok": 1}
    return scene


@pytest.mark.parametrize(("acknowledged", "flags"), [(True, 0), (False, 2)])
def test_a_command_that_wants_no_reply_says_so(acknowledged: bool, flags: int) -> None:
    scene = ready_to_run(acknowledged)
    scene.runner.run(scene.attempt, scene.connection)
    assert [call.args[1] for call in scene.attempt.operation.message.call_args_list] == [flags]
    assert scene.connection.exchange.called is acknowledged and scene.connection.send.called is not acknowledged


def test_all_tries_of_an_operation_have_the_number_of_its_first_request() -> None:
    scene = ready_to_run()
    scene.runner._wanted = lambda: True
    for _ in range(2):
        scene.runner.run(scene.attempt, scene.connection)
    first, second = (call.args[0] for call in scene.events.started.call_args_list)
    assert first.operation_id == second.operation_id == first.request_id != second.request_id
