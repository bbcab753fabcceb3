"""Try the mutations: ``python -m tests.mutations [--jobs 2] [--only c22,s] [--own-only]``.

Each is applied to a copy of the project, and its own tests run there; if they all pass, those of their folders do too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from time import monotonic

from tests.mutations.mutation import ROOT, Mutation
from tests.mutations.tables import AREAS

OWN, FOLDER, SURVIVED = "by its tests", "by their folders", "survived"
OUTCOMES = (OWN, FOLDER, SURVIVED)
_HANGS = 25  # seconds; a test that takes so long has noticed, too
_LONGEST = 600
_COPIED = ("gmongo", "tests", "docs", "examples", "pyproject.toml", "README.md")


@dataclass(frozen=True)
class Trial:
    """What came of a mutation.

    :param area: it belongs to.
    :param outcome: one of :data:`OUTCOMES`.
    :param seconds: it took.
    """

    area: str
    mutation: Mutation
    outcome: str
    seconds: float


def copy_project(to: Path) -> Path:
    """A copy of what the tests need."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, to / name)
    return to


def fails(root: Path, targets: Sequence[str]) -> bool:
    """Whether one of the tests fails in the copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--timeout={_HANGS}", *targets]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=_LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return True
    if done.returncode not in (0, 1, 2):  # 2: not even imported
        raise RuntimeError(f"pytest could not run {targets}: {done.stdout.decode()[-2000:]}")
    return done.returncode != 0


def attempt(area: str, mutation: Mutation, root: Path, own_only: bool) -> Trial:
    """Try one mutation in a copy, and take it back."""
    began = monotonic()
    path = root / "gmongo" / mutation.file
    before = mutation.apply(root)
    try:
        outcome = OWN if fails(root, mutation.targets) else SURVIVED
        if outcome == SURVIVED and not own_only:
            folders = sorted({target.rsplit("/", 1)[0] for target in mutation.targets})
            outcome = FOLDER if fails(root, folders) else SURVIVED
    finally:
        path.write_text(before, "utf-8")
    return Trial(area, mutation, outcome, monotonic() - began)


def run(chosen: Sequence[tuple[str, Mutation]], jobs: int, own_only: bool) -> list[Trial]:
    """Try all, `jobs` at a time, each in a copy of its own."""
    roots: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as executor:
        for number in range(jobs):
            roots.put(copy_project(Path(folder) / str(number)))

        def one(area: str, mutation: Mutation) -> Trial:
            root = roots.get()
            try:
                trial = attempt(area, mutation, root, own_only)
            finally:
                roots.put(root)
            print(f"{mutation.name:5} {trial.outcome:17} {trial.seconds:5.1f} s  {mutation.what}", flush=True)
            return trial

        return list(executor.map(lambda pair: one(*pair), chosen))


def report(trials: Sequence[Trial]) -> str:
    """A table of what came of them, area by area."""
    counts = Counter((trial.area, trial.outcome) for trial in trials)
    rows = ["| area | mutations | " + " | ".join(OUTCOMES) + " | killed |", "|---|---:|---:|---:|---:|---:|"]
    for area in [*AREAS, "all"]:
        numbers = [
            sum(count for key, count in counts.items() if key[1] == outcome and area in (key[0], "all"))
            for outcome in OUTCOMES
        ]
        total = sum(numbers)
        if total:
            killed = 100 * (total - numbers[-1]) / total
            rows.append(f"| {area} | {total} | {' | '.join(map(str, numbers))} | {killed:.0f} % |")
    return "\n".join(rows)


def main() -> int:
    """Try the mutations that were asked for; 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--only", default="", help="names of mutations, or of areas, with commas between")
    parser.add_argument("--own-only", action="store_true", help="do not run the folders of tests that passed")
    options = parser.parse_args()
    wanted = {name for name in options.only.split(",") if name}
    everything = [(area, mutation) for area, mutations in AREAS.items() for mutation in mutations]
    chosen = [(area, each) for area, each in everything if not wanted or area in wanted or each.name in wanted]
    trials = run(chosen, options.jobs, options.own_only)
    print(report(trials))
    return int(any(trial.outcome == SURVIVED for trial in trials))


if __name__ == "__main__":
    sys.exit(main())
