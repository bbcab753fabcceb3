"""Write the results of one or more runs into ``docs/performance-real.md``, between two marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from benchmarks.page import markdown, replace_part
from benchmarks.processes import ROOT
from benchmarks.programs import CONTENDERS
from benchmarks.real import plot
from benchmarks.real.failover import FAILURE_KINDS
from benchmarks.sheets import Sheet

PAGE = ROOT / "docs" / "performance-real.md"
_PART_NAME = "real-servers"
_DEPLOYMENTS_WITH_LATENCIES = ("standalone", "replica set")
Run = dict[str, Any]


def write(runs: Sequence[Run]) -> None:
    """Write the results of the runs into the page, and draw the plot."""
    plot.draw(runs, PAGE.with_suffix(".svg"))
    PAGE.write_text(replace_part(PAGE.read_text(), "\n".join(["", *lines(runs), ""]), _PART_NAME))


def lines(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the lines between the marks of the page.

    Counts are sums over the runs, and other numbers are means. ± is half of the range of the runs.
    """
    yield ", ".join(f"{name} {version}" for name, version in runs[0]["versions"].items()) + f". Runs: {len(runs)}."
    for deployment in {name: None for run in runs for name in run["operations"]}:
        yield from _operations(_results_named([run["operations"] for run in runs], deployment), deployment)
    if failovers := _results_named(runs, "failover"):
        yield from _failover(failovers)
    if crowds := _results_named(runs, "crowds"):
        yield from _cost_per_item(crowds)


def _results_named(runs: Sequence[Run], name: str) -> list[Run]:
    """Return the results with this name of each run that contains such results."""
    return [run[name] for run in runs if name in run]


def _operations(runs: Sequence[Run], deployment: str) -> Iterator[str]:
    kinds = list(runs[-1])
    peers = [name for name in CONTENDERS if any(name in runs[-1][kind]["gmongo over"] for kind in kinds)]
    yield from ("", f"## Client CPU: gmongo divided by each client (deployment: {deployment})", "")
    yield from _table(
        ["client", *kinds],
        [[CONTENDERS[name].title, *(_mean_ratio(runs, kind, name) for kind in kinds)] for name in peers],
    )
    failures = {name: why for kind in kinds for name, why in runs[-1][kind]["failures"].items()}
    yield from (f"\nNot measured: {CONTENDERS[name].title}: {why}" for name, why in failures.items())
    if deployment not in _DEPLOYMENTS_WITH_LATENCIES:
        return
    kinds = [*kinds[:4], *(kind for kind in kinds if kind == "first_operation")]
    contenders = [name for name in CONTENDERS if any(name in runs[-1][kind]["rates"] for kind in kinds)]
    title = f"## Operations per second, and latency p50/p99/p99.9 in ms (deployment: {deployment})"
    yield from ("", title, "")
    yield from _table(
        ["client", *kinds],
        [[CONTENDERS[name].title, *(_rate_and_latencies(runs, kind, name) for kind in kinds)] for name in contenders],
    )


def _mean_ratio(runs: Sequence[Run], kind: str, name: str) -> str:
    results = [run[kind]["gmongo over"][name] for run in runs if kind in run and name in run[kind]["gmongo over"]]
    if not results:
        return "-"
    return f"{fmean(results):.2f}" + (f"±{(max(results) - min(results)) / 2:.2f}" if len(results) > 1 else "")


def _rate_and_latencies(runs: Sequence[Run], kind: str, name: str) -> str:
    results = [run[kind] for run in runs if kind in run and name in run[kind]["rates"]]
    if not results:
        return "-"
    quantiles = [fmean(each["latencies"][name][quantile] for each in results) for quantile in ("p50", "p99", "p99.9")]
    return f"{fmean(each['rates'][name] for each in results):.0f}: {'/'.join(f'{value:.3g}' for value in quantiles)}"


def _failover(runs: Sequence[Run]) -> Iterator[str]:
    names = list(runs[0]["faults"])
    yield from ("", "## Failover: p50/p99 in ms from a probe's write on the new primary to a greenlet's write", "")
    rows = []
    for kind in FAILURE_KINDS:
        results = [[run["delays"][kind][name] for run in runs] for name in names]
        rows.append([f"primary {kind}", *(_quantiles(each) for each in results)])
    yield from _table(["failure", *(f"{CONTENDERS[name].title}" for name in names)], rows)
    yield from ("", "## Failover: errors, lost writes and repeated writes", "")
    rows = []
    for name in names:
        faults = [run["faults"][name] for run in runs]
        errors = sum(sum(each["errors"].values()) for each in faults)
        sums = [sum(each[key] for each in faults) for key in ("writes", "lost", "twice")]
        rows.append([CONTENDERS[name].title, str(sums[0]), str(errors), *map(str, sums[1:])])
    yield from _table(["client", "acknowledged writes", "errors", "lost", "applied twice"], rows)


def _quantiles(results: Sequence[dict[str, float]]) -> str:
    return "/".join(f"{fmean(each[quantile] for each in results):.0f}" for quantile in ("p50", "p99"))


def _cost_per_item(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a table of CPU time and memory for each greenlet, client, database and connection."""
    sizes = {name: list(next(iter(contenders.values()))) for name, contenders in runs[0].items()}
    rows = []
    for contender in next(iter(runs[0].values())):
        rows.append([CONTENDERS[contender].title])
        for name, (smallest, *_, largest) in sizes.items():
            cells = [[run[name][contender][size] for run in runs] for size in (smallest, largest)]
            rows[-1].append(" to ".join(_time_and_memory(list(filter(None, cell))) for cell in cells))
    yield from ("", "## CPU ms/memory KB for each item, with the smallest and the largest number of items", "")
    yield from _table(["client", *(f"{each[0]} to {each[-1]} {name}" for name, each in sizes.items())], rows)


def _time_and_memory(results: Sequence[Sequence[float]]) -> str:
    return "/".join(f"{fmean(each[index] for each in results):.3g}" for index in (0, 1)) if results else "-"


def _table(titles: Sequence[str], rows: Sequence[list[str]]) -> Iterator[str]:
    return markdown(Sheet("", [*titles], [[*rows]]))
