"""A plugin: every client is observed by all observers there are.

    python -m pytest -p tests.support.every_client_is_observed tests/spec

Whatever passes without it has to pass with it, too: a client that is observed does what others do.
"""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from gmongo._telemetry.settings import TelemetrySettings
from gmongo.client_options import ClientOptions


def pytest_configure(config: pytest.Config) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    observed = TelemetrySettings(
        traces=True,
        query_text_max_length=500,
        tracer_provider=provider,
        metrics=True,
        meter_provider=MeterProvider(shutdown_on_exit=False),
        slow=60.0,
    )
    given = ClientOptions.telemetry
    patch = pytest.MonkeyPatch()
    # A test that asks for something else gets that.
    patch.setattr(
        ClientOptions,
        "telemetry",
        lambda self: given(self) if given(self) != TelemetrySettings() else observed,
    )
    config.add_cleanup(patch.undo)
