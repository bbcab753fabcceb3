"""Fields that gmongo adds to every command, and the deadlines of an executor."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock

import bson
import pytest
from bson import Timestamp

from gmongo import _clock
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import AutoReconnect, ConfigurationError, ExecutionTimeout, InvalidOperation
from gmongo.events.command import CommandEvents
from gmongo.execution import command_fields
from gmongo.execution.attempt import Attempt
from gmongo.execution.command_fields import CommandFields
from gmongo.execution.deadline import until
from gmongo.execution.executor import Executor
from gmongo.execution.foreign_client import UnsupportedClient
from gmongo.execution.operation import Operation
from gmongo.execution.operation_context import OperationContext
from gmongo.execution.retry import ExecutionSettings, Retry
from gmongo.operations.end_sessions import EndSessions
from gmongo.read_preferences import Nearest, Primary, Secondary
from gmongo.wire.timeout import seconds_of

ADDRESS = ("h", 1)


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the clock at 1000 seconds."""
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)


def time_of(seconds: int) -> dict[str, Any]:
    return {"clusterTime": Timestamp(seconds, 1)}


def operation_of(**kind: Any) -> Operation:
    context = kind.pop("context", OperationContext("db", "c"))
    made: type[Operation] = type("Kind", (Operation,), {"name": "kind", **kind})
    return made(context)


def attempt_of(operation: Operation, **fields: Any) -> Any:
    usual = {
        "operation": operation, "deadline": None, "session": None, "server_session": None, "transaction": None,
        "is_retryable_write": False, "selector": operation.context.selector,
    }  # fmt: skip
    return SimpleNamespace(**{**usual, **fields})


def connection_of(**hello: Any) -> Any:
    usual = {"sessions_supported": True, "is_standalone": False, "is_mongos": False}
    return SimpleNamespace(address=ADDRESS, hello=SimpleNamespace(**{**usual, **hello}))


def decorator(
    *,
    load_balanced: bool = False,
    api: Any = None,
    cluster_time: Any = None,
    kind: int = TOPOLOGY_TYPE.Sharded,
    rtt: Any = None,
) -> tuple[CommandFields, Any]:
    servers = {} if rtt is None else {ADDRESS: SimpleNamespace(min_round_trip_time=rtt)}
    description = SimpleNamespace(topology_type=kind, get=servers.get)
    settings = SimpleNamespace(connection=SimpleNamespace(server_api=api or {}), load_balanced=load_balanced)
    topology: Any = SimpleNamespace(settings=settings, description=description, cluster_time=cluster_time)
    sessions: Any = Mock()
    sessions.acquire.side_effect = lambda: SimpleNamespace(lsid={"id": 1}, transaction_number=0, last_used=0.0)
    return CommandFields(topology, sessions), sessions


def decorated(made: CommandFields, attempt: Any, connection: Any, **command: Any) -> dict[str, Any]:
    made.add_fields(command, attempt, connection)
    assert command.pop("$db") == "db"
    return command


def test_concerns_are_added_if_operation_takes_them() -> None:
    context = OperationContext("db", "c", read_concern={"level": "majority"}, write_concern={"w": 2, "wtimeout": 5})
    plain = OperationContext("db", "c", read_concern={}, write_concern={})
    for reads in (False, True):
        for writes in (False, True):
            kind = {"takes_read_concern": reads, "takes_write_concern": writes, "takes_session": False}
            for deadline, concern in ((None, {"w": 2, "wtimeout": 5}), (inf, {"w": 2})):
                attempt = attempt_of(operation_of(context=context, **kind), deadline=deadline)
                expected: dict[str, Any] = {"readConcern": {"level": "majority"}} if reads else {}
                expected |= {"writeConcern": concern} if writes else {}
                assert decorated(decorator()[0], attempt, connection_of()) == expected
            assert decorated(decorator()[0], attempt_of(operation_of(context=plain, **kind)), connection_of()) == {}
    only = OperationContext("db", "c", write_concern={"wtimeout": 5})
    attempt = attempt_of(operation_of(context=only, takes_write_concern=True, takes_session=False), deadline=inf)
    assert decorated(decorator()[0], attempt, connection_of()) == {}


