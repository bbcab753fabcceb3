"""The page and the plot of ``python -m benchmarks.overload``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

NAMES = {"policy": "gmongo's policy", "naive": "a loop that tries again at once", "none": "no retries"}


class Result(NamedTuple):
    """What became of the requests of so many greenlets, with one strategy.

    :param asked: requests of the application, per second.
    :param offered: commands that reached the server, per second.
    :param served: requests that succeeded, per second.
    :param failed: the share of requests that the application saw fail.
    :param latency: of those that succeeded, in seconds: the median, and what 99 of 100 stay below.
    :param processor: the share of a processor that the client used.
    """

    strategy: str
    greenlets: int
    asked: float
    offered: float
    served: float
    failed: float
    latency: tuple[float, float]
    processor: float


class Peak(NamedTuple):
    """What became of requests that came all at once.

    :param served: how many succeeded.
    :param commands: how many were sent.
    :param seconds: until the last of them had ended.
    """

    strategy: str
    served: int
    commands: int
    seconds: float


def table(results: Sequence[Result]) -> str:
    """The results as a table."""
    lines = [
        "| greenlets | strategy | asked for | offered | **served** | commands for one success | failed | "
        "latency: median, 99 % | client's processor |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in sorted(results, key=lambda each: (each.greenlets, list(NAMES).index(each.strategy))):
        lines.append(
            f"| {each.greenlets} | {NAMES[each.strategy]} | {each.asked:,.0f} | {each.offered:,.0f} | "
            f"**{each.served:,.0f}** | {each.offered / max(each.served, 1e-9):.1f} | {each.failed:.0%} | "
            f"{each.latency[0] * 1000:,.0f} ms, {each.latency[1] * 1000:,.0f} ms | {each.processor:.0%} |"
        )
    return "\n".join(lines)


def peak_table(peaks: Sequence[Peak], asked: int) -> str:
    """What became of the `asked` requests of a peak, as a table."""
    lines = [
        "| strategy | served | failed | commands sent | seconds until all had ended |",
        "|---|---:|---:|---:|---:|",
    ]
    for strategy, served, commands, seconds in peaks:
        lines.append(f"| {NAMES[strategy]} | **{served}** | {asked - served} | {commands:,} | {seconds:.1f} |")
    return "\n".join(lines)


PAGE = """# Overload: what the policy is for

A server that admits {rate} requests a second and turns the others away with `IngressRequestRateLimitExceeded`; a client
whose greenlets each ask for a document. [What the policy is](retries.md). Three ways to treat a rejection:

- **gmongo's policy** (the default): up to five retries after random waits of up to 0.1, 0.2, 0.4, 0.8 and 1.6 seconds,
  as long as the client has tokens.
- **A loop that tries again at once**: an application's own, around a client with `maxAdaptiveRetries=0`, for up to
  {patience:g} seconds.
- **No retries**: `maxAdaptiveRetries=0`; each rejection reaches the application.

## Overload that lasts

Each greenlet asks again {pause:g} seconds after its last answer, on average.

![Commands that reach the server, and requests that are served, by the number of greenlets](overload.png)

Rates are per second, over {seconds:g} seconds after a warm-up of {warm_up:g}. *Asked for* are the requests of the
application, *offered* the commands that reach the server, retries included, *served* the requests that succeed, and
*failed* is the share of requests that the application sees fail.

{table}

No strategy makes the server serve more than it admits. But the loop has it turn away whatever client and network manage
to send, and keeps the client's processor busy with that. With the policy the tokens are soon used up, retries become as
rare as a tenth of the successes, and the client fails fast: the load is what the application asks for, and hardly more.

## A short peak

{peak} greenlets ask once, all at the same moment. The server admits {burst:.0f} at once, and then {rate} a second.

{peak_table}

This is what the tokens are for: the policy spreads the peak over the next seconds, and the application hardly sees it.

Written by `python -m benchmarks.overload`. The numbers depend on the machine; what matters is how they compare.
The simulated server turns requests away at little cost. A real one has less to spare.
"""


def page(results: Sequence[Result], peaks: Sequence[Peak], *, peak: int, **settings: float) -> str:
    """The text of ``docs/overload.md``.

    :param peak: how many requests came at once.
    :param settings: the numbers that the text tells.
    """
    return PAGE.format(peak=peak, table=table(results), peak_table=peak_table(peaks, peak), **settings)


def draw(results: Sequence[Result], rate: float, path: Path) -> None:
    """Plot load offered and goodput over the number of greenlets. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    sizes = sorted({each.greenlets for each in results})
    styles = {"naive": ("C3", "s", 6), "policy": ("C0", "o", 9), "none": ("C7", "^", 5)}
    for strategy, (colour, marker, size) in styles.items():
        own = [each for each in results if each.strategy == strategy]
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": size, "label": NAMES[strategy]}
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
