"""Run random mutations: random changes of gmongo, each with the tests that can detect the change."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.mutations.mutation import ROOT
from tests.mutations.random_changes import RandomChange, choose_tests, draw_changes, files
from tests.mutations.recording import TEST_FOLDERS, Recording, record_tests
from tests.mutations.trials import NotRun, outcome_table, run_in_copies, run_until_failure

KILLED, SURVIVED, UNREACHED, NOT_TRIED = "killed", "survived", "reached by no test", "not tried"
OUTCOMES = (KILLED, SURVIVED, UNREACHED, NOT_TRIED)


@dataclass(frozen=True)
class Trial:
    """The result of one mutation.

    :ivar outcome: one of :data:`OUTCOMES`.
    :ivar detail: the test that detected the mutation, the number of tests that passed, or the reason
        why no test ran. The text may be empty.
    """

    random_change: RandomChange
    outcome: str
    detail: str
    seconds: float


def perform(random_change: RandomChange, root: Path, recording: Recording, seconds: float) -> Trial:
    """Run the tests of one mutation in a copy of the project, and restore the copy.

    :param seconds: the time limit for the tests in seconds.
    """
    began = monotonic()

    def result(outcome: str, detail: str) -> Trial:
        return Trial(random_change, outcome, detail, monotonic() - began)

    path = root / "gmongo" / random_change.file
    before = path.read_text("utf-8")
    after = random_change.apply(before)
    if after is None:
        return result(NOT_TRIED, "the lines to change no longer exist")
    tests, test_count = choose_tests(recording, random_change, seconds)
    if not tests:
        return result(UNREACHED, f"{test_count} tests are too slow" if test_count else "")
    path.write_text(after, "utf-8")
    try:
        outcome = run_until_failure(root, list(dict.fromkeys(test.partition("::")[0] for test in tests)), tests)
    except NotRun as error:
        return result(NOT_TRIED, str(error))
    finally:
        path.write_text(before, "utf-8")
    if outcome.failed_test:
        return result(KILLED, outcome.failed_test + (" (timed out)" if outcome.timed_out else ""))
    return result(SURVIVED, f"{outcome.started_count} of the {test_count} tests that reach the line")


def _difference(random_change: RandomChange) -> str:
    return (
        re.sub("^", "-", random_change.old.rstrip("\n"), flags=re.M)
        + "\n"
        + re.sub("^", "+", random_change.new.rstrip("\n"), flags=re.M)
    )


def main(options: argparse.Namespace) -> int:
    """Run random mutations. Return 0 if tests detect all mutations, and otherwise 1."""
    paths = files(options.only) if options.only else [file for file in files() if not file.startswith("testing/")]
    sources = {file: (ROOT / "gmongo" / file).read_text("utf-8") for file in paths}
    mutations = draw_changes(sources, options.random, options.seed)
    folders = options.folders.split(",") if options.folders else TEST_FOLDERS
    recording = record_tests(folders)
    for name in recording.failed:
        print(f"failed without a mutation, excluded: {name}")

    def run(random_change: RandomChange, root: Path) -> Trial:
        trial = perform(random_change, root, recording, options.seconds)
        print(
            f"{trial.outcome:10} {trial.seconds:5.1f} s  {random_change.name}  {trial.detail}",
            flush=True,
        )
        if trial.outcome != KILLED:
            print(_difference(random_change), flush=True)
        return trial

    trials = list(run_in_copies(mutations, options.jobs, run))
    print(outcome_table("package", [(trial.random_change.package, trial.outcome) for trial in trials], OUTCOMES))
    return int(any(trial.outcome != KILLED for trial in trials))