@pytest.mark.parametrize("supported", [False, True])
@pytest.mark.parametrize("load_balanced", [False, True])
@pytest.mark.parametrize("takes", [False, True])
@pytest.mark.parametrize("retryable", [False, True])
def test_command_acquires_implicit_session(supported: bool, load_balanced: bool, takes: bool, retryable: bool) -> None:
    made, sessions = decorator(load_balanced=load_balanced)
    attempt = attempt_of(operation_of(takes_session=takes, is_write=True), is_retryable_write=retryable)
    has_session = takes and (supported or load_balanced)
    for _ in range(2):  # the second attempt has the same session and number
        command = decorated(made, attempt, connection_of(sessions_supported=supported))
        expected: dict[str, Any] = {"lsid": {"id": 1}} if has_session else {}
        if has_session and retryable:
            expected["txnNumber"] = 1
            assert isinstance(command["txnNumber"], bson.Int64)
        assert command == expected
    assert sessions.acquire.call_count == has_session


@pytest.mark.parametrize("supported", [False, True])
@pytest.mark.parametrize("load_balanced", [False, True])
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("retryable", [False, True])
def test_given_session_adds_lsid_cluster_time_and_transaction_number(
    supported: bool, load_balanced: bool, explicit: bool, retryable: bool
) -> None:
    server_session = SimpleNamespace(lsid={"id": 7}, transaction_number=4, last_used=0.0)
    state = Mock(cluster_time=time_of(5)) if explicit else None
    session = SimpleNamespace(server_session=server_session, explicit=state)
    attempt = attempt_of(operation_of(is_write=True), session=session, is_retryable_write=retryable)
    made, sessions = decorator(load_balanced=load_balanced, cluster_time=time_of(3))
    connection = connection_of(sessions_supported=supported)
    if explicit and not supported and not load_balanced:
        with pytest.raises(ConfigurationError, match=r"^Sessions are not supported by this MongoDB deployment$"):
            decorated(made, attempt, connection)
        return
    command = decorated(made, attempt, connection)
    assert command.pop("$clusterTime") == time_of(5 if explicit else 3)
    used = supported or load_balanced
    expected: dict[str, Any] = {"lsid": {"id": 7}} if used else {}
    if used and retryable:
        expected["txnNumber"] = 5
    assert command == expected and server_session.last_used == (1000.0 if used else 0.0)
    assert server_session.transaction_number == 4 + (used and retryable) and not sessions.acquire.called
    if state is not None:
        state.add_read_concern.assert_called_once()
        assert state.add_read_concern.call_args.args[1:] == (True, connection.hello)


@pytest.mark.parametrize("ends", [False, True])
def test_transaction_command_has_its_number_and_end_has_autocommit(ends: bool) -> None:
    server_session = SimpleNamespace(lsid={"id": 7}, transaction_number=4, last_used=0.0)
    state, transaction = Mock(cluster_time=None, operation_time_to_follow="after"), Mock()
    session = SimpleNamespace(server_session=server_session, explicit=state)
    operation = operation_of(ends_transaction=ends, is_write=True)
    attempt = attempt_of(operation, session=session, transaction=transaction, is_retryable_write=True)
    command = decorated(decorator()[0], attempt, connection_of())
    assert command == {"lsid": {"id": 7}, "txnNumber": 4, **({"autocommit": False} if ends else {})}
    assert isinstance(command["txnNumber"], bson.Int64) and not state.add_read_concern.called
    assert [call.args[1:] for call in transaction.add_fields.call_args_list] == ([] if ends else [("after",)])


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_command_in_transaction_omits_concerns_of_operation(inside: bool, ends: bool) -> None:
    """The end of a transaction has a write concern. A concern inside the command document is sent unchanged."""
    server_session = SimpleNamespace(lsid={"id": 7}, transaction_number=4, last_used=0.0)
    session = SimpleNamespace(server_session=server_session, explicit=Mock(cluster_time=None))
    context = OperationContext("db", "c", read_concern={"level": "majority"}, write_concern={"w": 2})
    kind = {"takes_read_concern": True, "takes_write_concern": True, "is_write": True, "ends_transaction": ends}
    attempt = attempt_of(operation_of(context=context, **kind), session=session, transaction=Mock() if inside else None)
    command = decorated(decorator()[0], attempt, connection_of())
    assert command.get("readConcern") == (None if inside else {"level": "majority"})
    assert command.get("writeConcern") == (None if inside and not ends else {"w": 2})
    given = decorated(decorator()[0], attempt_of(operation_of()), connection_of(), readConcern=1, writeConcern=2)
    assert (given["readConcern"], given["writeConcern"]) == (1, 2)


