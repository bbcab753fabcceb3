"""Start a separate Prometheus endpoint in each gunicorn worker, on the first free port from METRICS_PORT on.

Configure all endpoints in Prometheus, as for several machines: 127.0.0.1:9464, :9465, … A worker that
replaces another worker uses the port of the replaced worker. If the workers shared one endpoint, each
request would return the metrics of an arbitrary worker.
"""

from __future__ import annotations

import os
from typing import Any

FIRST_PORT = int(os.environ.get("METRICS_PORT", "9464"))
MAX_WORKERS = 64


def post_worker_init(worker: Any) -> None:
    """Start the metrics endpoint of a new worker after the start of its hub."""
    # An exporter works in one process only, so each worker starts an exporter after the fork.
    from opentelemetry import metrics
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider
    from prometheus_client import start_http_server

    metrics.set_meter_provider(MeterProvider([PrometheusMetricReader()]))
    for port in range(FIRST_PORT, FIRST_PORT + MAX_WORKERS):
        try:
            start_http_server(port, "127.0.0.1")
        except OSError:
            continue
        worker.log.info("metrics at http://127.0.0.1:%s/metrics", port)
        return
