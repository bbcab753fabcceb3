"""``python -m benchmarks.plot run.json docs/``: write the result page and its plot from a ``--json`` file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import contest, crowd, latency, operations, page
from benchmarks.record import Record, from_json
from benchmarks.rounds import Row, median_of, ratio, ratio_to_row
from benchmarks.sheets import ALL_TITLES, TITLES
from benchmarks.targets import target_of

COLOURS = {"gmongo": "C0", "pymongo": "C1", "floor": "C7"}
BAR_GROUP_WIDTH = 0.8


def write(record: Record, directory: Path) -> None:
    """Update the result pages and the plot of a run. The function requires matplotlib.

    :raises ValueError: a page lacks a mark.
    """
    page.write(record, directory)
    part = page.part_of(record)
    draw(record, directory / part.plot, _draw_contenders if part is page.CONTENDERS_PART else _draw_measured)


def draw(record: Record, path: Path, draw_parts: Callable[[Record, Any], None]) -> None:
    """Write a plot with three parts. The function `draw_parts` draws the parts."""
    import matplotlib

    matplotlib.use("Agg")
    # These settings and the omitted date make the file reproducible. Texts become SVG text elements.
    matplotlib.rcParams.update({"svg.hashsalt": path.name, "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 1, figsize=(10, 11), layout="constrained")
    draw_parts(record, axes)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _draw_measured(record: Record, axes: Any) -> None:
    """Draw the CPU time relative to PyMongo and to the baseline, and the throughput with many greenlets."""
    rows = record.tables.get(operations.TABLE, [])
    _draw_bars(axes[0], rows, "pymongo", ["gmongo"], "CPU time over PyMongo's (lower is better)")
    with_baseline = [row for row in rows if "floor" in row.numbers]
    _draw_bars(axes[1], with_baseline, "floor", ["gmongo", "pymongo"], "CPU time over the floor's (lower is better)")
    _draw_throughput(axes[2], record.tables.get(crowd.TABLE, []))


def _draw_contenders(record: Record, axes: Any) -> None:
    """Draw the CPU time of each operation, and two quantiles of the latency at each load."""
    rows = record.tables.get(contest.TABLE, [])
    for number, (name, title) in enumerate(ALL_TITLES.items()):
        places = [place + (number + 0.5) * BAR_GROUP_WIDTH / len(ALL_TITLES) for place in range(len(rows))]
        axes[0].bar(places, [median_of(row, name) or 0 for row in rows], BAR_GROUP_WIDTH / len(ALL_TITLES), label=title)
    axes[0].set_xticks([place + BAR_GROUP_WIDTH / 2 for place in range(len(rows))], list(contest.SHARES)[: len(rows)])
    axes[0].set(title="CPU per operation, µs (lower is better)", yscale="log")
    setup = latency.SETUPS[0]
    by_name = {row.name: row for row in record.tables.get(latency.TABLE, []) if row.greenlets == setup.caller_count}
    for part, quantile in zip(axes[1:], ("p50", "p99"), strict=True):
        selected = [
            by_name[name] for load in latency.LOADS if (name := latency.row_name(load, setup, quantile)) in by_name
        ]
        for name, title in ALL_TITLES.items():
            times = [median_of(row, name) for row in selected]
            if any(times):
                part.plot(range(len(times)), times, "o-", label=title)
        part.set_xticks(range(len(selected)), latency.LOADS[: len(selected)])
        title = f"Latency of find_one, {setup.caller_count} callers: {quantile}, ms (lower is better)"
        part.set(title=title, yscale="log")
    for each in axes:
        each.legend(fontsize=7)


def _draw_bars(axes: Any, rows: list[Row], denominator: str, contenders: list[str], title: str) -> None:
    """Draw a group of bars for each row, and a line at the target of the row, if any."""
    width = BAR_GROUP_WIDTH / len(contenders)
    for number, contender in enumerate(contenders):
        ratios = [ratio(row, contender, denominator) for row in rows]
        places = [place - BAR_GROUP_WIDTH / 2 + (number + 0.5) * width for place in range(len(rows))]
        heights = [each.median if each else 0 for each in ratios]
        spread = [
            [each.median - each.low if each else 0 for each in ratios],
            [each.high - each.median if each else 0 for each in ratios],
        ]
        axes.bar(places, heights, width, yerr=spread, color=COLOURS[contender], label=TITLES[contender], capsize=2)
    targets = [(place, target) for place, row in enumerate(rows) if (target := target_of(row, denominator))]
    for place, target in targets:
        axes.hlines(target.limit, place - BAR_GROUP_WIDTH / 2, place + BAR_GROUP_WIDTH / 2, color="C3", linewidth=2)
    axes.hlines([], 0, 0, color="C3", linewidth=2, label="gmongo's target")
    axes.axhline(1, color="black", linestyle=":", linewidth=1)
    axes.set_xticks(range(len(rows)), [f"{row.name}\n{row.greenlets}" for row in rows], rotation=45, fontsize=8)
    axes.set(title=title, ylim=(0, None))
    axes.legend()


def _draw_throughput(axes: Any, rows: list[Row]) -> None:
    throughput = {row.greenlets: row for row in rows if row.name == crowd.THROUGHPUT}
    for name, sizes in crowd.SIZES.items():
        ratios = {size: ratio_to_row(throughput[size], throughput[crowd.BASE], name) for size in sizes if throughput}
        points = [(size, each.median) for size, each in ratios.items() if each]
        axes.plot(*zip(*points, strict=True) if points else ((), ()), "o-", color=COLOURS[name], label=TITLES[name])
    for row in throughput.values():
        if target := target_of(row, crowd.BASE):
            axes.plot([row.greenlets], [target.limit], "_", color="C3", markersize=20, label="gmongo's target")
    axes.set(title="Throughput on 100 connections over that of 100 greenlets (higher is better)", xlabel="greenlets")
    axes.set(xscale="log", ylim=(0, 1.3))
    axes.grid(alpha=0.3)
    axes.legend()


def main() -> None:
    """Write the page and the plot of a run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot", description=__doc__)
    parser.add_argument("run", type=Path, help="the --json file of a run")
    parser.add_argument("directory", type=Path, help="the folder of the page, such as docs/")
    options = parser.parse_args()
    write(from_json(json.loads(options.run.read_text())), options.directory)


if __name__ == "__main__":
    main()