@pytest.mark.parametrize("preference", [Primary(), Secondary(), Nearest(max_staleness=100)])
@pytest.mark.parametrize("is_write", [False, True])
@pytest.mark.parametrize("server", ["standalone", "mongos", "member"])
@pytest.mark.parametrize("kind", [TOPOLOGY_TYPE.Single, TOPOLOGY_TYPE.Sharded])
@pytest.mark.parametrize("load_balanced", [False, True])
def test_read_preference_depends_on_server_and_topology_type(
    preference: Any, is_write: bool, server: str, kind: int, load_balanced: bool
) -> None:
    operation = operation_of(
        context=OperationContext("db", "c", selector=preference), is_write=is_write, takes_session=False
    )
    connection = connection_of(is_standalone=server == "standalone", is_mongos=server == "mongos")
    command = decorated(decorator(load_balanced=load_balanced, kind=kind)[0], attempt_of(operation), connection)
    expected = None
    if not is_write and preference.mode != 0 and (server != "standalone" or load_balanced):
        expected = preference.document
    elif not is_write and preference.mode == 0 and server == "member" and kind == TOPOLOGY_TYPE.Single:
        expected = {"mode": "primaryPreferred"}
    assert command == ({} if expected is None else {"$readPreference": expected})


def test_stable_api_fields_come_last() -> None:
    made, _ = decorator(api={"apiVersion": "1", "apiStrict": True}, cluster_time=time_of(3))
    command = decorated(made, attempt_of(operation_of()), connection_of(), find="c")
    assert list(command) == ["find", "lsid", "$clusterTime", "apiVersion", "apiStrict"]


@pytest.mark.parametrize("takes", [False, True])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("own", [None, 100, 5000])
@pytest.mark.parametrize(("deadline", "rtt", "left"), [(1002.0, None, 2000), (1002.0, 0.5, 1500), (1000.0005, 0.0, 1)])
def test_max_time_ms_is_remaining_time_minus_round_trip_time(
    takes: bool, waits: bool, own: int | None, deadline: float, rtt: Any, left: int
) -> None:
    operation = operation_of(takes_max_time=takes, waits_for_documents=waits, takes_session=False)
    command = {} if own is None else {"maxTimeMS": own}
    found = decorated(decorator(rtt=rtt)[0], attempt_of(operation, deadline=deadline), connection_of(), **command)
    if takes:
        assert found == {"maxTimeMS": left}
    else:
        assert found == ({"maxTimeMS": min(own, left)} if own is not None and waits else {})
    assert decorated(decorator(rtt=rtt)[0], attempt_of(operation, deadline=inf), connection_of(), **command) == command


@pytest.mark.parametrize(("deadline", "rtt"), [(1000.5, 0.5), (1000.5, 0.75), (999.0, None)])
@pytest.mark.parametrize(
    ("limit", "named"),
    [((0.3, "gmongo.timeout"), "the limit of 300 ms (gmongo.timeout)"), (None, "the limit of the operation")],
)
def test_command_without_time_raises_execution_timeout(deadline: float, rtt: Any, limit: Any, named: str) -> None:
    moment = deadline if limit is None else seconds_of(limit, deadline)
    attempt = attempt_of(operation_of(takes_session=False), deadline=moment)
    with pytest.raises(ExecutionTimeout) as caught:
        decorated(decorator(rtt=rtt)[0], attempt, connection_of())
    message = f"{named} ended before kind was sent"
    assert str(caught.value).startswith(message) and caught.value.code == 50
    assert caught.value.details == {"ok": 0, "errmsg": message, "code": 50}


def test_newer_cluster_time_is_chosen() -> None:
    early, late = time_of(1), time_of(2)
    for one, other, newer in (
        (None, None, None),
        (early, None, early),
        (None, early, early),
        (early, late, late),
        (late, early, late),
    ):
        assert command_fields._newer_cluster_time(one, other) is newer
    same = time_of(1)
    assert command_fields._newer_cluster_time(early, same) is early


def executor_of(timeout: float | None = None, epoch: int = 0) -> Executor:
    topology: Any = Mock(epoch=epoch)
    return Executor(topology, ExecutionSettings(timeout=timeout), CommandEvents((), silent=False))


@pytest.mark.parametrize(
    ("timeout", "around", "deadline", "fresh"),
    [
        (None, None, None, None),
        (5.0, None, 1005.0, 1005.0),
        (0.0, None, inf, inf),
        (5.0, 1002.0, 1002.0, 1005.0),
        (5.0, 1009.0, 1009.0, 1005.0),
        (None, 1002.0, 1002.0, None),
        (0.0, 1002.0, 1002.0, inf),
    ],
)
def test_deadline_combines_timeout_and_surrounding_limit(timeout: Any, around: Any, deadline: Any, fresh: Any) -> None:
    executor = executor_of(timeout)
    with until(around):
        assert executor.deadline() == deadline
        assert executor.fresh_deadline() == fresh
        assert executor.has_limit is (deadline is not None)


