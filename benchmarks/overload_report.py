"""The tables and the plot of ``python -m benchmarks.overload``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.sheets import Sheet

TITLES = {"policy": "gmongo's policy", "naive": "an immediate retry loop", "none": "no retries"}


class Result(NamedTuple):
    """Results of one strategy with one number of greenlets.

    :param requested: the requests of the application per second.
    :param offered: the commands that reached the server per second.
    :param served: the successful requests per second.
    :param failed: the share of requests that failed in the application.
    :param latency: the median and 99th percentile latency of successful requests, in seconds.
    :param processor: the share of a processor that the client used.
    """

    strategy: str
    greenlet_count: int
    requested: float
    offered: float
    served: float
    failed: float
    latency: tuple[float, float]
    processor: float


class Peak(NamedTuple):
    """Results of one strategy with simultaneous requests.

    :param served_count: the number of successful requests.
    :param command_count: the number of sent commands.
    :param seconds: the time until the last request ended.
    """

    strategy: str
    served_count: int
    command_count: int
    seconds: float


def table(results: Sequence[Result]) -> Sheet:
    """Return a table with a line for each strategy and number of greenlets."""
    head = ["greenlets", "strategy", "requested", "offered", "**served**", "commands for one success", "failed"]
    lines = [
        [
            str(each.greenlet_count),
            TITLES[each.strategy],
            f"{each.requested:,.0f}",
            f"{each.offered:,.0f}",
            f"**{each.served:,.0f}**",
            f"{each.offered / max(each.served, 1e-9):.1f}",
            f"{each.failed:.0%}",
            f"{each.latency[0] * 1000:,.0f} ms, {each.latency[1] * 1000:,.0f} ms",
            f"{each.processor:.0%}",
        ]
        for each in results
    ]
    return Sheet("", [*head, "latency: median, 99 %", "client's processor"], [lines])


def peak_table(peaks: Sequence[Peak], request_count: int) -> Sheet:
    """Return the results of `request_count` simultaneous requests as a table."""
    head = ["strategy", "served", "failed", "commands sent", "seconds until the last request ended"]
    lines = [
        [TITLES[strategy], f"**{served}**", str(request_count - served), f"{sent:,}", f"{seconds:.1f}"]
        for strategy, served, sent, seconds in peaks
    ]
    return Sheet("", head, [lines])


def draw(results: Sequence[Result], rate: float, path: Path) -> None:
    """Plot offered load and goodput over the number of greenlets, with matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    sizes = sorted({each.greenlet_count for each in results})
    styles = {"naive": ("C3", "s", 6), "policy": ("C0", "o", 9), "none": ("C7", "^", 5)}
    for strategy, (colour, marker, size) in styles.items():
        own = [each for each in results if each.strategy == strategy]
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": size, "label": TITLES[strategy]}
        left.plot(sizes, [each.offered for each in own], **style)
        right.plot(sizes, [each.served for each in own], **style)
    for axes, title in ((left, "load offered: commands a second"), (right, "goodput: requests served a second")):
        axes.axhline(rate, color="black", linestyle=":", linewidth=1, label=f"admitted: {rate:g}")
        axes.set(title=title, xlabel="greenlets", xscale="log", ylim=(0, None))
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    left.legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
