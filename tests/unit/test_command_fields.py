"""Fields that gmongo adds to commands, and deadlines that an executor calculates."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from bson import Timestamp

from gmongo import _clock
from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.errors import ConfigurationError, ExecutionTimeout
from gmongo.events.command import CommandEvents
from gmongo.execution.command_fields import CommandFields
from gmongo.execution.deadline import until
from gmongo.execution.executor import Executor
from gmongo.execution.operation import Operation, OperationContext
from gmongo.execution.retry import ExecutionSettings
from gmongo.read_preferences import Nearest, Primary, Secondary
from gmongo.wire.timeout import seconds_of
from tests.support.cases import with_cases

ADDRESS = ("h", 1)


@pytest.fixture(autouse=True)
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_clock, "monotonic", lambda: 1000.0)


def cluster_time_of(seconds: int) -> dict[str, Any]:
    return {"clusterTime": Timestamp(seconds, 1)}


def operation_with(**attributes: Any) -> Operation:
    context = attributes.pop("context", OperationContext("db", "c"))
    operation_class: type[Operation] = type("Kind", (Operation,), {"name": "kind", **attributes})
    return operation_class(context)


def attempt_of(operation: Operation, **fields: Any) -> Any:
    defaults = {
        "operation": operation, "deadline": None, "session": None, "server_session": None, "transaction": None,
        "is_retryable_write": False, "selector": operation.context.selector,
    }  # fmt: skip
    return SimpleNamespace(**{**defaults, **fields})


def connection_with_hello(**hello_attributes: Any) -> Any:
    defaults = {"sessions_supported": True, "is_standalone": False, "is_mongos": False}
    return SimpleNamespace(address=ADDRESS, hello=SimpleNamespace(**{**defaults, **hello_attributes}))


def make_command_fields(
    *,
    load_balanced: bool = False,
    server_api: Any = None,
    cluster_time: Any = None,
    topology_type: int = TOPOLOGY_TYPE.Sharded,
    round_trip_time: Any = None,
) -> tuple[CommandFields, Any]:
    servers = {} if round_trip_time is None else {ADDRESS: SimpleNamespace(min_round_trip_time=round_trip_time)}
    description = SimpleNamespace(topology_type=topology_type, get=servers.get)
    settings = SimpleNamespace(connection=SimpleNamespace(server_api=server_api or {}), load_balanced=load_balanced)
    topology: Any = SimpleNamespace(settings=settings, description=description, cluster_time=cluster_time)
    sessions: Any = Mock()
    sessions.acquire.side_effect = lambda: SimpleNamespace(lsid={"id": 1}, transaction_number=0, last_used=0.0)
    return CommandFields(topology, sessions), sessions


def command_with_fields(fields: CommandFields, attempt: Any, connection: Any, **command: Any) -> dict[str, Any]:
    fields.add_fields(command, attempt, connection)
    assert command.pop("$db") == "db"
    return command


@pytest.mark.parametrize("sessions_supported", [False, True])
@pytest.mark.parametrize("load_balanced", [False, True])
@pytest.mark.parametrize("is_explicit", [False, True])
@pytest.mark.parametrize("is_retryable", [False, True])
def test_bound_session_adds_lsid_cluster_time_and_transaction_number(
    sessions_supported: bool, load_balanced: bool, is_explicit: bool, is_retryable: bool
) -> None:
    server_session = SimpleNamespace(lsid={"id": 7}, transaction_number=4, last_used=0.0)
    explicit_session = Mock(cluster_time=cluster_time_of(5)) if is_explicit else None
    session = SimpleNamespace(server_session=server_session, explicit=explicit_session)
    attempt = attempt_of(operation_with(is_write=True), session=session, is_retryable_write=is_retryable)
    fields, sessions = make_command_fields(load_balanced=load_balanced, cluster_time=cluster_time_of(3))
    connection = connection_with_hello(sessions_supported=sessions_supported)
    if is_explicit and not sessions_supported and not load_balanced:
        with pytest.raises(ConfigurationError, match=r"^Sessions are not supported by this MongoDB deployment$"):
            command_with_fields(fields, attempt, connection)
        return
    command = command_with_fields(fields, attempt, connection)
    assert command.pop("$clusterTime") == cluster_time_of(5 if is_explicit else 3)
    session_is_used = sessions_supported or load_balanced
    expected: dict[str, Any] = {"lsid": {"id": 7}} if session_is_used else {}
    if session_is_used and is_retryable:
        expected["txnNumber"] = 5
    assert command == expected and server_session.last_used == (1000.0 if session_is_used else 0.0)
    assert server_session.transaction_number == 4 + (session_is_used and is_retryable) and not sessions.acquire.called
    if explicit_session is not None:
        explicit_session.add_read_concern.assert_called_once()
        assert explicit_session.add_read_concern.call_args.args[1:] == (True, connection.hello)


@pytest.mark.parametrize("preference", [Primary(), Secondary(), Nearest(max_staleness=100)])
@pytest.mark.parametrize("is_write", [False, True])
@pytest.mark.parametrize("server", ["standalone", "mongos", "member"])
@pytest.mark.parametrize("topology_type", [TOPOLOGY_TYPE.Single, TOPOLOGY_TYPE.Sharded])
@pytest.mark.parametrize("load_balanced", [False, True])
def test_read_preference_depends_on_server_and_topology_type(
    preference: Any, is_write: bool, server: str, topology_type: int, load_balanced: bool
) -> None:
    operation = operation_with(
        context=OperationContext("db", "c", selector=preference),
        is_write=is_write,
        takes_session=False,
    )
    connection = connection_with_hello(is_standalone=server == "standalone", is_mongos=server == "mongos")
    command = command_with_fields(
        make_command_fields(load_balanced=load_balanced, topology_type=topology_type)[0],
        attempt_of(operation),
        connection,
    )
    expected = None
    if not is_write and preference.mode != 0 and (server != "standalone" or load_balanced):
        expected = preference.document
    elif not is_write and preference.mode == 0 and server == "member" and topology_type == TOPOLOGY_TYPE.Single:
        expected = {"mode": "primaryPreferred"}
    assert command == ({} if expected is None else {"$readPreference": expected})


@pytest.mark.parametrize("takes_max_time", [False, True])
@pytest.mark.parametrize("waits_for_documents", [False, True])
@pytest.mark.parametrize("own_max_time", [None, 100, 5000])
@pytest.mark.parametrize(
    ("deadline", "round_trip_time", "largest_max_time_ms"),
    [(1002.0, None, 2000), (1002.0, 0.5, 1500), (1000.0005, 0.0, 1)],
)
def test_max_time_ms_never_exceeds_remaining_time_minus_round_trip_time(
    takes_max_time: bool,
    waits_for_documents: bool,
    own_max_time: int | None,
    deadline: float,
    round_trip_time: Any,
    largest_max_time_ms: int,
) -> None:
    operation = operation_with(
        takes_max_time=takes_max_time, waits_for_documents=waits_for_documents, takes_session=False
    )
    command = {} if own_max_time is None else {"maxTimeMS": own_max_time}
    fields_of_command = command_with_fields(
        make_command_fields(round_trip_time=round_trip_time)[0],
        attempt_of(operation, deadline=deadline),
        connection_with_hello(),
        **command,
    )
    if takes_max_time:
        assert fields_of_command == {"maxTimeMS": largest_max_time_ms}
    else:
        assert fields_of_command == (
            {"maxTimeMS": min(own_max_time, largest_max_time_ms)}
            if own_max_time is not None and waits_for_documents
            else {}
        )
    assert (
        command_with_fields(
            make_command_fields(round_trip_time=round_trip_time)[0],
            attempt_of(operation, deadline=inf),
            connection_with_hello(),
            **command,
        )
        == command
    )


@pytest.mark.parametrize(("deadline", "round_trip_time"), [(1000.5, 0.5), (1000.5, 0.75), (999.0, None)])
@pytest.mark.parametrize(
    ("limit", "limit_text"),
    [
        ((0.3, "gmongo.timeout"), "the limit of 300 ms (gmongo.timeout)"),
        (None, "the limit of the operation"),
    ],
)
def test_command_without_remaining_time_raises_execution_timeout(
    deadline: float, round_trip_time: Any, limit: Any, limit_text: str
) -> None:
    operation_deadline = deadline if limit is None else seconds_of(limit, deadline)
    attempt = attempt_of(operation_with(takes_session=False), deadline=operation_deadline)
    with pytest.raises(ExecutionTimeout) as caught:
        command_with_fields(make_command_fields(round_trip_time=round_trip_time)[0], attempt, connection_with_hello())
    message = f"{limit_text} ended before kind was sent"
    assert str(caught.value).startswith(message) and caught.value.code == 50
    assert caught.value.details == {"ok": 0, "errmsg": message, "code": 50}


def executor_with(timeout: float | None = None, epoch: int = 0) -> Executor:
    topology: Any = Mock(epoch=epoch)
    return Executor(topology, ExecutionSettings(timeout=timeout), CommandEvents((), silent=False))


@with_cases
def test_deadline_combines_timeout_and_surrounding_limit(
    timeout: Any, surrounding_deadline: Any, deadline: Any, fresh_deadline: Any
) -> None:
    executor = executor_with(timeout)
    with until(surrounding_deadline):
        assert executor.deadline() == deadline
        assert executor.fresh_deadline() == fresh_deadline
        assert executor.has_limit is (deadline is not None)


@with_cases
def test_timeout_of_one_operation_never_exceeds_surrounding_limit(
    timeout: float, surrounding_deadline: Any, deadline: float
) -> None:
    executor = executor_with(5.0)
    with until(surrounding_deadline):
        limited_executor = executor.for_operation(timeout, None)
        assert limited_executor is not executor and limited_executor.deadline() == deadline
        assert executor.for_operation(None, None) is executor
    assert executor.deadline() == 1005.0
