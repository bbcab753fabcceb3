"""``python -m tests.pymongo_suite`` runs PyMongo's tests with gmongo, on simulated deployments or
real servers.

A test that does not pass with gmongo also runs with PyMongo. If a test passes only with PyMongo, a
line in ``differences.tsv`` must explain its failure with gmongo. The run fails if the table does not
explain a failure. A run on all deployments also fails if the table contains an obsolete line.
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

from tests.pymongo_suite import differences
from tests.pymongo_suite.jobs import DEPLOYMENTS, DRIVERS, SIMULATED, Job, Outcome
from tests.pymongo_suite.sources import create_renamed_copy, download_tests

_MAX_FILES_OF_JOB = 6
_FIRST_REPEAT_NUMBER = 100  # Number of the first job that repeats tests. Other jobs have lower numbers.
_PYMONGO_PATTERN = re.compile("pymongo|gridfs|unified")
_SERVER_PATTERN = re.compile("client_context|IntegrationTest|unified|spec_runner|SpecRunner|MockClient")
_DEFAULT_DEPLOYMENT = next(iter(DEPLOYMENTS))
"""Deployment for tests without a server."""

Results = dict[tuple[str, str], dict[str, Outcome]]
"""(driver, deployment) -> outcomes by names of tests."""


def files_for_deployment(folder: Path, deployment: str, selected: Sequence[str]) -> list[str]:
    """Return the files whose synchronous tests run on a deployment.

    Tests that need no server run on only one deployment.
    """
    pattern = _PYMONGO_PATTERN if deployment == _DEFAULT_DEPLOYMENT else _SERVER_PATTERN
    paths = [
        *sorted((folder / "test").glob("test_*.py")),
        *sorted((folder / "test" / "mockupdb").glob("test_*.py")),
    ]
    chosen_paths = [path for path in paths if not selected or path.stem in selected]
    return [str(path.relative_to(folder)) for path in chosen_paths if pattern.search(path.read_text("utf-8"))]


def create_jobs(folder: Path, deployments: Sequence[str], selected: Sequence[str]) -> Iterator[Job]:
    """Yield the jobs that run all tests with gmongo.

    A job has few files, because the data of a test can disturb later tests.
    """
    for deployment in deployments:
        files = files_for_deployment(folder, deployment, selected)
        job_count = -(-len(files) // _MAX_FILES_OF_JOB)
        for number in range(job_count):
            yield Job("gmongo", deployment, number, tuple(files[number::job_count]))


def job_with_pymongo(job: Job, outcomes: Mapping[str, Outcome]) -> Job | None:
    """Return a job that runs, with PyMongo, the tests that did not pass with gmongo.

    Return None if all tests passed.
    """
    remaining_names = frozenset(name for name, outcome in outcomes.items() if outcome.kind != "passed")
    files = tuple(file for file in job.files if file in {differences.file_of(name) for name in remaining_names})
    return replace(job, driver="pymongo", files=files, only=remaining_names) if remaining_names else None


def run_jobs(jobs_to_run: Sequence[Job], folder: Path, output: Path, parallel: int) -> tuple[Results, list[str]]:
    """Run jobs, at most `parallel` jobs concurrently.

    Return the outcomes of the tests, and a message for each job that failed as a whole.
    """
    results: Results = {(driver, job.deployment): {} for job in jobs_to_run for driver in DRIVERS}
    job_errors: list[str] = []

    def run_job(job: Job) -> None:
        try:
            outcomes = job.run(folder, output)
        except RuntimeError as error:
            job_errors.append(str(error))
            return
        print(f"{job.name}: {dict(Counter(each.kind for each in outcomes.values()))}", flush=True)
        results[job.driver, job.deployment].update(outcomes)
        pymongo_job = job_with_pymongo(job, outcomes) if job.driver == "gmongo" else None
        if pymongo_job is not None:
            run_job(pymongo_job)

    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(run_job, jobs_to_run))
    return results, job_errors


def repeat_failures(results: Results, table: dict[str, differences.Difference], folder: Path, output: Path) -> None:
    """Repeat each test that fails with gmongo and whose failure the table does not explain.

    Each job runs the tests of one file.
    """
    for deployment in {deployment for _driver, deployment in results}:
        outcomes = differences.outcomes_that_differ(results["pymongo", deployment], results["gmongo", deployment])
        suspects = differences.unexplained_tests(outcomes, table, folder)
        for number, file in enumerate(sorted({differences.file_of(name) for name in suspects}), _FIRST_REPEAT_NUMBER):
            only = frozenset(name for name in suspects if differences.file_of(name) == file)
            results["gmongo", deployment].update(Job("gmongo", deployment, number, (file,), only).run(folder, output))


def faults_of_outcomes(results: Results, table: dict[str, differences.Difference], folder: Path) -> list[str]:
    """Return a text for each failure that the table does not explain, and for each invalid or
    obsolete line.

    :param folder: Folder with PyMongo's package ``test``.
    """
    faults = [problem for difference in table.values() if (problem := difference.problem()) is not None]
    differing: set[str] = set()
    passed: set[str] = set()
    executed: set[str] = set()
    for deployment in {deployment for _driver, deployment in results}:
        gmongo_outcomes = results["gmongo", deployment]
        outcomes = differences.outcomes_that_differ(results["pymongo", deployment], gmongo_outcomes)
        differing |= set(outcomes)
        executed |= set(gmongo_outcomes)
        passed |= {name for name, outcome in gmongo_outcomes.items() if outcome.kind == "passed"}
        for name in differences.unexplained_tests(outcomes, table, folder):
            faults.append(f"{deployment}: {name} {outcomes[name].kind}: {_shortened(outcomes[name].text)}")
    # Some lines apply to only one deployment, so a run on some deployments cannot detect obsolete
    # lines.
    if {deployment for _driver, deployment in results} == set(DEPLOYMENTS):
        faults += [f"{name} passes: remove its line" for name in differences.obsolete_tests(differing, passed, table)]
    return faults + [f"{name} is no test: remove its line" for name in differences.unknown_tests(executed, table)]


def _shortened(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines or [""])[0][:300]


_COLUMNS = ("passed", *differences.KINDS, "unexplained", "fails with PyMongo too", "skipped")


def _outcome_column(name: str, results: Results, deployment: str, table: Mapping[str, differences.Difference]) -> str:
    outcome = results["gmongo", deployment][name]
    if outcome.kind == "passed":
        return "passed"
    pymongo_outcome = results["pymongo", deployment].get(name)
    if pymongo_outcome is not None and pymongo_outcome.kind == "passed":
        return table[name].kind if name in table else "unexplained"
    return "skipped" if outcome.kind == "skipped" else "fails with PyMongo too"


def report(results: Results, table: Mapping[str, differences.Difference]) -> Iterator[str]:
    """Yield the lines of two tables that count the outcomes with gmongo by deployment and by file."""
    by_file: dict[str, Counter[str]] = {}
    by_deployment: dict[str, Counter[str]] = {}
    for driver, deployment in results:
        for name in results["gmongo", deployment] if driver == "gmongo" else ():
            column = _outcome_column(name, results, deployment, table)
            by_file.setdefault(differences.module_of(name), Counter())[column] += 1
            by_deployment.setdefault(deployment, Counter())[column] += 1
    for heading, counts_by_key in (("deployment", by_deployment), ("file", by_file)):
        yield f"| {heading} | " + " | ".join(_COLUMNS) + " |"
        yield "|---" * (len(_COLUMNS) + 1) + "|"
        for key, outcome_counts in [
            *sorted(counts_by_key.items()),
            ("all", sum(counts_by_key.values(), Counter())),
        ]:
            yield (f"| {key} | " + " | ".join(str(outcome_counts[column]) for column in _COLUMNS) + " |")


def main() -> int:
    """Run the selected tests, and print the tables and the faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.pymongo_suite", description=__doc__)
    parser.add_argument("files", nargs="*", help="names of files, such as test_cursor (default: all)")
    parser.add_argument("--folder", type=Path, default=Path(".pymongo"), help="folder for sources, logs and reports")
    parser.add_argument(
        "--deployment",
        action="append",
        choices=DEPLOYMENTS,
        help="deployment, repeatable (default: all simulated)",
    )
    parser.add_argument("--parallel", type=int, default=4, help="number of concurrent jobs")
    options = parser.parse_args()
    folder, output = options.folder.resolve(), options.folder.resolve() / "work"
    output.mkdir(parents=True, exist_ok=True)
    source = download_tests(folder)
    create_renamed_copy(folder)
    table = differences.read_differences()
    jobs_to_run = list(create_jobs(source, options.deployment or list(SIMULATED), options.files))
    results, job_errors = run_jobs(jobs_to_run, source, output, options.parallel)
    repeat_failures(results, table, source, output)
    print(*report(results, table), sep="\n")
    faults = [*job_errors, *faults_of_outcomes(results, table, source)]
    print(*faults, f"{len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
