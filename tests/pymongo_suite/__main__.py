"""``python -m tests.pymongo_suite``: PyMongo's tests with both drivers, on simulated deployments of every kind.

Whatever fails with gmongo and passes with PyMongo, must be in ``differences.tsv``; and a line there that is not needed
any more is a failure, too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.pymongo_suite import judgement
from tests.pymongo_suite.jobs import DEPLOYMENTS, DRIVERS, Job, Outcome
from tests.pymongo_suite.sources import renamed_copy, tests

_FILES_OF_A_JOB = 4
_AGAIN = 100  # from here on count the jobs that look again
_USES_PYMONGO = re.compile("pymongo|gridfs|unified")
_USES_A_SERVER = re.compile("client_context|IntegrationTest|unified|spec_runner|SpecRunner|MockClient")
_ANYWHERE = next(iter(DEPLOYMENTS))
"""The deployment for tests that need no server."""

Results = dict[tuple[str, str], dict[str, Outcome]]
"""(driver, deployment) -> the outcomes by the names of tests."""


def files_for(folder: Path, deployment: str, wanted: Sequence[str]) -> list[str]:
    """The files of synchronous tests that are about the driver; those without a server on one deployment only."""
    needed = _USES_PYMONGO if deployment == _ANYWHERE else _USES_A_SERVER
    paths = [*sorted((folder / "test").glob("test_*.py")), *sorted((folder / "test" / "mockupdb").glob("test_*.py"))]
    chosen = [path for path in paths if not wanted or path.stem in wanted]
    return [str(path.relative_to(folder)) for path in chosen if needed.search(path.read_text("utf-8"))]


def jobs(folder: Path, deployments: Sequence[str], wanted: Sequence[str]) -> Iterator[Job]:
    """All jobs: a few files each, so that what one leaves behind disturbs few others."""
    for deployment in deployments:
        files = files_for(folder, deployment, wanted)
        count = -(-len(files) // _FILES_OF_A_JOB)
        for number in range(count):
            for driver in DRIVERS:
                yield Job(driver, deployment, number, tuple(files[number::count]))


def run(todo: Sequence[Job], folder: Path, work: Path, parallel: int) -> tuple[Results, list[str]]:
    """Run jobs, some at once; their outcomes, and which did not end."""
    results: Results = {(job.driver, job.deployment): {} for job in todo}
    broken: list[str] = []

    def one(job: Job) -> None:
        try:
            outcomes = job.run(folder, work)
        except RuntimeError as error:
            broken.append(str(error))
            return
        print(f"{job.name}: {dict(Counter(each.kind for each in outcomes.values()))}", flush=True)
        results[job.driver, job.deployment].update(outcomes)

    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(one, todo))
    return results, broken


def again(results: Results, table: dict[str, judgement.Difference], folder: Path, work: Path) -> None:
    """Run those files once more, with gmongo and one after the other, in which a test fails that nothing explains."""
    for deployment in {deployment for _driver, deployment in results}:
        found = judgement.differing(results["pymongo", deployment], results["gmongo", deployment])
        suspects = judgement.unexplained(found, table, folder)
        files = sorted({judgement.file_of(name) for name in suspects})
        for number, file in enumerate(files, _AGAIN):
            outcomes = Job("gmongo", deployment, number, (file,)).run(folder, work)
            better = {name: one for name, one in outcomes.items() if name in suspects and one.kind == "passed"}
            results["gmongo", deployment].update(better)


def judged(results: Results, table: dict[str, judgement.Difference], folder: Path) -> list[str]:
    """What is wrong.

    :param folder: with the package ``test``.
    """
    wrong = [problem for one in table.values() if (problem := one.problem()) is not None]
    seen: set[str] = set()
    passed: set[str] = set()
    for deployment in {deployment for _driver, deployment in results}:
        pymongo, gmongo = results["pymongo", deployment], results["gmongo", deployment]
        found = judgement.differing(pymongo, gmongo)
        seen |= set(found)
        passed |= {name for name, outcome in pymongo.items() if outcome.kind == "passed"}
        for name in judgement.unexplained(found, table, folder):
            wrong.append(f"{deployment}: {name} {found[name].kind}: {_short(found[name].text)}")
    return wrong + [f"{name} passes: its line is to go" for name in judgement.obsolete(seen, passed, table)]


def _short(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines or [""])[0][:300]


def report(results: Results) -> Iterator[str]:
    """A table by files: passed, failed and skipped, on all deployments together, with both drivers."""
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for (driver, _deployment), outcomes in results.items():
        for name, outcome in outcomes.items():
            counts.setdefault(name.split(".Test")[0], Counter())[driver, outcome.kind] += 1
    kinds = "passed", "failed", "skipped"
    yield "| file | " + " | ".join(f"{driver} {kind}" for driver in DRIVERS for kind in kinds) + " |"
    yield "|---" * 7 + "|"
    for file, count in sorted(counts.items()):
        yield f"| {file} | " + " | ".join(str(count[driver, kind]) for driver in DRIVERS for kind in kinds) + " |"
    total = sum(counts.values(), Counter())
    yield "| all | " + " | ".join(str(total[driver, kind]) for driver in DRIVERS for kind in kinds) + " |"


def main() -> int:
    """Run everything, print the table and what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.pymongo_suite", description=__doc__)
    parser.add_argument("files", nargs="*", help="names of files, such as test_cursor; all by default")
    parser.add_argument("--folder", type=Path, default=Path(".pymongo"), help="for sources, logs and reports")
    parser.add_argument("--deployment", action="append", choices=DEPLOYMENTS, help="all by default")
    parser.add_argument("--parallel", type=int, default=4, help="jobs at once; most of the time they wait")
    parser.add_argument("--once", action="store_true", help="do not look again at tests that fail unexpectedly")
    given = parser.parse_args()
    folder, work = given.folder.resolve(), given.folder.resolve() / "work"
    work.mkdir(parents=True, exist_ok=True)
    source = tests(folder)
    renamed_copy(folder)
    table = judgement.differences()
    todo = list(jobs(source, given.deployment or list(DEPLOYMENTS), given.files))
    results, broken = run(todo, source, work, given.parallel)
    if not given.once:
        again(results, table, source, work)
    print(*report(results), sep="\n")
    wrong = [*broken, *judged(results, table, source)]
    print(*wrong, f"{len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
