"""Collect the spans of a client entity, and compare the spans with expected spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from bson import Int64
from bson.binary import Binary, UuidRepresentation
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from tests.spec.unified.matching import Matcher, Mismatch
from tests.spec.unified.schema import FormatError
from tests.spec.unified.values import check_known

# The limit is large, because the runner parses query texts, and a truncated query text is not valid
# Extended JSON.
_MAX_TEXT_LENGTH = 100_000


@dataclass
class SpanTree:
    """A span, and the trees of its child spans in the order of their start."""

    name: str
    attributes: Mapping[str, Any]
    nested: list[SpanTree] = field(default_factory=list)

    def text(self, depth: int = 1) -> str:
        """Return the tree as text."""
        inside = "".join(each.text(depth + 1) for each in self.nested)
        return f"\n{'  ' * depth}{self.name} {dict(self.attributes)!s:.600}{inside}"


class SpanCollector(SpanProcessor):
    """Span processor that collects the spans of one client entity."""

    def __init__(self) -> None:
        self.recording = True
        self._started: list[Any] = []

    def options(self, observe_tracing_messages: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of the client option ``tracing`` that ``observeTracingMessages``
        requires.
        """
        check_known(observe_tracing_messages, {"enableCommandPayload"}, "the tracing of a client")
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(self)
        length = _MAX_TEXT_LENGTH if observe_tracing_messages.get("enableCommandPayload", False) else 0
        return {"enabled": True, "query_text_max_length": length, "tracer_provider": provider}

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self.recording:
            self._started.append(span)

    def trees(self) -> list[SpanTree]:
        """Return the trees of the ended spans.

        The root of a tree is a span without a parent among the ended spans.
        """
        ended = [span for span in self._started if span.end_time is not None]
        trees = {span.context.span_id: SpanTree(span.name, _attributes(span)) for span in ended}
        roots = []
        for span in ended:
            parent_tree = None if span.parent is None else trees.get(span.parent.span_id)
            (roots if parent_tree is None else parent_tree.nested).append(trees[span.context.span_id])
        return roots


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span, with session IDs and integers in the types that the case
    expects.
    """
    attributes: dict[str, Any] = {}
    for name, value in (span.attributes or {}).items():
        if name == "db.mongodb.lsid":
            attributes[name] = {"id": Binary.from_uuid(UUID(str(value)), UuidRepresentation.STANDARD)}
        else:
            attributes[name] = Int64(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return attributes


def check_spans(expected: Mapping[str, Any], actual: Sequence[SpanTree], matcher: Matcher) -> None:
    """Compare the spans of a client with an element of ``expectTracingMessages``."""
    check_known(expected, {"client", "ignoreExtraSpans", "spans"}, "expectTracingMessages")
    try:
        _check_all(expected["spans"], actual, matcher, expected.get("ignoreExtraSpans", False))
    except Mismatch as error:
        raise Mismatch(f"{error}. Spans of {expected['client']}:{''.join(tree.text() for tree in actual)}")


def _check_all(expected: Sequence[Any], actual: Sequence[SpanTree], matcher: Matcher, ignores_extra: bool) -> None:
    """Compare spans with the expected spans, in order."""
    rest = list(actual)
    for index, required in enumerate(expected):
        first_error: Mismatch | None = None
        while rest:
            candidate = rest.pop(0)
            try:
                _check(required, candidate, matcher, ignores_extra)
                break
            except Mismatch as error:
                first_error = first_error or error
                if not ignores_extra:
                    raise
        else:
            raise first_error or Mismatch(f"span {index} is missing: {required['name']}")
    if rest and not ignores_extra:
        raise Mismatch(f"surplus spans: {[tree.name for tree in rest]}")


def _check(expected: Mapping[str, Any], actual: SpanTree, matcher: Matcher, ignores_extra: bool) -> None:
    check_known(expected, {"name", "attributes", "nested"}, "a span")
    if not isinstance(expected["name"], str):
        raise FormatError(f"the name of a span must be a string, was {expected['name']!r}")
    if actual.name != expected["name"]:
        raise Mismatch(f"the span must be {expected['name']}, was {actual.name}")
    matcher.check(expected["attributes"], actual.attributes, True, f"{actual.name}.attributes")
    _check_all(expected.get("nested", []), actual.nested, matcher, ignores_extra)
