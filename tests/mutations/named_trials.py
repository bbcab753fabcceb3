"""Run the hand-written mutations of ``mutations.jsonl``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.mutations.mutation import Mutation, MutationError
from tests.mutations.tables import AREAS
from tests.mutations.trials import NotRun, outcome_table, run_in_copies, run_until_failure

KILLED_BY_TESTS, KILLED_BY_FOLDERS, SURVIVED, NOT_TRIED = "by its tests", "by their folders", "survived", "not tried"
OUTCOMES = (KILLED_BY_TESTS, KILLED_BY_FOLDERS, SURVIVED, NOT_TRIED)


@dataclass(frozen=True)
class Trial:
    """The result of one mutation.

    :ivar area: the subject of the mutation.
    :ivar outcome: one of :data:`OUTCOMES`.
    :ivar detail: the detecting test, the reason why the mutation was not tried, or an empty text.
    """

    area: str
    mutation: Mutation
    outcome: str
    detail: str
    seconds: float


def perform(area: str, mutation: Mutation, root: Path, failing_before: frozenset[str]) -> Trial:
    """Run the tests of one mutation in a copy of the project, and restore the copy.

    :param failing_before: the targets (test files or tests) that also fail without a mutation.
    """
    began = monotonic()

    def result(outcome: str, detail: str) -> Trial:
        return Trial(area, mutation, outcome, detail, monotonic() - began)

    path = root / "gmongo" / mutation.file
    try:
        targets = mutation.targets
        if failing := sorted(failing_before.intersection(targets)):
            return result(NOT_TRIED, f"failed without the mutation: {', '.join(failing)}")
        before = mutation.apply(root)
    except (MutationError, KeyError, OSError, SyntaxError) as error:
        return result(NOT_TRIED, f"{type(error).__name__}: {error}")
    try:
        if failed := run_until_failure(root, targets).failed_test:
            return result(KILLED_BY_TESTS, failed)
        folders = sorted({target.partition("::")[0].rsplit("/", 1)[0] for target in targets})
        failed = run_until_failure(root, folders).failed_test
        return result(KILLED_BY_FOLDERS, failed) if failed else result(SURVIVED, "")
    except NotRun as error:
        return result(NOT_TRIED, str(error))
    finally:
        path.write_text(before, "utf-8")


def choose_mutations(selection: Sequence[str]) -> list[tuple[str, Mutation]]:
    """Return each mutation whose name or subject is in `selection`, together with its subject.

    If `selection` is empty, return all mutations with their subjects.

    :raises ValueError: a name is unknown.
    """
    all_pairs = [(area, mutation) for area, mutations in AREAS.items() for mutation in mutations]
    if unknown := set(selection) - set(AREAS) - {mutation.name for _, mutation in all_pairs}:
        raise ValueError(f"unknown mutations or subjects: {', '.join(sorted(unknown))}. Subjects: {', '.join(AREAS)}")
    return [(area, each) for area, each in all_pairs if not selection or area in selection or each.name in selection]


def find_failing_targets(selected_mutations: Sequence[tuple[str, Mutation]], job_count: int) -> frozenset[str]:
    """Run the targets of the mutations on the unchanged project, and return the failing targets."""
    targets = set()
    for _, mutation in selected_mutations:
        try:
            targets.update(mutation.targets)
        except KeyError:  # the trial of the mutation reports an unknown requirement ID
            continue

    def run(target: str, root: Path) -> str:
        try:
            failed = run_until_failure(root, [target]).failed_test
        except NotRun as error:
            failed = str(error)
        if failed:
            print(f"failed without a mutation: {target}: {failed}", flush=True)
        return target if failed else ""

    return frozenset(run_in_copies(sorted(targets), job_count, run)) - {""}


def main(options: argparse.Namespace) -> int:
    """Run the selected mutations. Return 1 if a mutation survives or cannot run."""
    chosen = choose_mutations(options.only)
    failing_targets = find_failing_targets(chosen, options.jobs)

    def run(pair: tuple[str, Mutation], root: Path) -> Trial:
        trial = perform(*pair, root, failing_targets)
        name, what = trial.mutation.name, trial.mutation.what
        print(f"{name:5} {trial.outcome:17} {trial.seconds:5.1f} s  {what}  {trial.detail}", flush=True)
        return trial

    trials = list(run_in_copies(chosen, options.jobs, run))
    print(outcome_table("subject", [(trial.area, trial.outcome) for trial in trials], OUTCOMES))
    return int(any(trial.outcome in (SURVIVED, NOT_TRIED) for trial in trials))
