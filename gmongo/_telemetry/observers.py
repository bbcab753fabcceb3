"""The observers of a client, by its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmongo._telemetry.slow import SlowOperations
from gmongo.execution.account import Observer, Observers

if TYPE_CHECKING:
    from gmongo._telemetry.settings import TelemetrySettings


def observers_of(settings: TelemetrySettings) -> Observers | None:
    """The observers that the options of a client ask for; None if there are none."""
    found: list[Observer] = []
    if settings.slow is not None:  # before the traces, so that the line is logged in the span of its operation
        found.append(SlowOperations(settings.slow, settings.query_text_max_length))
    if settings.traces:
        # It loads OpenTelemetry, which other clients need not have.
        from gmongo._telemetry.tracing import Traces

        found.append(Traces(settings.tracer_provider, settings.query_text_max_length))
    if settings.metrics:
        from gmongo._telemetry.metrics import Metrics

        found.append(Metrics(settings.meter_provider))
    return Observers(tuple(found)) if found else None
