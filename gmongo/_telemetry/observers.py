"""Creation of the observers of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gmongo._telemetry.slow import SlowOperations
from gmongo.execution.operation_trace import Observer, Observers

if TYPE_CHECKING:
    from gmongo._telemetry.settings import TelemetrySettings


def observers_of(settings: TelemetrySettings) -> Observers | None:
    """Return the observers that the client options enable, or None."""
    observers: list[Observer] = []
    if settings.slow is not None:  # the first observer, because the log line must precede the end of the span
        observers.append(SlowOperations(settings.slow, settings.query_text_max_length))
    if settings.traces:
        # The modules are imported only here, because OpenTelemetry may not be installed.
        from gmongo._telemetry.tracing import Traces

        observers.append(Traces(settings.tracer_provider, settings.query_text_max_length))
    if settings.metrics:
        from gmongo._telemetry.metrics import Metrics

        observers.append(Metrics(settings.meter_provider))
    return Observers(tuple(observers)) if observers else None
