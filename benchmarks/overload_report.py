"""The page and the plot of ``python -m benchmarks.overload``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

NAMES = {"policy": "gmongo's policy", "naive": "an immediate retry loop", "none": "no retries"}


class Result(NamedTuple):
    """Results of one strategy with one number of greenlets.

    :param requested: the requests of the application per second.
    :param offered: the commands that reached the server per second.
    :param served: the successful requests per second.
    :param failed: the share of requests that failed in the application.
    :param latency: the median and the 99th percentile of successful requests, in seconds.
    :param processor: the share of a processor that the client used.
    """

    strategy: str
    greenlets: int
    requested: float
    offered: float
    served: float
    failed: float
    latency: tuple[float, float]
    processor: float


class Peak(NamedTuple):
    """Results of one strategy with simultaneous requests.

    :param served: the number of successful requests.
    :param commands: the number of sent commands.
    :param seconds: the time until the last request ended.
    """

    strategy: str
    served: int
    commands: int
    seconds: float


def table(results: Sequence[Result]) -> str:
    """Return the results of all strategies and numbers of greenlets as a table."""
    lines = [
        "| greenlets | strategy | requested | offered | **served** | commands for one success | failed | "
        "latency: median, 99 % | client's processor |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in sorted(results, key=lambda each: (each.greenlets, list(NAMES).index(each.strategy))):
        lines.append(
            f"| {each.greenlets} | {NAMES[each.strategy]} | {each.requested:,.0f} | {each.offered:,.0f} | "
            f"**{each.served:,.0f}** | {each.offered / max(each.served, 1e-9):.1f} | {each.failed:.0%} | "
            f"{each.latency[0] * 1000:,.0f} ms, {each.latency[1] * 1000:,.0f} ms | {each.processor:.0%} |"
        )
    return "\n".join(lines)


def peak_table(peaks: Sequence[Peak], requested: int) -> str:
    """Return the results of the `requested` simultaneous requests as a table."""
    lines = [
        "| strategy | served | failed | commands sent | seconds until the last request ended |",
        "|---|---:|---:|---:|---:|",
    ]
    for strategy, served, commands, seconds in peaks:
        lines.append(f"| {NAMES[strategy]} | **{served}** | {requested - served} | {commands:,} | {seconds:.1f} |")
    return "\n".join(lines)


PAGE = """# Overload: measurements of the retry policy

A server admits {rate} requests a second and rejects the others with `IngressRequestRateLimitExceeded`. Each
greenlet of a client requests documents. The measurement compares three reactions to a rejection:

- **gmongo's policy** (the default): the driver [retries](retries.md) as long as the client has tokens.
- **An immediate retry loop**: the application repeats a rejected request immediately, for up to
  {retry_seconds:g} seconds. The client has `maxAdaptiveRetries=0`.
- **No retries**: with `maxAdaptiveRetries=0` and without a loop, each rejection raises an error in the application.

## Long overload

Each greenlet sends its next request {pause:g} seconds after its last reply, on average.

![Commands that reach the server, and requests that are served, by the number of greenlets](overload.png)

The rates are per second, measured for {seconds:g} seconds after a warm-up of {warm_up:g} seconds. *Requested* are the
requests of the application. *Offered* are the commands that reach the server, including retries. *Served* are the
successful requests, and *failed* is the share of requests that fail. *Client's processor* is the share of a processor
that the client uses.

{table}

No strategy makes the server serve more requests than the server admits. But the retry loop makes the server reject
as many commands as the client and the network can send, and keeps the client's processor busy. With gmongo's policy,
the client soon has no tokens left. Then the client sends one retry for ten successes, and the server gets hardly more
commands than the application has requests.

## A short peak

{peak} greenlets send one request each at the same moment. The server admits {burst:.0f} requests immediately, and then
{rate} requests a second.

{peak_table}

gmongo's policy spreads the peak over the next seconds, and the application notices only a delay.

`python -m benchmarks.overload` writes this page. The numbers depend on the machine, so compare their ratios. A
rejection costs a real server more work than it costs the simulated server.
"""


def page(results: Sequence[Result], peaks: Sequence[Peak], *, peak: int, **settings: float) -> str:
    """Return the text of ``docs/overload.md``.

    :param peak: the number of simultaneous requests.
    :param settings: the values of the other placeholders in the text.
    """
    return PAGE.format(peak=peak, table=table(results), peak_table=peak_table(peaks, peak), **settings)


def draw(results: Sequence[Result], rate: float, path: Path) -> None:
    """Plot offered load and goodput over the number of greenlets. Requires matplotlib."""
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
