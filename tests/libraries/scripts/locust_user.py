"""A load test with a user of the example, which runs Locust without a page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "locust" / "locustfile.py"


def test_users_read_and_write(tmp_path):
    if os.environ["GMONGO_DRIVER"] == "gmongo":
        command = [sys.executable, "-m", "gmongo", "-m", "locust"]
    else:
        command = [sys.executable, "-m", "locust"]
    options = ["--headless", "-u", "20", "-r", "20", "-t", "3s", "--only-summary", "-f", str(EXAMPLE)]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = next(line for line in done.stdout.splitlines() + done.stderr.splitlines() if "Aggregated" in line)
    requests, failures = re.findall(r"\d+", summary)[:2]
    assert int(requests) > 50
    assert int(failures) == 0
    assert "Traceback" not in done.stderr
