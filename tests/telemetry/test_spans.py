"""Spans follow the OpenTelemetry specification for drivers. ``tests/spec`` runs the test files of the
specification.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gevent
import pytest
from bson import Int64
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from gmongo import InsertOne, MongoClient, errors
from gmongo._telemetry import tracing
from gmongo._telemetry.text import error_attributes, error_type_of, query_text
from gmongo.execution.operation_trace import OperationTrace, Phase
from gmongo.monitoring import ConnectionCreatedEvent
from gmongo.testing import Deployment
from tests.support.cases import with_cases
from tests.support.fail_points import fail
from tests.support.listeners import ForwardingPoolListener
from tests.support.server import ScriptedServer
from tests.support.wait import eventually
from tests.telemetry.conftest import Client, SpanCollector, event_names, fail_once, is_parent

VARIABLE_PREFIX = "OTEL_PYTHON_INSTRUMENTATION_MONGODB_"
Connect = Callable[..., Client]


# Prose tests of the OpenTelemetry specification


def test_prose_1_environment_variable_or_option_enables_tracing(
    deployment: Deployment, spans: SpanCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracing = {"tracer_provider": spans.provider}
    monkeypatch.setenv(f"{VARIABLE_PREFIX}ENABLED", "false")
    with MongoClient(deployment.uri, tracing=tracing) as client:
        client.shop.orders.find_one()
    assert spans.ended == []
    for value in ("1", "TRUE", "yes"):
        monkeypatch.setenv(f"{VARIABLE_PREFIX}ENABLED", value)
        with MongoClient(deployment.uri, tracing=tracing) as client:
            client.shop.orders.find_one()
        assert spans.only_span("find shop.orders")
        spans.clear()
    # The option `enabled` overrides the environment variable.
    with MongoClient(deployment.uri, tracing={**tracing, "enabled": False}) as client:
        client.shop.orders.find_one()
    assert spans.ended == []


def test_prose_2_environment_variable_or_option_enables_query_text(
    connect: Connect, spans: SpanCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{VARIABLE_PREFIX}QUERY_TEXT_MAX_LENGTH", "1024")
    connect().shop.orders.find_one({"x": 1})
    assert spans.only_span("find").attributes["db.query.text"].startswith('{"find": "orders", "filter": {"x": 1}')
    spans.clear()
    connect(0).shop.orders.find_one({"x": 1})  # the option `query_text_max_length` overrides the environment variable
    assert "db.query.text" not in spans.only_span("find").attributes
    spans.clear()
    monkeypatch.delenv(f"{VARIABLE_PREFIX}QUERY_TEXT_MAX_LENGTH")
    connect().shop.orders.find_one({"x": 1})
    assert "db.query.text" not in spans.only_span("find").attributes


def test_prose_3_spans_of_transaction_contain_find_and_get_more(connect: Connect, spans: SpanCollector) -> None:
    client = connect()
    client.shop.orders.insert_many([{"x": x} for x in range(3)])
    spans.clear()
    with client.start_session() as session:
        session.with_transaction(lambda session: list(client.shop.orders.find({}, batch_size=2, session=session)))
    transaction = spans.only_span("transaction")
    assert is_parent(spans.only_span("find shop.orders"), transaction)
    assert is_parent(spans.only_span("getMore shop.orders"), transaction)
    assert is_parent(spans.only_span("commitTransaction admin"), transaction)
    assert dict(transaction.attributes or {}) == {"db.system.name": "mongodb"}


def test_spans_of_bound_session_are_in_span_of_transaction(connect: Connect, spans: SpanCollector) -> None:
    client = connect()
    with client.start_session() as session, session.bind(), session.start_transaction():
        client.shop.orders.find_one()
        client.shop.orders.bulk_write([InsertOne({})])
    transaction = spans.only_span("transaction")
    assert is_parent(spans.only_span("find shop.orders"), transaction)
    assert is_parent(spans.only_span("bulkWrite shop.orders"), transaction)


def test_span_of_transaction_has_error_of_commit(connect: Connect, spans: SpanCollector) -> None:
    client = connect()
    client.shop.orders.insert_one({})
    fail(client, "commitTransaction", errorCode=96)
    with client.start_session() as session, pytest.raises(errors.OperationFailure), session.start_transaction():
        client.shop.orders.find_one({}, session=session)
    status = spans.only_span("transaction").status
    assert (status.status_code, status.description) == (StatusCode.ERROR, "gmongo.errors.OperationFailure")


def test_span_of_transaction_without_operation_ends_with_session(connect: Connect, spans: SpanCollector) -> None:
    with connect().start_session() as session:
        session.start_transaction()
    assert spans.only_span("transaction").end_time


def test_prose_4_spans_of_get_more_have_cursor_id(connect: Connect, spans: SpanCollector) -> None:
    client = connect()
    client.shop.orders.insert_many([{"x": x} for x in range(3)])
    cursor = client.shop.orders.find({}, batch_size=2)
    next(cursor)
    cursor_id = cursor.cursor_id
    assert spans.only_span("find").instrumentation_scope.name == "gmongo"
    assert len(list(cursor)) == 2
    assert cursor.cursor_id == 0
    for name in ("getMore shop.orders", "getMore"):
        assert spans.only_span(name).attributes["db.mongodb.cursor_id"] == cursor_id
    assert spans.only_span("find").attributes["db.mongodb.cursor_id"] == cursor_id


# Tests of the spans of operations and commands


def test_command_with_secret_has_operation_span_without_values(connect: Connect, spans: SpanCollector) -> None:
    client = connect(10_000)
    client.admin.command("createUser", "somebody", pwd="hunter2", roles=[])
    with pytest.raises(errors.OperationFailure):
        client.admin.command("createUser", "somebody", pwd="hunter2", roles=[])
    client.admin.command("dropUser", "somebody")
    span_texts = [(span.name, dict(span.attributes or {})) for span in spans.ended]
    assert [name for name, _ in span_texts] == ["runCommand admin", "runCommand admin", "dropUser", "runCommand admin"]
    assert "hunter2" not in str(span_texts)
    assert "db.collection.name" not in span_texts[2][1]


def test_spans_of_collection_creation_and_drop_have_names_of_specification(
    connect: Connect, spans: SpanCollector
) -> None:
    client = connect()
    client.shop.create_collection("orders", check_exists=False)
    client.shop.drop_collection("orders")
    assert spans.only_span("createCollection shop.orders") and spans.only_span("dropCollection shop.orders")


def test_span_of_database_command_has_collection_name_only_if_first_field_is_collection(
    connect: Connect, spans: SpanCollector
) -> None:
    client = connect()
    client.shop.command("count", "orders")
    commands: dict[str, Any] = {"dropUser": "ada", "validate": "$cmd.x", "dropIndexes": 5, "listIndexes": "orders"}
    for name, value in commands.items():
        with pytest.raises(errors.OperationFailure):
            (client.admin if name == "listIndexes" else client.shop).command(name, value)
    with pytest.raises(errors.CursorNotFound):
        client.shop.command("getMore", Int64(5), collection="orders")
    collections = {span.name: dict(span.attributes or {}).get("db.collection.name") for span in spans.ended}
    assert [collections[name] for name in ("count", "getMore", *commands)] == ["orders"] * 2 + [None] * 4


def test_span_of_command_with_secret_omits_server_error_message(spans: SpanCollector) -> None:
    # The server's error message may contain a part of the password.
    error_reply = {"ok": 0, "code": 2, "codeName": "BadValue", "errmsg": "too short: the password, which begins with h"}
    with (
        ScriptedServer({"createUser": error_reply}) as server,
        MongoClient(
            server.name, tracing={"enabled": True, "tracer_provider": spans.provider, "query_text_max_length": 1000}
        ) as client,
        pytest.raises(errors.OperationFailure, match="begins with h"),
    ):
        client.admin.command("createUser", "somebody", pwd="hunter2", roles=[])
    span = spans.only_span("runCommand admin")
    assert span.attributes is not None and span.attributes["exception.message"] == "BadValue (code 2)"
    assert span.attributes["error.type"] == "gmongo.errors.OperationFailure"
    assert "begins with h" not in str([dict(event.attributes or {}) for event in span.events])


def test_span_has_server_error_message_only_with_query_text(spans: SpanCollector) -> None:
    error_reply = {"ok": 0, "code": 2, "codeName": "BadValue", "errmsg": "unknown operator: $nosuch"}
    with ScriptedServer({"find": error_reply, "aggregate": error_reply}) as server:
        for length, message in ((1000, "unknown operator: $nosuch"), (7, "unknown"), (0, "BadValue (code 2)")):
            tracing = {"enabled": True, "tracer_provider": spans.provider, "query_text_max_length": length}
            with MongoClient(server.name, tracing=tracing) as client:
                for call in (client.shop.orders.find_one, lambda c=client: list(c.shop.orders.aggregate([]))):
                    with pytest.raises(errors.OperationFailure):
                        call()
            span_attributes = [dict(span.attributes or {}) for span in spans.ended]
            spans.clear()
            messages = [str(each["exception.message"]) for each in span_attributes if "exception.message" in each]
            assert len(messages) == 4 and all(each.startswith(message) for each in messages), messages


def test_span_without_query_text_contains_no_user_data(connect: Connect, spans: SpanCollector) -> None:
    orders = connect().shop.orders
    orders.insert_one({"_id": "private"})
    with pytest.raises(errors.DuplicateKeyError, match="private"):
        orders.insert_one({"_id": "private"})
    with pytest.raises(Exception, match="private"):
        orders.insert_one({"x": UnencodableValue()})
    with pytest.raises(errors.OperationFailure, match="private"):
        orders.find_one({"$private": 1})
    contents = [
        (dict(span.attributes or {}), span.status.description, [dict(event.attributes or {}) for event in span.events])
        for span in spans.ended
    ]
    assert sum("exception.type" in attributes for attributes, *_ in contents) >= 4
    assert "private" not in str(contents)
    assert any(attributes.get("exception.message") == "DuplicateKeyError (code 11000)" for attributes, *_ in contents)


class UnencodableValue:
    class NestedError(Exception):
        pass

    def __repr__(self) -> str:
        return "private"


@pytest.mark.parametrize(
    ("error", "expected_type", "message"),
    [
        (ValueError("xy"), "ValueError", "ValueError"),
        (GeneratorExit(), "GeneratorExit", "GeneratorExit"),
        (errors.AutoReconnect("xy"), "gmongo.errors.AutoReconnect", "xy"),
        (UnencodableValue.NestedError(), "tests.telemetry.test_spans.UnencodableValue.NestedError", "NestedError"),
        (type("Detailed", (Exception,), {"details": {}})("xy"), "tests.telemetry.test_spans.Detailed", "Detailed"),
        (errors.OperationFailure("xy", None, {"codeName": "Odd"}), "gmongo.errors.OperationFailure", "Odd"),
        (
            errors.OperationFailure("y", 5, {"codeName": "-"}),
            "gmongo.errors.OperationFailure",
            "OperationFailure (code 5)",
        ),
    ],
)
def test_error_type_attribute_is_qualified_class_name(error: BaseException, expected_type: str, message: str) -> None:
    assert error_type_of(error) == expected_type
    assert error_attributes(error, 0) == {"exception.type": expected_type, "exception.message": message}
    assert error_attributes(error, 1)["exception.message"] == (str(error)[:1] or message)


def test_query_text_omits_session_and_signature() -> None:
    assert query_text(dict.fromkeys(("lsid", "$db", "$clusterTime", "signature", "x"), 1), 99) == '{"x": 1}'


def test_retry_adds_command_span_and_retry_event_to_operation_span(
    connect: Connect, spans: SpanCollector, deployment: Deployment
) -> None:
    client = connect()
    client.shop.orders.find_one()
    spans.clear()
    fail_once(deployment, failCommands=["find"], errorCode=89)
    client.shop.orders.find_one()
    operation = spans.only_span("find shop.orders")
    assert [is_parent(span, operation) for span in spans.named("find")] == [True, True]
    assert "retry" in event_names(operation)
    assert operation.status.status_code is StatusCode.UNSET


# Tests of current spans and of parent spans


def test_parent_of_operation_span_is_span_of_greenlet(connect: Connect, spans: SpanCollector) -> None:
    client = connect(maxPoolSize=1)
    tracer = spans.provider.get_tracer("application")

    def request(number: int) -> None:
        with tracer.start_as_current_span(f"request {number}") as request_span:
            for _ in range(3):
                client.shop.orders.insert_one({"request": number})
                assert trace.get_current_span() is request_span

    gevent.joinall([gevent.spawn(request, number) for number in range(5)], raise_error=True)
    operations = spans.named("insert shop.orders")
    assert len(operations) == 15
    for number in range(5):
        assert sum(is_parent(span, spans.only_span(f"request {number}")) for span in operations) == 3
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_connections_of_background_run_belong_to_no_span(spans: SpanCollector, deployment: Deployment) -> None:
    tracing = {"enabled": True, "tracer_provider": spans.provider}
    current_spans = []

    class SpanListener(ForwardingPoolListener):
        def handle(self, event: Any) -> None:
            if isinstance(event, ConnectionCreatedEvent):
                current_spans.append(trace.get_current_span())

    with (
        spans.provider.get_tracer("application").start_as_current_span("request"),
        MongoClient(deployment.uri, tracing=tracing, minPoolSize=3, event_listeners=[SpanListener()]) as client,
    ):
        eventually(lambda: len(current_spans) == 3)
        assert current_spans == [trace.INVALID_SPAN] * 3
        client.shop.orders.find_one()


def test_parent_of_read_ahead_span_is_span_of_reader(connect: Connect, spans: SpanCollector) -> None:
    client = connect()
    client.shop.orders.insert_many([{"x": x} for x in range(10)])
    with spans.provider.get_tracer("application").start_as_current_span("request"):
        assert len(list(client.shop.orders.find({}, batch_size=2).read_ahead())) == 10
    get_more_spans = spans.named("getMore shop.orders")
    assert len(get_more_spans) >= 4
    assert all(is_parent(span, spans.only_span("request")) for span in get_more_spans)


# Tests of tracer providers, of options, and of the observer `Traces`


@pytest.fixture
def created_traces(monkeypatch: pytest.MonkeyPatch) -> list[OperationTrace]:
    """Return a list that records all operation traces that the driver creates."""
    created: list[OperationTrace] = []
    init = OperationTrace.__init__
    monkeypatch.setattr(OperationTrace, "__init__", lambda self, *args: (created.append(self), init(self, *args))[1])
    return created


def test_driver_without_tracer_provider_creates_no_operation_trace(
    deployment: Deployment, created_traces: list[OperationTrace]
) -> None:
    with MongoClient(deployment.uri, tracing={"enabled": True}) as client:
        client.shop.orders.find_one()
    assert created_traces == []
    with MongoClient(deployment.uri, slow_operation_ms=1) as client:
        client.shop.orders.find_one()
    assert created_traces != []


def test_proxy_tracer_provider_counts_as_missing(
    deployment: Deployment, created_traces: list[OperationTrace], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Disable the driver's fast check for a provider. The check reads a private attribute of
    # OpenTelemetry, which a release of OpenTelemetry may remove.
    monkeypatch.setattr("gmongo._telemetry.tracing._has_no_provider", lambda: False)
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    with MongoClient(deployment.uri, tracing={"enabled": True}) as client:
        client.shop.orders.find_one()
    assert created_traces == []


def test_tracer_provider_set_after_client_creation_is_used(deployment: Deployment) -> None:
    program = f"""
