"""Test of the Locust example. The test runs the load test without the web interface, and plots
the results.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LOCUSTFILE = ROOT / "examples" / "locust" / "locustfile.py"


def run(*arguments, folder):
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    completed = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed


def test_load_test_runs_without_failures_and_plot_is_written(tmp_path):
    runner = ["-m", "gmongo"] if os.environ["GMONGO_DRIVER"] == "gmongo" else []
    options = ["--headless", "-u", "20", "-r", "20", "-t", "4s", "--csv", "run", "--csv-full-history"]
    run(*runner, "-m", "locust", "-f", LOCUSTFILE, *options, folder=tmp_path)
    with (tmp_path / "run_stats.csv").open(newline="") as file:
        rows = {row["Name"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"find", "find_one", "update_one", "Aggregated"}
    assert int(rows["Aggregated"]["Request Count"]) > 50
    assert int(rows["Aggregated"]["Failure Count"]) == 0
    run("-m", "examples.locust.plot", "run_stats_history.csv", "load.svg", folder=tmp_path)
    assert "<svg" in (tmp_path / "load.svg").read_text()
