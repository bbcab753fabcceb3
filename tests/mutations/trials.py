"""Run tests in copies of the project that a mutation has changed."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest

from tests.mutations.mutation import ROOT

Item = TypeVar("Item")
Result = TypeVar("Result")

TEST_TIMEOUT = 25  # Time limit of one test in seconds.
_RUN_TIMEOUT = 900
# Memory limit of a test process in bytes. The limit ends endless loops that allocate memory.
_MEMORY_LIMIT = 6 << 30
_COPIED_PATHS = (
    "gmongo", "tests", "docs", "examples", "pyproject.toml", "setup.cfg", "README.md",
    "ARCHITECTURE.md", "CHANGELOG.md",
)  # fmt: skip
# Environment variable with the path of the file to which the plugin writes.
_PROGRESS_VARIABLE = "GMONGO_PROGRESS"
# Environment variable with the path of the file that names the selected and the skipped tests.
_SELECTED_VARIABLE = "GMONGO_WANTED"


class NotRun(Exception):
    """Raised if pytest could not run the tests."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run of tests with a mutation.

    :ivar failed_test: the first test that failed or timed out, or an empty text.
    :ivar started_count: the number of tests that were started.
    """

    failed_test: str = ""
    timed_out: bool = False
    started_count: int = field(default=0, compare=False)


def copy_project(destination: Path) -> Path:
    for name in _COPIED_PATHS:
        source = ROOT / name
        if source.is_dir():
            # The copy also contains the bytecode of the modules, so that tests start faster.
            shutil.copytree(source, destination / name)
        else:
            shutil.copy(source, destination / name)
    return destination


def run_until_failure(root: Path, targets: Sequence[str], selected_tests: Sequence[str] = ()) -> Outcome:
    """Run tests in a copy of the project until a test fails. Return the outcome.

    If a test times out, run the test again alone. Ignore the timeout if the test then passes.

    :param targets: the files, folders or tests that pytest collects.
    :param selected_tests: the names of the tests to run; empty to run all collected tests.
    :raises NotRun: a target does not exist, or pytest cannot run the tests.
    """
    skipped: list[str] = []
    while True:
        outcome = _run(root, targets, selected_tests, skipped)
        if not outcome.timed_out:
            return outcome
        outcome_alone = _run(root, [outcome.failed_test.partition("::")[0]], [outcome.failed_test], [])
        if outcome_alone.failed_test:
            return outcome_alone
        skipped.append(outcome.failed_test)


def _run(root: Path, targets: Sequence[str], selected_tests: Sequence[str], skipped: Sequence[str]) -> Outcome:
    progress_file, names_file = root / "progress", root / "selected_tests"
    progress_file.write_text("", "utf-8")
    names_file.write_text("\n".join([*selected_tests, *(f"not {name}" for name in skipped)]), "utf-8")
    limit = f"--timeout={TEST_TIMEOUT}"
    # With `thread`, pytest-timeout ends the process. With `signal`, pytest-timeout would raise an
    # error in the current greenlet.
    plugins = [
        "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.mutations.trials", limit,
        "--timeout-method=thread",
    ]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", *plugins, *targets],
        cwd=root,
        env={
            **os.environ,
            "PYTHONPATH": str(root),
            "PYTHONDONTWRITEBYTECODE": "1",
            _PROGRESS_VARIABLE: str(progress_file),
            _SELECTED_VARIABLE: str(names_file),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_limit_memory,
    )
    with process:
        try:
            output = process.communicate(timeout=_RUN_TIMEOUT)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            output = ""
    return outcome_of(process.returncode, progress_file.read_text("utf-8").splitlines(), output)


def outcome_of(code: int, progress_lines: Sequence[str], output: str) -> Outcome:
    """Return the outcome of a run from pytest's exit code and output, and from the plugin's lines."""
    started_count = sum(line.startswith("begun ") for line in progress_lines)
    failed_tests = [line.removeprefix("failed ") for line in progress_lines if line.startswith("failed ")]
    if failed_tests:
        return Outcome(failed_tests[0], started_count=started_count)
    if progress_lines and progress_lines[-1].startswith("begun "):
        return Outcome(progress_lines[-1].removeprefix("begun "), timed_out=True, started_count=started_count)
    if code in (0, 5):  # pytest returns exit code 5 if no test was selected
        return Outcome(started_count=started_count)
    if code in (1, 2) or "ImportError while loading conftest" in output:
        return Outcome("(not even imported)")
    raise NotRun(output[-2000:])


def outcome_table(title: str, group_outcomes: Sequence[tuple[str, str]], outcomes: Sequence[str]) -> str:
    """Return a table with the number of mutations for each group and outcome.

    :param group_outcomes: the group and the outcome of each mutation.
    """
    rows = [
        f"| {title} | mutations | {' | '.join(outcomes)} |",
        "|---|---:|" + "---:|" * len(outcomes),
    ]
    for group in [*sorted({group for group, _ in group_outcomes}), "all"]:
        counts = Counter(outcome for own, outcome in group_outcomes if group in (own, "all"))
        numbers = " | ".join(str(counts[outcome]) for outcome in outcomes)
        rows.append(f"| {group} | {counts.total()} | {numbers} |")
    return "\n".join(rows)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))


def run_in_copies(items: Iterable[Item], job_count: int, run: Callable[[Item, Path], Result]) -> Iterator[Result]:
    """Call `run` with each item and a copy of the project, and yield the results.

    At most `job_count` calls run concurrently, and each call uses its own copy.
    """
    roots: SimpleQueue[Path] = SimpleQueue()

    def run_in_copy(item: Item) -> Result:
        root = roots.get()
        try:
            return run(item, root)
        finally:
            roots.put(root)

    with TemporaryDirectory() as folder, ThreadPoolExecutor(job_count) as executor:
        for number in range(job_count):
            roots.put(copy_project(Path(folder) / str(number)))
        yield from executor.map(run_in_copy, items)


class _Plugin:
    """Pytest plugin that runs selected tests, and writes a line when a test begins, fails or ends."""

    def __init__(self, progress_file: str, names_file: str) -> None:
        self._progress_file = Path(progress_file)
        names = Path(names_file).read_text("utf-8").splitlines()
        self._skipped = {name.removeprefix("not ") for name in names if name.startswith("not ")}
        self._selected = {name: place for place, name in enumerate(names) if not name.startswith("not ")}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self._skipped]
        if self._selected:
            items[:] = sorted(
                (item for item in items if item.nodeid in self._selected),
                key=lambda item: self._selected[item.nodeid],
            )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(f"begun {nodeid}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write(f"failed {report.nodeid}")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write(f"ended {nodeid}")

    def _write(self, line: str) -> None:
        with self._progress_file.open("a", encoding="utf-8") as file:
            print(line, file=file)


def pytest_configure(config: pytest.Config) -> None:
    if _PROGRESS_VARIABLE in os.environ:
        config.pluginmanager.register(_Plugin(os.environ[_PROGRESS_VARIABLE], os.environ[_SELECTED_VARIABLE]), "trial")
