"""``python -m benchmarks.overload``: what the policy for overloaded servers is for.

A simulated server in a process of its own admits 500 requests a second and turns the others away. 50 to 1000 greenlets
each ask it five times a second, so that up to ten times as much is asked for. What the client makes of it is measured
with each of three ways to treat a rejection, and written to ``docs/overload.md`` and ``docs/overload.png``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic, process_time
from typing import Any, NamedTuple

import gevent
from rich.console import Console

from gmongo import MongoClient
from gmongo.errors import PyMongoError
from gmongo.testing import DeploymentProcess

DOCS = Path(__file__).resolve().parent.parent / "docs"
RATE = 500  # requests that the server admits in a second
BURST = 0.2  # seconds' worth of them that it admits at once after a rest
PAUSE = 0.2  # seconds between two requests of a greenlet, on average
PATIENCE = 5.0  # seconds after which a naive application gives up
WARM_UP = 2.0  # seconds, after which the tokens are spent
SIZES = (50, 100, 200, 500, 1000)

Ask = Callable[[MongoClient[Any]], int]


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


# Strategies


def once(client: MongoClient[Any]) -> int:
    """Leave rejections to the driver; the number of commands that the application sent."""
    client.shop.orders.find_one({"_id": 1})
    return 1


def naive(client: MongoClient[Any]) -> int:
    """The loop that applications used to have: on an error try again, at once."""
    until = monotonic() + PATIENCE
    tries = 0
    while True:
        tries += 1
        try:
            client.shop.orders.find_one({"_id": 1})
            return tries
        except PyMongoError:
            if monotonic() > until:
                raise GaveUp(tries) from None


class GaveUp(PyMongoError):
    """A naive application had enough.

    :param tries: how many it made.
    """

    def __init__(self, tries: int) -> None:
        super().__init__(f"gave up after {tries} tries")
        self.tries = tries


STRATEGIES: dict[str, tuple[Ask, dict[str, Any]]] = {
    "policy": (once, {}),
    "naive": (naive, {"maxAdaptiveRetries": 0}),
    "none": (once, {"maxAdaptiveRetries": 0}),
}


# Measuring


class Tally:
    """What has happened since :meth:`begin`.

    :param ask: one request of the application.
    """

    def __init__(self, client: MongoClient[Any], ask: Ask) -> None:
        self._client, self._ask = client, ask
        self.begin()

    def begin(self) -> None:
        """Count from here on."""
        self.latencies: list[float] = []
        self.failures = self.tries = 0
        self._retries = self._client.retry_stats()["retries"]
        self._begin, self._processor = monotonic(), process_time()

    def request(self) -> None:
        """Make one request and count it."""
        begin = monotonic()
        try:
            tries = self._ask(self._client)
            self.tries += tries
            self.latencies.append(monotonic() - begin)
        except PyMongoError as error:
            self.tries += getattr(error, "tries", 1)
            self.failures += 1

    def result(self, strategy: str, greenlets: int) -> Result:
        """The rates until now."""
        seconds = monotonic() - self._begin
        retries = self._client.retry_stats()["retries"] - self._retries
        requests = len(self.latencies) + self.failures
        latencies = sorted(self.latencies) or [float("nan")]
        return Result(
            strategy,
            greenlets,
            asked=requests / seconds,
            offered=(self.tries + retries) / seconds,
            served=len(self.latencies) / seconds,
            failed=self.failures / max(requests, 1),
            latency=(median(latencies), latencies[int(len(latencies) * 0.99)]),
            processor=(process_time() - self._processor) / seconds,
        )


def _customer(tally: Tally) -> None:
    while True:
        gevent.sleep(random.expovariate(1 / PAUSE))
        tally.request()


def measure(uri: str, strategy: str, greenlets: int, seconds: float) -> Result:
    """Let so many greenlets ask for so long, after a warm-up."""
    ask, options = STRATEGIES[strategy]
    with MongoClient[Any](uri, maxPoolSize=100, **options) as client:
        tally = Tally(client, ask)
        crowd = [gevent.spawn(_customer, tally) for _ in range(greenlets)]
        gevent.sleep(WARM_UP)
        tally.begin()
        gevent.sleep(seconds)
        result = tally.result(strategy, greenlets)
        gevent.killall(crowd)
    return result


@contextmanager
def rationed() -> Any:
    """The URI of a server in its own process that admits :data:`RATE` requests a second."""
    with DeploymentProcess("--standalone") as deployment:
        with MongoClient[Any](deployment.uri) as client:
            client.shop.orders.insert_one({"_id": 1, "state": "open"})
            client.admin.command(
                "setParameter",
                1,
                ingressRequestRateLimiterEnabled=True,
                ingressRequestAdmissionRatePerSec=float(RATE),
                ingressRequestAdmissionBurstCapacitySecs=BURST,
            )
        yield deployment.uri


# Reporting

NAMES = {"policy": "gmongo's policy", "naive": "a loop that tries again at once", "none": "no retries"}


def table(results: Sequence[Result]) -> str:
    """The results as a table for a page."""
    lines = [
        "| greenlets | strategy | asked for | offered | **served** | commands for one success | failed | "
        "latency: median, 99 % | client's processor |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in sorted(results, key=lambda each: (each.greenlets, list(STRATEGIES).index(each.strategy))):
        lines.append(
            f"| {each.greenlets} | {NAMES[each.strategy]} | {each.asked:,.0f} | {each.offered:,.0f} | "
            f"**{each.served:,.0f}** | {each.offered / max(each.served, 1e-9):.1f} | {each.failed:.0%} | "
            f"{each.latency[0] * 1000:,.0f} ms, {each.latency[1] * 1000:,.0f} ms | {each.processor:.0%} |"
        )
    return "\n".join(lines)


PAGE = """# Overload: what the policy is for

