"""Create spans with only the API of OpenTelemetry.

An application also installs an SDK, which collects spans.
"""

from __future__ import annotations

from typing import Any

from opentelemetry import trace

import gmongo
from tests.support.server import ScriptedServer

names: list[str] = []


class Tracer(trace.NoOpTracer):
    def start_span(self, name: str, *arguments: Any, **options: Any) -> trace.Span:
        names.append(name)
        return trace.NonRecordingSpan(trace.SpanContext(1, 1, is_remote=False))


class Provider(trace.TracerProvider):
    def get_tracer(self, *_about: Any, **_options: Any) -> trace.Tracer:
        return Tracer()


def main() -> None:
    trace.set_tracer_provider(Provider())
    with (
        ScriptedServer() as server,
        gmongo.MongoClient("127.0.0.1", server.port, tracing={"enabled": True}, metrics=True) as client,
    ):
        assert client.db.c.find_one({"_id": 1}) == {"_id": 1}
    assert "find db.c" in names, names