@pytest.mark.parametrize(
    ("timeout", "around", "deadline"),
    [(2000, None, 1002.0), (2000, 1001.0, 1001.0), (2000, 1003.0, 1002.0), (0, 1001.0, 1001.0), (0, None, inf)],
)
def test_timeout_of_one_operation_never_exceeds_surrounding_limit(timeout: float, around: Any, deadline: float) -> None:
    executor = executor_of(5.0)
    with until(around):
        limited = executor.for_operation(timeout, None)
        assert limited is not executor and limited.deadline() == deadline
        assert executor.for_operation(None, None) is executor
    assert executor.deadline() == 1005.0


def test_limited_executor_has_its_own_deadline() -> None:
    executor = executor_of(5.0)
    assert executor.with_timeout(None) is executor is executor.with_timeout(5.0)
    other = executor.with_timeout(7.0)
    assert (other.deadline(), executor.deadline(), other.sessions) == (1007.0, 1005.0, executor.sessions)
    with until(1001.0):
        assert other.deadline() == 1001.0


def test_invalid_timeout_ms_raises() -> None:
    for wrong, error in (("x", TypeError), (True, TypeError), (-1, ValueError)):
        with pytest.raises(error, match=r"^timeout_ms must be "):
            executor_of().for_operation(wrong, None)


def test_executors_have_consecutive_numbers_and_topology_epoch() -> None:
    first, second = executor_of(), executor_of(epoch=3)
    assert second.number == first.number + 1 and (first.epoch, second.epoch) == (0, 3)
    assert Executor.observers is None and first.backing_off == {}
    with first.operation_scope("x", OperationContext("db"), None) as account:
        assert account is None


def test_operation_on_foreign_client_raises_invalid_operation() -> None:
    unsupported = UnsupportedClient({})
    assert unsupported.with_timeout(5.0) is unsupported and unsupported.deadline() is None  # type: ignore[func-returns-value]
    with pytest.raises(AttributeError, match=r"^__nothing__$"):
        unsupported.__nothing__  # noqa: B018
    with pytest.raises(InvalidOperation) as caught:
        unsupported.run  # noqa: B018
    assert str(caught.value) == (
        "gmongo cannot run this operation on builtins.dict, which is another library's class: only a gmongo "
        "MongoClient sends operations"
    )


def test_end_sessions_command_has_no_lsid() -> None:
    (ending,) = EndSessions.batches([{"id": 1}])
    command: dict[str, Any] = {}
    decorator()[0].add_fields(command, attempt_of(ending), connection_of())
    assert command["$db"] == "admin" and "lsid" not in command


@pytest.mark.parametrize("in_background", [False, True])
def test_only_background_operation_stops_keeping_event_loop_alive(in_background: bool) -> None:
    operation = operation_of(in_background=in_background)
    connection = Mock(error=None)
    pin: Any = MagicMock(connection=connection)
    pin.__enter__.return_value = connection
    executor: Any = Mock()
    executor.commands.run.return_value = "result"
    assert Attempt(operation, None)._run_pinned(pin, executor) == "result"
    assert [call.args for call in connection.set_ref.call_args_list] == ([(False,), (True,)] if in_background else [])


@pytest.mark.parametrize("copied", [False, True])
def test_operation_copied_by_fork_is_not_retried(copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = executor_of()
    attempts: list[Any] = []

    def run(attempt: Attempt, executor: Any) -> Any:
        attempts.append(attempt)
        attempt.epoch = 0
        if len(attempts) == 1:
            executor.topology.epoch = 1
            raise AutoReconnect("x")
        return "result"

    monkeypatch.setattr(Attempt, "run", run)
    monkeypatch.setattr(Attempt, "belongs_to_parent", lambda _: copied)
    monkeypatch.setattr(Retry, "failed", lambda *_: None)
    monkeypatch.setattr(Executor, "_next_attempt", lambda _, attempt, retry: attempt)
    operation = operation_of(takes_session=False)
    if copied:
        with pytest.raises(AutoReconnect):
            executor.run(operation)
    else:
        assert executor.run(operation) == "result"
    assert len(attempts) == (1 if copied else 2)