A server that admits {rate} requests a second and turns the others away with `IngressRequestRateLimitExceeded`; a client
whose greenlets each ask for a document five times a second, if they are answered at once. [What the policy is](retries.md).

![Commands that reach the server, and requests that are served, by the number of greenlets](overload.png)

All rates are per second, measured over {seconds:g} seconds after a warm-up of {warm_up:g}. *Asked for* are the requests of the
application, *offered* the commands that reach the server, retries included, *served* the requests that succeed; *failed* is the
share of requests that the application sees fail.

{table}

- **gmongo's policy** (the default): up to five retries after random waits of up to 0.1, 0.2, 0.4, 0.8 and 1.6 seconds, as long as the
  client has tokens. While overload lasts the tokens are used up, retries become as rare as a tenth of the successes, and the
  client fails fast: the load is what the application asks for, and no more.
- **A loop that tries again at once** (with `maxAdaptiveRetries=0`, for up to {patience:g} seconds): the server serves no more, but has to turn away
  whatever the client and the network manage to send.
- **No retries** (`maxAdaptiveRetries=0`): each rejection reaches the application, also those of a short peak.

Written by `python -m benchmarks.overload`. The numbers depend on the machine; what matters is how they compare.
The simulated server turns requests away at little cost. A real one has less to spare.
"""


def draw(results: Sequence[Result], path: Path) -> None:
    """Plot load offered and goodput over the number of greenlets."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    styles = {"policy": ("C0", "o"), "naive": ("C3", "s"), "none": ("C7", "^")}
    for strategy, (colour, marker) in styles.items():
        own = [each for each in results if each.strategy == strategy]
        sizes = [each.greenlets for each in own]
        style: dict[str, Any] = {"color": colour, "marker": marker, "label": NAMES[strategy]}
        left.plot(sizes, [each.offered for each in own], **style)
        right.plot(sizes, [each.served for each in own], **style)
    for axes, title in ((left, "load offered: commands a second"), (right, "goodput: requests served a second")):
        axes.axhline(RATE, color="black", linestyle=":", linewidth=1, label=f"admitted: {RATE}")
        axes.set(title=title, xlabel="greenlets", xscale="log", ylim=(0, None))
        axes.set_xticks(SIZES, [str(size) for size in SIZES])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    left.legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    """Measure everything, print the table, and write the page and the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement (default 4)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where to write overload.md and overload.png")
    options = parser.parse_args()
    console, results = Console(), []
    with rationed() as uri:
        for size in SIZES:
            for strategy in STRATEGIES:
                results.append(measure(uri, strategy, size, options.seconds))
                found = results[-1]
                console.print(
                    f"{size:5} {strategy:7} offered {found.offered:7,.0f}/s  served {found.served:5,.0f}/s  "
                    f"failed {found.failed:.0%}"
                )
    page = PAGE.format(rate=RATE, seconds=options.seconds, warm_up=WARM_UP, patience=PATIENCE, table=table(results))
    (options.docs / "overload.md").write_text(page, "utf-8")
    draw(results, options.docs / "overload.png")


if __name__ == "__main__":
    main()
