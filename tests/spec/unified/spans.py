"""The spans of a client: collecting them, and comparing them with what a test expects."""

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

# More than any test compares: what is cut is no Extended JSON any more.
_WHOLE = 100_000


@dataclass
class Tree:
    """A span with those in it, in the order in which they began."""

    name: str
    attributes: Mapping[str, Any]
    nested: list[Tree] = field(default_factory=list)

    def shown(self, depth: int = 1) -> str:
        """For a message."""
        inside = "".join(each.shown(depth + 1) for each in self.nested)
        return f"\n{'  ' * depth}{self.name} {dict(self.attributes)!s:.600}{inside}"


class Spans(SpanProcessor):
    """Collects the spans of one client."""

    def __init__(self) -> None:
        self.recording = True
        self._started: list[Any] = []

    def options(self, observed: Mapping[str, Any]) -> dict[str, Any]:
        """The client option that sends spans here.

        :param observed: ``observeTracingMessages``.
        """
        check_known(observed, {"enableCommandPayload"}, "the tracing of a client")
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(self)
        length = _WHOLE if observed.get("enableCommandPayload", False) else 0
        return {"enabled": True, "query_text_max_length": length, "tracer_provider": provider}

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self.recording:
            self._started.append(span)

    def trees(self) -> list[Tree]:
        """The spans that have ended, each in the one that it is part of."""
        ended = [span for span in self._started if span.end_time is not None]
        trees = {span.context.span_id: Tree(span.name, _attributes(span)) for span in ended}
        roots = []
        for span in ended:
            above = None if span.parent is None else trees.get(span.parent.span_id)
            (roots if above is None else above.nested).append(trees[span.context.span_id])
        return roots


def _attributes(span: ReadableSpan) -> dict[str, Any]:
    """The attributes as BSON values, as the tests compare them."""
    found: dict[str, Any] = {}
    for name, value in (span.attributes or {}).items():
        if name == "db.mongodb.lsid":
            found[name] = {"id": Binary.from_uuid(UUID(str(value)), UuidRepresentation.STANDARD)}
        else:
            found[name] = Int64(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return found


def check_spans(expected: Mapping[str, Any], found: Sequence[Tree], matcher: Matcher) -> None:
    """Compare the spans of a client with an element of ``expectTracingMessages``.

    :raises Mismatch: a span is missing, other than expected, or surplus.
    """
    check_known(expected, {"client", "ignoreExtraSpans", "spans"}, "expectTracingMessages")
    try:
        _check_all(expected["spans"], found, matcher, expected.get("ignoreExtraSpans", False))
    except Mismatch as error:
        raise Mismatch(f"{error}; the spans of {expected['client']} are{''.join(tree.shown() for tree in found)}")


def _check_all(expected: Sequence[Any], found: Sequence[Tree], matcher: Matcher, ignores_extra: bool) -> None:
    """Compare spans in order; surplus ones, which may be ignored, can be anywhere between them."""
    rest = list(found)
    for index, wanted in enumerate(expected):
        problem: Mismatch | None = None
        while rest:
            candidate = rest.pop(0)
            try:
                _check(wanted, candidate, matcher, ignores_extra)
                break
            except Mismatch as error:
                problem = problem or error
                if not ignores_extra:
                    raise
        else:
            raise problem or Mismatch(f"span {index} is missing: {wanted['name']}")
    if rest and not ignores_extra:
        raise Mismatch(f"surplus spans: {[tree.name for tree in rest]}")


def _check(expected: Mapping[str, Any], found: Tree, matcher: Matcher, ignores_extra: bool) -> None:
    check_known(expected, {"name", "attributes", "nested"}, "a span")
    if not isinstance(expected["name"], str):
        raise FormatError(f"the name of a span is a string, was {expected['name']!r}")
    if found.name != expected["name"]:
        raise Mismatch(f"the span must be {expected['name']}, was {found.name}")
    matcher.check(expected["attributes"], found.attributes, True, f"{found.name}.attributes")
    _check_all(expected.get("nested", []), found.nested, matcher, ignores_extra)
