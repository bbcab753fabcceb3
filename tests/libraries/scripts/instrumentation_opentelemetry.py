from __future__ import annotations

import os

import pymongo
import pytest
from opentelemetry.instrumentation.pymongo import PymongoInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = PymongoInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


def test_a_span_for_each_command(spans):
    with pymongo.MongoClient(os.environ["MONGODB_URI"]) as client:
        client.test.traced.drop()
        client.test.traced.insert_one({"_id": 1})
        client.test.traced.find_one()
        with pytest.raises(pymongo.errors.DuplicateKeyError):
            client.test.traced.insert_one({"_id": 1})
        with pytest.raises(pymongo.errors.OperationFailure):
            client.test.command("nonsense")
    found = [(each.name, each.status.is_ok) for each in spans.get_finished_spans()]
    names = [name for name, _ in found]
    assert any("insert" in name for name in names)
    assert any("find" in name for name in names)
    assert [name for name, is_ok in found if not is_ok] != []
    attributes = dict(spans.get_finished_spans()[1].attributes)
    assert attributes["db.system"] == "mongodb" and attributes["db.name"] == "test"
