"""Each worker of gunicorn has a Prometheus endpoint of its own, on the first port that is free from METRICS_PORT on.

Prometheus scrapes all of them, as it does with several machines: 127.0.0.1:9464, :9465, … A worker that takes the place
of another takes its port. One endpoint for all workers would be that of whichever worker happens to answer.
"""

from __future__ import annotations

import os
from typing import Any

FIRST_PORT = int(os.environ.get("METRICS_PORT", "9464"))
MOST_WORKERS = 64


def post_worker_init(worker: Any) -> None:
    """In a new worker, when its hub runs: where its metrics go."""
    # Not before the fork: the exporter belongs to one process.
    from opentelemetry import metrics
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider
    from prometheus_client import start_http_server

    metrics.set_meter_provider(MeterProvider([PrometheusMetricReader()]))
    for port in range(FIRST_PORT, FIRST_PORT + MOST_WORKERS):
        try:
            start_http_server(port, "127.0.0.1")
        except OSError:
            continue
        worker.log.info("metrics at http://127.0.0.1:%s/metrics", port)
        return
