"""Which traces and metrics a client makes: its options, and the variables of the environment that stand behind them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gmongo._documents import Document
from gmongo.errors import ConfigurationError
from gmongo.options.notices import notice

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_PREFIX = "OTEL_PYTHON_INSTRUMENTATION_MONGODB_"
_YES = frozenset({"1", "true", "yes"})
_NEEDED = "the package opentelemetry-api, which is not installed (pip install gmongo[opentelemetry])"


@dataclass(frozen=True)
class TelemetrySettings:
    """What is observed of a client.

    :param traces: whether operations are traced.
    :param query_text_max_length: how many characters of a command spans show; 0 is none.
    :param tracer_provider: where spans go; None is the global provider.
    :param metrics: whether there are metrics.
    :param meter_provider: where they go; None is the global provider.
    :param slow: operations that take this long are logged, in seconds; None logs none.
    """

    traces: bool = False
    query_text_max_length: int = 0
    tracer_provider: TracerProvider | None = None
    metrics: bool = False
    meter_provider: MeterProvider | None = None
    slow: float | None = None


def telemetry_settings(tracing: Document | None, metrics: Document | None, slow: float | None) -> TelemetrySettings:
    """What the options of a client say; what they leave open, the environment says.

    :param slow: in seconds.
    :raises ConfigurationError: an option asks for what needs a package that is not there.
    """
    tracing, metrics = tracing or {}, metrics or {}
    length = tracing.get("query_text_max_length")
    return TelemetrySettings(
        traces=_is_on("tracing", tracing.get("enabled"), "ENABLED"),
        query_text_max_length=_length_of_environment() if length is None else length,
        tracer_provider=tracing.get("tracer_provider"),
        metrics=_is_on("metrics", metrics.get("enabled"), "METRICS_ENABLED"),
        meter_provider=metrics.get("meter_provider"),
        slow=slow,
    )


def _is_on(option: str, given: bool | None, variable: str) -> bool:
    asked = os.environ.get(_PREFIX + variable, "").strip().lower() in _YES if given is None else given
    if not asked or find_spec("opentelemetry") is not None:
        return asked
    if given:
        raise ConfigurationError(f"{option} needs {_NEEDED}")
    notice(f"{_PREFIX}{variable} is of no effect: it needs {_NEEDED}")
    return False


def _length_of_environment() -> int:
    name = f"{_PREFIX}QUERY_TEXT_MAX_LENGTH"
    text = os.environ.get(name, "").strip()
    if text.isascii() and text.isdigit():
        return int(text)
    if text:
        notice(f"{name} must be an integer from 0; spans show no query text")
    return 0
