"""Settings of the observers from client options and environment variables, and the creation of the observers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gmongo._documents import Document
from gmongo._telemetry.slow import SlowOperations
from gmongo.errors import ConfigurationError
from gmongo.execution.operation_trace import Observer, Observers
from gmongo.options.notices import notice

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_PREFIX = "OTEL_PYTHON_INSTRUMENTATION_MONGODB_"
_TRUE = frozenset({"1", "true", "yes"})
_MISSING_PACKAGE_TEXT = "the package opentelemetry-api, which is not installed (pip install gmongo[opentelemetry])"


@dataclass(frozen=True)
class TelemetrySettings:
    """Settings of the observers of a client. If a provider is None, the observer uses the global provider."""

    tracing_enabled: bool = False
    query_text_max_length: int = 0  # the maximum length of a command's text, in characters. 0 omits the text.
    tracer_provider: TracerProvider | None = None
    metrics_enabled: bool = False
    meter_provider: MeterProvider | None = None
    slow_limit: float | None = None  # the minimum duration of a slow operation in seconds. None disables the log.


def telemetry_settings(tracing: Document | None, metrics: Document | None, limit: float | None) -> TelemetrySettings:
    """Return the settings from client options. Environment variables set the default values."""
    tracing, metrics = tracing or {}, metrics or {}
    length = tracing.get("query_text_max_length")
    return TelemetrySettings(
        tracing_enabled=_is_enabled("tracing", tracing.get("enabled"), "ENABLED"),
        query_text_max_length=_read_text_length() if length is None else length,
        tracer_provider=tracing.get("tracer_provider"),
        metrics_enabled=_is_enabled("metrics", metrics.get("enabled"), "METRICS_ENABLED"),
        meter_provider=metrics.get("meter_provider"),
        slow_limit=limit,
    )


def create_observers(settings: TelemetrySettings) -> Observers | None:
    """Create the enabled observers. Return None if the settings enable no observer."""
    observers: list[Observer] = []
    if settings.slow_limit is not None:  # this observer is first, so that its log line precedes the end of the span
        observers.append(SlowOperations(settings.slow_limit, settings.query_text_max_length))
    if settings.tracing_enabled:
        from gmongo._telemetry.tracing import Traces

        observers.append(Traces(settings.tracer_provider, settings.query_text_max_length))
    if settings.metrics_enabled:
        from gmongo._telemetry.metrics import Metrics

        observers.append(Metrics(settings.meter_provider))
    return Observers(tuple(observers)) if observers else None


def _is_enabled(option: str, option_value: bool | None, variable: str) -> bool:
    enabled = os.environ.get(_PREFIX + variable, "").strip().lower() in _TRUE if option_value is None else option_value
    if not enabled or find_spec("opentelemetry") is not None:
        return enabled
    if option_value:
        raise ConfigurationError(f"{option} needs {_MISSING_PACKAGE_TEXT}")
    notice(f"{_PREFIX}{variable} has no effect: it needs {_MISSING_PACKAGE_TEXT}")
    return False


def _read_text_length() -> int:
    name = f"{_PREFIX}QUERY_TEXT_MAX_LENGTH"
    text = os.environ.get(name, "").strip()
    if text.isascii() and text.isdigit():
        return int(text)
    if text:
        notice(f"{name} must be a non-negative integer; spans show no query text")
    return 0
