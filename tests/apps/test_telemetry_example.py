"""The telemetry example runs under gunicorn with several workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import gevent
import pytest

from gmongo.testing import Deployment
from tests.support.wait import until

from .hosting import free_port, hosted

pytestmark = pytest.mark.long

pytest.importorskip("gunicorn")
pytest.importorskip("flask")
pytest.importorskip("opentelemetry.exporter.prometheus")

COMMAND = ("-m", "gunicorn", "-k", "gevent", "-w", "2", "-b", "127.0.0.1:0")
SETTINGS = ("-c", "examples/telemetry/gunicorn.conf.py", "examples.telemetry.app:app")


def fetch(url: str, method: str = "GET") -> str:
    answer = gevent.get_hub().threadpool.apply(urlopen, (Request(url, method=method),), {"timeout": 20})
    return str(answer.read().decode())


@pytest.mark.parametrize("options", [(), ("--preload",)], ids=["each", "preload"])
def test_each_worker_exports_metrics_and_page_shows_all_workers(options: Any, tmp_path: Path) -> None:
    with Deployment.replica_set(members=1) as deployment:
        environment = {
            "MONGODB_URI": deployment.uri,
            "METRICS_PORT": str(free_port()),
            "STATES": str(tmp_path / "states"),
        }
        with hosted(deployment, tmp_path / "log", *COMMAND, *options, *SETTINGS, **environment) as host:
            service = f"http://127.0.0.1:{host.port()}"
            endpoints = until(lambda: len(found := host.matches(r"metrics at (\S+)")) == 2 and found)
            assert len(set(endpoints)) == 2
            for _ in range(10):
                fetch(f"{service}/orders", "POST")
            count_lines = [line for each in endpoints for line in fetch(each).splitlines() if is_insert_count(line)]
            assert sum(float(line.rsplit(" ", 1)[1]) for line in count_lines) == 10
            assert "db_client_connection_count" in "".join(map(fetch, endpoints))
            worker_ids = until(lambda: len(found := worker_processes_of(service)) == 2 and found)
            assert set(map(str, worker_ids)) == set(host.matches(r"Booting worker with pid: (\d+)"))


def is_insert_count(line: str) -> bool:
    return line.startswith("db_client_operation_duration_seconds_count") and 'db_operation_name="insert"' in line


def worker_processes_of(service: str) -> list[int]:
    processes = json.loads(fetch(f"{service}/debug/mongodb?format=json"))["processes"]
    return [each["process"] for each in processes if each["clients"]]