from opentelemetry import trace
from gmongo import MongoClient
client = MongoClient({deployment.uri!r}, tracing={{"enabled": True}})
client.shop.orders.find_one()
from tests.telemetry.conftest import SpanCollector
spans = SpanCollector()
trace.set_tracer_provider(spans.provider)
client.shop.orders.find_one()
print([span.name for span in spans.ended])
"""
    assert run(program) == "['find', 'find shop.orders']\n"


def test_client_without_tracing_does_not_import_opentelemetry() -> None:
    assert run("import gmongo, sys; gmongo.MongoClient(connect=False); print('opentelemetry' in sys.modules)") == (
        "False\n"
    )


def run(program: str) -> str:
    command = [sys.executable, "-c", f"import gevent\n{program}"]
    result = gevent.get_hub().threadpool.apply(
        subprocess.run, (command,), {"capture_output": True, "text": True, "timeout": 60}
    )
    assert result.returncode == 0, result.stderr
    return str(result.stdout)


def test_missing_opentelemetry_package_raises_for_option_and_warns_for_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gmongo._telemetry.settings.find_spec", lambda name: None)
    with pytest.raises(errors.ConfigurationError, match=r"tracing needs the package opentelemetry-api.*gmongo\["):
        MongoClient(connect=False, tracing={"enabled": True})
    with pytest.raises(errors.ConfigurationError, match=r"metrics needs the package opentelemetry-api"):
        MongoClient(connect=False, metrics=True)
    monkeypatch.setenv(f"{VARIABLE_PREFIX}ENABLED", "true")
    with pytest.warns(UserWarning, match=f"{VARIABLE_PREFIX}ENABLED has no effect"):
        assert MongoClient(connect=False)._executor.observers is None


@with_cases
def test_invalid_tracing_option_raises_error(tracing: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"{message}(?!\w)"):
        MongoClient(connect=False, tracing=tracing)


def test_tracing_option_in_uri_warns() -> None:
    with pytest.warns(UserWarning, match="tracing"):
        assert MongoClient("mongodb://localhost/?tracing=true", connect=False)


def end_command(reply: Any, error: BaseException | None, cursor_id: int | None = None, records: bool = True) -> Any:
    """Let the observer `Traces` record the end of a command twice. Return the span, which
    ends only once.
    """
    span = Mock(is_recording=lambda: records)
    operation_trace: Any = Mock(cursor_id=cursor_id, notes={7: span})
    sent_command: Any = SimpleNamespace(request_id=7)
    tracing.Traces(None, 0).command_ended(operation_trace, sent_command, reply, error)
    assert span.end.call_count == 1 and operation_trace.notes == {}
    tracing.Traces(None, 0).command_ended(operation_trace, sent_command, reply, error)
    assert span.end.call_count == 1
    return span


@pytest.mark.parametrize(
    ("error", "attributes"),
    [
        (errors.OperationFailure("x", 8000), {"db.response.status_code": "8000", "error.type": "8000"}),
        (errors.AutoReconnect("x"), {"error.type": "gmongo.errors.AutoReconnect"}),
        (KeyError("x"), {"error.type": "KeyError"}),
    ],
)
def test_failed_command_adds_error_attributes_and_event_to_span(
    error: BaseException, attributes: dict[str, Any]
) -> None:
    span = end_command(None, error)
    assert dict(call.args for call in span.set_attribute.call_args_list) == attributes
    ((recorded,),) = (call.args for call in span.set_attributes.call_args_list)
    assert recorded["exception.type"] == tracing.error_type_of(error)
    assert recorded["exception.stacktrace"].endswith(f"{recorded['exception.type']}: {recorded['exception.message']}")
    span.add_event.assert_called_once_with("exception", recorded)
    ((status,),) = (call.args for call in span.set_status.call_args_list)
    assert (status.status_code.name, status.description) == ("ERROR", tracing.error_type_of(error))
    span = end_command(None, error, records=False)
    assert not span.set_attributes.called and not span.add_event.called and not span.set_status.called


@pytest.mark.parametrize("is_recording", [False, True])
@with_cases
def test_wait_of_at_least_one_millisecond_or_failed_wait_adds_span_event(
    is_recording: bool, seconds: float, connecting: float, error: Any, expected: Any
) -> None:
    traces, span = tracing.Traces(None, 0), Mock(is_recording=lambda: is_recording)
    operation_trace: Any = Mock(notes={traces: (span, None, None)})
    traces.wait_ended(operation_trace, Phase.SELECTION, seconds, connecting, error)
    added_events = [call.args for call in span.add_event.call_args_list]
    assert added_events == ([(Phase.SELECTION.value, expected)] if expected is not None and is_recording else [])
    traces.wait_ended(Mock(notes={}), Phase.SELECTION, 1.0, 0.0, None)
    traces.attempt_failed(Mock(notes={}), errors.AutoReconnect("x"))
