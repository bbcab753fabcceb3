"""Pytest plugin that enables traces, metrics and slow-operation logs for every client.

    python -m pytest -p tests.support.observe_every_client tests/spec

Each test that passes without the plugin must also pass with the plugin.
"""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from gmongo._telemetry.settings import TelemetrySettings
from gmongo.client_options import ClientOptions


def pytest_configure(config: pytest.Config) -> None:
    tracer_provider = TracerProvider(shutdown_on_exit=False)
    settings = TelemetrySettings(
        tracing_enabled=True,
        query_text_max_length=500,
        tracer_provider=tracer_provider,
        metrics_enabled=True,
        meter_provider=MeterProvider(shutdown_on_exit=False),
        slow_limit=60.0,
    )
    own = ClientOptions.telemetry
    patch = pytest.MonkeyPatch()
    # If a test sets telemetry options, its client ignores the options of the plugin.
    patch.setattr(ClientOptions, "telemetry", lambda self: own(self) if own(self) != TelemetrySettings() else settings)
    config.add_cleanup(patch.undo)
