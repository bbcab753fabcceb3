"""Draws what a load test has measured: requests in a second, and how long they took, while the users came.

    python -m gmongo -m locust -f examples/locust/locustfile.py --headless -u 200 -r 20 -t 30s \\
        --csv run --csv-full-history
    python -m examples.locust.plot run_stats_history.csv load.svg
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

_PERCENTILES = ("50%", "95%", "99%")


def read(history: Path) -> list[dict[str, float]]:
    """The rows of all requests together, as numbers; the clock begins at 0."""
    columns = ("Timestamp", "User Count", "Requests/s", "Failures/s", *_PERCENTILES)
    with history.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Name"] == "Aggregated"]
    numbers = [{name: float(row[name]) for name in columns} for row in rows if row["50%"] != "N/A"]
    return [{**row, "Timestamp": row["Timestamp"] - numbers[0]["Timestamp"]} for row in numbers]


def draw(rows: Sequence[dict[str, float]], target: Path) -> None:
    """One picture: the rate and the users above, the percentiles of the response times below."""
    from matplotlib.figure import Figure

    seconds = [row["Timestamp"] for row in rows]
    figure = Figure(figsize=(8, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(seconds, [row["Requests/s"] for row in rows], color="tab:blue", label="requests/s")
    above.plot(seconds, [row["Failures/s"] for row in rows], color="tab:red", label="failures/s")
    users = above.twinx()
    users.plot(seconds, [row["User Count"] for row in rows], color="tab:gray", linestyle=":", label="users")
    users.set_ylabel("users")
    above.set_ylabel("per second")
    above.legend(loc="upper left")
    for percentile in _PERCENTILES:
        below.plot(seconds, [row[percentile] for row in rows], label=percentile)
    below.set_ylabel("response time, ms")
    below.set_xlabel("seconds")
    below.legend(loc="upper left")
    figure.savefig(target)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the history that Locust wrote."""
    parser = argparse.ArgumentParser(prog="python -m examples.locust.plot")
    parser.add_argument("history", type=Path, help="the file *_stats_history.csv that Locust wrote")
    parser.add_argument("picture", type=Path, help="the file to write; its ending says the format")
    options = parser.parse_args(arguments)
    rows = read(options.history)
    if not rows:
        parser.error(f"{options.history} has no requests; was --csv-full-history given?")
    draw(rows, options.picture)


if __name__ == "__main__":
    main()
