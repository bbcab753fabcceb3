"""Fixtures that start a replica set, create clients with tracing, and collect spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from gmongo import MongoClient
from gmongo._safe_log import safely
from gmongo.testing import Deployment

Client = MongoClient[dict[str, Any]]


class SpanCollector(SpanProcessor):
    """Span processor that collects the spans of the driver.

    ``open`` contains the spans that have not ended. ``ended`` contains the ended spans.
    """

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.ended: list[ReadableSpan] = []
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(self)

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.open.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.open = [each for each in self.open if each.context != span.context]
        self.ended.append(span)

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the ended spans with the given name, in the order in which the spans ended."""
        return [span for span in self.ended if span.name == name]

    def only_span(self, name: str) -> ReadableSpan:
        """Return the ended span with the given name. Fail unless exactly one span has the name."""
        (span,) = self.named(name)
        return span

    def clear(self) -> None:
        self.ended.clear()


def is_parent(child: ReadableSpan, parent: ReadableSpan) -> bool:
    return child.parent is not None and parent.context is not None and child.parent.span_id == parent.context.span_id


def fail_once(deployment: Deployment, **data: Any) -> None:
    """Set a fail point for one command. `data` contains the fields of the fail point."""
    deployment.set_fail_point("failCommand", {"times": 1}, data)


def event_names(span: ReadableSpan) -> list[str]:
    return [event.name for event in span.events]


@pytest.fixture(autouse=True)
def failures_of_observers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Exception]]:
    """Fail a test if an observer raises an exception, although the driver suppresses the
    exception.
    """
    failures: list[Exception] = []

    def call_and_record(method: Callable[..., object], *arguments: object) -> None:
        try:
            method(*arguments)
        except Exception as error:
            failures.append(error)
            raise

    target = "gmongo.execution.operation_trace.safely"
    monkeypatch.setattr(target, lambda method, *arguments: safely(call_and_record, method, *arguments))
    yield failures
    assert not failures


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with Deployment.replica_set(members=1) as started:
        yield started


@pytest.fixture
def spans() -> SpanCollector:
    return SpanCollector()


@pytest.fixture
def connect(deployment: Deployment, spans: SpanCollector) -> Iterator[Callable[..., Client]]:
    """Return a function that creates clients that send their spans to the collector `spans`."""
    clients: list[Client] = []

    def create_client(query_text_max_length: int | None = None, **options: Any) -> Client:
        tracing = {"enabled": True, "tracer_provider": spans.provider}
        if query_text_max_length is not None:
            tracing["query_text_max_length"] = query_text_max_length
        clients.append(MongoClient(deployment.uri, tracing=tracing, **options))
        return clients[-1]

    yield create_client
    for client in clients:
        client.close()
