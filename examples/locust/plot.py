"""Plot the results of a load test: request rate, number of users, and response times.

Run ``locustfile.py`` with ``--csv run --csv-full-history``, and then this program::

    python -m examples.locust.plot run_stats_history.csv load.svg
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

_PERCENTILES = ("50%", "95%", "99%")


def read_rows(history: Path) -> list[dict[str, float]]:
    """Return the rows with the name "Aggregated" as numbers. Omit rows without response times.

    The timestamps of the rows begin at 0.
    """
    columns = ("Timestamp", "User Count", "Requests/s", "Failures/s", *_PERCENTILES)
    with history.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Name"] == "Aggregated"]
    numbers = [{name: float(row[name]) for name in columns} for row in rows if row["50%"] != "N/A"]
    return [{**row, "Timestamp": row["Timestamp"] - numbers[0]["Timestamp"]} for row in numbers]


def draw(rows: Sequence[dict[str, float]], target: Path) -> None:
    """Draw the rates and the users in the upper plot, and percentiles of the response times in the lower plot."""
    from matplotlib.figure import Figure

    seconds = [row["Timestamp"] for row in rows]
    figure = Figure(figsize=(8, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(seconds, [row["Requests/s"] for row in rows], color="tab:blue", label="requests/s")
    upper.plot(seconds, [row["Failures/s"] for row in rows], color="tab:red", label="failures/s")
    users = upper.twinx()
    users.plot(seconds, [row["User Count"] for row in rows], color="tab:gray", linestyle=":", label="users")
    users.set_ylabel("users")
    upper.set_ylabel("per second")
    upper.legend(loc="upper left")
    for percentile in _PERCENTILES:
        lower.plot(seconds, [row[percentile] for row in rows], label=percentile)
    lower.set_ylabel("response time, ms")
    lower.set_xlabel("seconds")
    lower.legend(loc="upper left")
    figure.savefig(target)


def main(arguments: Sequence[str] | None = None) -> None:
    """Plot the history file of Locust."""
    parser = argparse.ArgumentParser(prog="python -m examples.locust.plot")
    parser.add_argument("history", type=Path, help="the file *_stats_history.csv of Locust")
    parser.add_argument("picture", type=Path, help="the output file; its extension determines the format")
    options = parser.parse_args(arguments)
    rows = read_rows(options.history)
    if not rows:
        parser.error(f"{options.history} has no requests; was --csv-full-history given?")
    draw(rows, options.picture)


if __name__ == "__main__":
    main()
