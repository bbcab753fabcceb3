"""Plot of the client CPU of gmongo for each operation, relative to PyMongo under gevent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

_DEPLOYMENTS = ("standalone", "replica set")
_WIDTH = 0.4


def draw(runs: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the plot of one or more runs. The function requires matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    # These settings and the omitted date make the file reproducible. Texts become SVG text elements.
    matplotlib.rcParams.update({"svg.hashsalt": path.name, "svg.fonttype": "none"})
    from matplotlib import pyplot

    kinds = list(runs[-1]["operations"][_DEPLOYMENTS[-1]])
    figure, axes = pyplot.subplots(figsize=(9, 3.6), layout="constrained")
    for number, deployment in enumerate(_DEPLOYMENTS):
        ratios = {kind: _ratios(runs, deployment, kind) for kind in kinds}
        measured = [kind for kind in kinds if ratios[kind]]
        places = [kinds.index(kind) + (number - 0.5) * _WIDTH for kind in measured]
        bars = axes.bar(places, [fmean(ratios[kind]) for kind in measured], _WIDTH, label=f"gmongo, {deployment}")
        axes.bar_label(bars, fmt="%.2f", fontsize=7)
    axes.axhline(1, color="C3", linestyle="--", label="PyMongo under gevent")
    axes.set_xticks(range(len(kinds)), kinds, fontsize=8, rotation=20)
    axes.set(title="Client CPU per operation, divided by the CPU of PyMongo under gevent", ylim=(0, 1.2))
    axes.legend(fontsize=8, ncols=3, loc="upper left")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _ratios(runs: Sequence[dict[str, Any]], deployment: str, kind: str) -> list[float]:
    measured = [run["operations"].get(deployment, {}).get(kind, {}) for run in runs]
    return [each["gmongo over"]["pymongo"] for each in measured if "pymongo" in each.get("gmongo over", {})]
