"""Clients that the driver makes for itself, and what may be seen of each."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gmongo
from gmongo import MongoClient, monitoring
from gmongo._fork import forkables
from gmongo.encryption import ClientEncryption
from gmongo.encryption_options import AutoEncryptionOpts
from gmongo.errors import EncryptionError
from gmongo.execution.executor import Executor
from gmongo.status import process_state
from tests.encryption.conftest import LOCAL, OPTIONS, VAULT
from tests.support.listeners import HearsAll
from tests.support.mongocryptd import Mongocryptd

PLAINTEXT = "457-55-5462"
ENVIRONMENT = {
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_ENABLED": "true",
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_METRICS_ENABLED": "true",
    "OTEL_PYTHON_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH": "10000",
}

# What makes clients in the driver, what they are for, and what may be seen of them.
MADE = {
    ("_encryption/automatic.py", "_new_client"): (
        "asks for data keys and schemas",
        True,
        "it is like the application's client: filters of keys and names of collections go out, and what comes back is "
        "encrypted by the master key",
    ),
    ("_encryption/query_analysis.py", "new_client"): ("asks mongocryptd", False, "commands go there in plaintext"),
}


class Everything(HearsAll):
    """Hears of all clients, as ``gmongo.monitoring.register`` has it."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def hear(self, event: Any) -> None:
        self.heard.append(event)


class Seen:
    """All that leaves the driver."""

    def __init__(self, records: list[logging.LogRecord], listener: Everything, spans: Any, metrics: Any) -> None:
        self._records, self._listener, self._spans, self._metrics = records, listener, spans, metrics
        self._states: list[Any] = []

    def look(self) -> None:
        """At what the page shows now."""
        self._states.append(process_state(query_text=True))

    def channels(self) -> dict[str, str]:
        """By where it is seen, as text."""
        events = [(event, [getattr(event, each, "") for each in _PAYLOADS]) for event in self._listener.heard]
        return {
            "log": repr([(each.getMessage(), getattr(each, "structured", "")) for each in self._records]),
            "events": repr(events),
            "spans": repr([each.to_json() for each in self._spans.get_finished_spans()]),
            "metrics": str(self._metrics.get_metrics_data().to_json()),
            "status": repr(self._states),
        }


_PAYLOADS = ("command", "reply", "failure", "address", "connection_id", "new_description")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Seen]:
    """Everything is switched on for all clients that are made from now on."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    spans, reader, tracers = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", tracers)
    meters = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr("gmongo._telemetry.metrics.get_meter_provider", lambda: meters)
    listener = Everything()
    monkeypatch.setattr("gmongo.monitoring.listeners._registered", [listener])
    caplog.set_level(logging.DEBUG, "gmongo")
    yield Seen(caplog.records, listener, spans, reader)
    assert monitoring.global_listeners() == (listener,)


@pytest.fixture
def mongocryptd() -> Iterator[Mongocryptd]:
    with Mongocryptd() as running:
        yield running


@pytest.fixture
def connect(deployment: Any, client: Any, mongocryptd: Mongocryptd) -> Iterator[Callable[[], MongoClient[Any]]]:
    """Makes clients that encrypt ``shop.people.ssn``."""
    client.shop.people.drop()
    with ClientEncryption(LOCAL, VAULT, client, OPTIONS) as encryption:
        key = encryption.create_data_key("local")
    rule = {"keyId": [key], "bsonType": "string", "algorithm": "AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic"}
    schema = {"bsonType": "object", "properties": {"ssn": {"encrypt": rule}}}
    made: list[MongoClient[Any]] = []

    def make(**options: Any) -> MongoClient[Any]:
        auto = AutoEncryptionOpts(
            LOCAL,
            VAULT,
            **{
                "schema_map": {"shop.people": schema},
                "mongocryptd_uri": mongocryptd.uri,
                "mongocryptd_bypass_spawn": True,
                **options,
            },
        )
        made.append(MongoClient(deployment.uri, auto_encryption_opts=auto, slow_operation_ms=0.001))
        return made[-1]

    yield make
    for each in made:
        each.close()


def executors() -> set[Executor]:
    return {each for each in forkables() if isinstance(each, Executor)}


def test_of_the_clients_that_the_driver_makes_only_the_one_for_mongocryptd_is_silent(seen: Seen, connect: Any) -> None:
    before = executors()
    client = connect()
    client.shop.people.insert_one({"ssn": PLAINTEXT})
    found = executors() - before - {client._executor}
    assert len(found) == len(MADE)
    assert sum(each.topology.settings.silent for each in found) == [seen for _, seen, _ in MADE.values()].count(False)


def test_nothing_is_seen_of_what_mongocryptd_is_asked(seen: Seen, connect: Any, mongocryptd: Mongocryptd) -> None:
    client = connect()
    client.shop.people.insert_one({"ssn": PLAINTEXT})
    assert client.shop.people.find_one({"ssn": PLAINTEXT})["ssn"] == PLAINTEXT
    with pytest.raises(EncryptionError):
        client.shop.people.find_one({"ssn": {"$gt": PLAINTEXT}})
    seen.look()
    client.close()
    assert mongocryptd.analysed
    for channel, text in seen.channels().items():
        assert mongocryptd.name not in text and f"{mongocryptd.address[1]}" not in text, channel
        assert "shop" in text or channel == "metrics", channel  # the application's client is seen there
        at = text.find(PLAINTEXT)
        assert at < 0, (channel, text[max(0, at - 300) : at + 20])


def test_nothing_is_seen_of_a_mongocryptd_that_is_not_there(seen: Seen, connect: Any) -> None:
    client = connect(mongocryptd_uri="mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100&heartbeatFrequencyMS=500")
    with pytest.raises(EncryptionError) as raised, gmongo.timeout(0.3):
        client.shop.people.insert_one({"ssn": PLAINTEXT})
    assert "127.0.0.1:1" in str(raised.value)  # the application itself is told
    seen.look()
    client.close()
    channels = seen.channels()
    del channels["spans"]  # of the operation, with its error
    for channel, text in channels.items():
        assert not re.search(r"127\.0\.0\.1(:|', )1\b", text), channel
        assert PLAINTEXT not in text, channel


def test_the_driver_makes_no_other_clients() -> None:
    """For each place where the driver makes another client: what may be seen of it."""
    root = Path(gmongo.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        inside = path.relative_to(root)
        if inside.parts[0] == "testing":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            name = getattr(called, "id", getattr(called, "attr", ""))
            if name in ("MongoClient", "_SilentClient") or name.endswith("new_client"):
                found.add((str(inside), name))
    assert found == set(MADE)
