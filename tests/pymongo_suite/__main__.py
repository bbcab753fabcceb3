"""``python -m tests.pymongo_suite``: PyMongo's tests with both drivers, on simulated deployments or on real members.

All of them run with gmongo. What does not pass, runs with PyMongo, too; and what passes there must be in
``differences.tsv``, with the reason that its failure shows. A line there that is not needed any more is a failure, too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.pymongo_suite import judgement
from tests.pymongo_suite.jobs import DEPLOYMENTS, DRIVERS, SIMULATED, Job, Outcome
from tests.pymongo_suite.sources import renamed_copy, tests

_FILES_OF_A_JOB = 6
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
    """All jobs with gmongo: a few files each, so that what one leaves behind disturbs few others."""
    for deployment in deployments:
        files = files_for(folder, deployment, wanted)
        count = -(-len(files) // _FILES_OF_A_JOB)
        for number in range(count):
            yield Job("gmongo", deployment, number, tuple(files[number::count]))


def with_pymongo(job: Job, outcomes: Mapping[str, Outcome]) -> Job | None:
    """The same tests with PyMongo, but for those that pass with gmongo: nothing is to be learnt from them."""
    rest = frozenset(name for name, outcome in outcomes.items() if outcome.kind != "passed")
    files = tuple(file for file in job.files if file in {judgement.file_of(name) for name in rest})
    return replace(job, driver="pymongo", files=files, only=rest) if rest else None


def run(todo: Sequence[Job], folder: Path, work: Path, parallel: int) -> tuple[Results, list[str]]:
    """Run jobs, some at once; their outcomes, and which did not end."""
    results: Results = {(driver, job.deployment): {} for job in todo for driver in DRIVERS}
    broken: list[str] = []

    def one(job: Job) -> None:
        try:
            outcomes = job.run(folder, work)
        except RuntimeError as error:
            broken.append(str(error))
            return
        print(f"{job.name}: {dict(Counter(each.kind for each in outcomes.values()))}", flush=True)
        results[job.driver, job.deployment].update(outcomes)
        beside = with_pymongo(job, outcomes) if job.driver == "gmongo" else None
        if beside is not None:
            one(beside)

    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(one, todo))
    return results, broken


def again(results: Results, table: dict[str, judgement.Difference], folder: Path, work: Path) -> None:
    """Run those tests once more, with gmongo and one file after the other, whose failures nothing explains."""
    for deployment in {deployment for _driver, deployment in results}:
        found = judgement.differing(results["pymongo", deployment], results["gmongo", deployment])
        suspects = judgement.unexplained(found, table, folder)
        for number, file in enumerate(sorted({judgement.file_of(name) for name in suspects}), _AGAIN):
            only = frozenset(name for name in suspects if judgement.file_of(name) == file)
            results["gmongo", deployment].update(Job("gmongo", deployment, number, (file,), only).run(folder, work))


def judged(results: Results, table: dict[str, judgement.Difference], folder: Path) -> list[str]:
    """What is wrong.

    :param folder: with the package ``test``.
    """
    wrong = [problem for one in table.values() if (problem := one.problem()) is not None]
    seen: set[str] = set()
    passed: set[str] = set()
    run: set[str] = set()
    for deployment in {deployment for _driver, deployment in results}:
        gmongo = results["gmongo", deployment]
        found = judgement.differing(results["pymongo", deployment], gmongo)
        seen |= set(found)
        run |= set(gmongo)
        passed |= {name for name, outcome in gmongo.items() if outcome.kind == "passed"}
        for name in judgement.unexplained(found, table, folder):
            wrong.append(f"{deployment}: {name} {found[name].kind}: {_short(found[name].text)}")
    if {deployment for _driver, deployment in results} == set(DEPLOYMENTS):  # some lines are for one deployment
        wrong += [f"{name} passes: its line is to go" for name in judgement.obsolete(seen, passed, table)]
    return wrong + [f"{name} is no test: its line is to go" for name in judgement.unknown(run, table)]


def _short(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines or [""])[0][:300]


_COLUMNS = ("passed", *judgement.KINDS, "unexplained", "not with PyMongo either", "skipped")


def _column(name: str, results: Results, deployment: str, table: Mapping[str, judgement.Difference]) -> str:
    outcome = results["gmongo", deployment][name]
    if outcome.kind == "passed":
        return "passed"
    beside = results["pymongo", deployment].get(name)
    if beside is not None and beside.kind == "passed":
        return table[name].kind if name in table else "unexplained"
    return "skipped" if outcome.kind == "skipped" else "not with PyMongo either"


def report(results: Results, table: Mapping[str, judgement.Difference]) -> Iterator[str]:
    """Tables by deployments and by files: what came of the tests with gmongo, and why, where they pass with PyMongo."""
    by_file: dict[str, Counter[str]] = {}
    by_deployment: dict[str, Counter[str]] = {}
    for driver, deployment in results:
        for name in results["gmongo", deployment] if driver == "gmongo" else ():
            column = _column(name, results, deployment, table)
            by_file.setdefault(judgement.module_of(name), Counter())[column] += 1
            by_deployment.setdefault(deployment, Counter())[column] += 1
    for title, counts in (("deployment", by_deployment), ("file", by_file)):
        yield f"| {title} | " + " | ".join(_COLUMNS) + " |"
        yield "|---" * (len(_COLUMNS) + 1) + "|"
        for key, count in [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]:
            yield f"| {key} | " + " | ".join(str(count[column]) for column in _COLUMNS) + " |"


def main() -> int:
    """Run everything, print the table and what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.pymongo_suite", description=__doc__)
    parser.add_argument("files", nargs="*", help="names of files, such as test_cursor; all by default")
    parser.add_argument("--folder", type=Path, default=Path(".pymongo"), help="for sources, logs and reports")
    parser.add_argument("--deployment", action="append", choices=DEPLOYMENTS, help="all simulated ones by default")
    parser.add_argument("--parallel", type=int, default=4, help="jobs at once; most of the time they wait")
    parser.add_argument("--once", action="store_true", help="do not look again at tests that fail unexpectedly")
    given = parser.parse_args()
    folder, work = given.folder.resolve(), given.folder.resolve() / "work"
    work.mkdir(parents=True, exist_ok=True)
    source = tests(folder)
    renamed_copy(folder)
    table = judgement.differences()
    todo = list(jobs(source, given.deployment or list(SIMULATED), given.files))
    results, broken = run(todo, source, work, given.parallel)
    if not given.once:
        again(results, table, source, work)
    print(*report(results, table), sep="\n")
    wrong = [*broken, *judged(results, table, source)]
    print(*wrong, f"{len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
