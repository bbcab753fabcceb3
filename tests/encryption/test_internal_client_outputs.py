"""Internal clients for encryption publish events, logs, spans, metrics and states.

Only the internal client for mongocryptd is silent, because its commands contain plaintext.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gmongo
from gmongo import MongoClient, monitoring
from gmongo._fork import list_forkables
from gmongo.encryption import ClientEncryption
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import EncryptionError
from gmongo.execution.executor import Executor
from gmongo.status import process_state
from tests.encryption.conftest import CODEC_OPTIONS, KMS_PROVIDERS, VAULT
from tests.support.mongocryptd import Mongocryptd
from tests.support.recorder import Recorder

PLAINTEXT = "457-55-5462"
ENVIRONMENT = {
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_ENABLED": "true",
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_METRICS_ENABLED": "true",
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH": "10000",
}

# Keys: the module and the function that creates an internal client. Values: the purpose of the
# client, True if the client has outputs such as logs, and the reason.
INTERNAL_CLIENTS = {
    ("_encryption/automatic.py", "_new_client"): (
        "reads data keys and schemas",
        True,
        "the commands contain only filters of keys and names of collections, and the master key encrypts the keys",
    ),
    ("_encryption/automatic.py", "new_client"): (
        "sends commands to mongocryptd",
        False,
        "the commands contain plaintext",
    ),
}


class Outputs:
    """The recorded outputs of the driver: logs, events, spans, metrics and states."""

    def __init__(self, records: list[logging.LogRecord], listener: Recorder, spans: Any, metrics: Any) -> None:
        self._records, self._listener, self._spans, self._metrics = records, listener, spans, metrics
        self._states: list[Any] = []

    def record_state(self) -> None:
        """Record the current state of the process, which the status page shows."""
        self._states.append(process_state(query_text=True))

    def channels(self) -> dict[str, str]:
        """Return the recorded outputs as texts, keyed by the kind of the output."""
        events = [(event, [getattr(event, each, "") for each in _PAYLOAD_FIELDS]) for event in self._listener.events]
        return {
            "log": repr([(each.getMessage(), getattr(each, "structured", "")) for each in self._records]),
            "events": repr(events),
            "spans": repr([each.to_json() for each in self._spans.get_finished_spans()]),
            "metrics": str(self._metrics.get_metrics_data().to_json()),
            "status": repr(self._states),
        }


_PAYLOAD_FIELDS = ("command", "reply", "failure", "address", "connection_id", "new_description")


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Outputs]:
    """Enable and record all outputs of the clients that a test creates."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracer_provider = TracerProvider(shutdown_on_exit=False)
    tracer_provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", tracer_provider)
    meter_provider = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr("gmongo._telemetry.metrics.get_meter_provider", lambda: meter_provider)
    listener = Recorder()
    monkeypatch.setattr("gmongo.monitoring.listeners._registered_listeners", [listener])
    caplog.set_level(logging.DEBUG, "gmongo")
    yield Outputs(caplog.records, listener, spans, reader)
    assert monitoring.global_listeners() == (listener,)


@pytest.fixture
def connect(deployment: Any, client: Any, mongocryptd: Mongocryptd) -> Iterator[Callable[[], MongoClient[Any]]]:
    """Return a function that creates clients. The clients encrypt the field ``ssn`` of
    ``shop.people``.
    """
    client.shop.people.drop()
    with ClientEncryption(KMS_PROVIDERS, VAULT, client, CODEC_OPTIONS) as encryption:
        key = encryption.create_data_key("local")
    rule = {"keyId": [key], "bsonType": "string", "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"}
    schema = {"bsonType": "object", "properties": {"ssn": {"encrypt": rule}}}
    clients: list[MongoClient[Any]] = []

    def create_client(**options: Any) -> MongoClient[Any]:
        auto = AutoEncryptionOpts(
            KMS_PROVIDERS,
            VAULT,
            **{
                "schema_map": {"shop.people": schema},
                "mongocryptd_uri": mongocryptd.uri,
                "mongocryptd_bypass_spawn": True,
                **options,
            },
        )
        clients.append(MongoClient(deployment.uri, auto_encryption_opts=auto, slow_operation_ms=0.001))
        return clients[-1]

    yield create_client
    for each in clients:
        each.close()


def executors() -> set[Executor]:
    return {each for each in list_forkables() if isinstance(each, Executor)}


def test_only_internal_client_for_mongocryptd_has_no_outputs(outputs: Outputs, connect: Any) -> None:
    before = executors()
    client = connect()
    client.shop.people.insert_one({"ssn": PLAINTEXT})
    internal_executors = executors() - before - {client._executor}
    assert len(internal_executors) == len(INTERNAL_CLIENTS)
    assert sum(each.topology.settings.silent for each in internal_executors) == [
        has_outputs for _, has_outputs, _ in INTERNAL_CLIENTS.values()
    ].count(False)


def test_outputs_contain_no_command_for_mongocryptd(outputs: Outputs, connect: Any, mongocryptd: Mongocryptd) -> None:
    client = connect()
    client.shop.people.insert_one({"ssn": PLAINTEXT})
    assert client.shop.people.find_one({"ssn": PLAINTEXT})["ssn"] == PLAINTEXT
    with pytest.raises(EncryptionError):
        client.shop.people.find_one({"ssn": {"$gt": PLAINTEXT}})
    outputs.record_state()
    client.close()
    assert mongocryptd.analysed_commands
    for channel, text in outputs.channels().items():
        assert mongocryptd.name not in text and f"{mongocryptd.address[1]}" not in text, channel
        # Check that all outputs except the metrics contain commands of the application.
        assert "shop" in text or channel == "metrics", channel
        position = text.find(PLAINTEXT)
        assert position < 0, (channel, text[max(0, position - 300) : position + 20])


def test_table_lists_every_function_that_creates_internal_client() -> None:
    root = Path(gmongo.__file__).parent
    client_calls = set()
    for path in root.rglob("*.py"):
        module = path.relative_to(root)
        if module.parts[0] == "testing":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            function = node.func if isinstance(node, ast.Call) else None
            name = getattr(function, "id", getattr(function, "attr", ""))
            if name in ("MongoClient", "_SilentClient") or name.endswith("new_client"):
                client_calls.add((str(module), name))
    assert client_calls == set(INTERNAL_CLIENTS)
