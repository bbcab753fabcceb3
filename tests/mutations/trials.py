"""Tests are run in a copy of the project, in which something is changed."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest

from tests.mutations.mutation import ROOT

Given = TypeVar("Given")
Result = TypeVar("Result")

HANGS = 25  # seconds for one test
_LONGEST = 900
_MEMORY = 6 << 30  # bytes; an endless loop that collects things ends there
_COPIED = (
    "gmongo",
    "tests",
    "docs",
    "examples",
    "pyproject.toml",
    "setup.cfg",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
)
_STORY = "GMONGO_STORY"  # the file in which the plug-in writes what happens
_WANTED = "GMONGO_WANTED"  # and the one with the names of the tests that are run


class NotRun(Exception):
    """pytest could not run the tests."""


@dataclass(frozen=True)
class Outcome:
    """What became of some tests.

    :param failed: the first that failed; empty, if none did.
    :param timed_out: it took too long.
    :param ran: how many tests began.
    """

    failed: str = ""
    timed_out: bool = False
    ran: int = field(default=0, compare=False)


def copy_project(to: Path) -> Path:
    """A copy of what the tests need."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name)  # with what is compiled
        else:
            shutil.copy(source, to / name)
    return to


def first_failure(root: Path, targets: Sequence[str], wanted: Sequence[str] = ()) -> Outcome:
    """The first test that fails in the copy. One that takes too long has only failed if it does so again, alone.

    :param targets: files, folders or tests.
    :param wanted: the names of the only tests that are run of them; empty for all.
    :raises NotRun: a target is not there, or pytest itself fails.
    """
    skipped: list[str] = []
    while True:
        outcome = _run(root, targets, wanted, skipped)
        if not outcome.timed_out:
            return outcome
        alone = _run(root, [outcome.failed.partition("::")[0]], [outcome.failed], [])
        if alone.failed:
            return alone
        skipped.append(outcome.failed)


def _run(root: Path, targets: Sequence[str], wanted: Sequence[str], skipped: Sequence[str]) -> Outcome:
    story, names = root / "story", root / "wanted"
    story.write_text("", "utf-8")
    names.write_text("\n".join([*wanted, *(f"not {name}" for name in skipped)]), "utf-8")
    limit = f"--timeout={HANGS}"
    # A loop without an end is ended by a thread: a signal would be raised in whichever greenlet runs.
    plugins = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "tests.mutations.trials",
        limit,
        "--timeout-method=thread",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", *plugins, *targets],
        cwd=root,
        env=environment(root, {_STORY: str(story), _WANTED: str(names)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=limit_memory,
    )
    with process:
        try:
            output = process.communicate(timeout=_LONGEST)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            output = ""
    return outcome_of(process.returncode, story.read_text("utf-8").splitlines(), output)


def outcome_of(code: int, story: Sequence[str], output: str) -> Outcome:
    """What happened, from the exit code of pytest and what the plug-in wrote."""
    ran = sum(line.startswith("begun ") for line in story)
    failed = [line.removeprefix("failed ") for line in story if line.startswith("failed ")]
    if failed:
        return Outcome(failed[0], ran=ran)
    if story and story[-1].startswith("begun "):
        return Outcome(story[-1].removeprefix("begun "), timed_out=True, ran=ran)
    if code in (0, 5):  # 5: no test is left
        return Outcome(ran=ran)
    if code in (1, 2) or "ImportError while loading conftest" in output:
        return Outcome("(not even imported)")
    raise NotRun(output[-2000:])


def environment(root: Path, more: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process in a copy."""
    return {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", **more}


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def each_in_a_copy(given: Iterable[Given], jobs: int, one: Callable[[Given, Path], Result]) -> Iterator[Result]:
    """Call `one` for each, `jobs` at a time, with a copy of the project that no other has meanwhile."""
    roots: SimpleQueue[Path] = SimpleQueue()

    def with_a_copy(each: Given) -> Result:
        root = roots.get()
        try:
            return one(each, root)
        finally:
            roots.put(root)

    with TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as executor:
        for number in range(jobs):
            roots.put(copy_project(Path(folder) / str(number)))
        yield from executor.map(with_a_copy, given)


class Story:
    """Writes which tests begin, fail and end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.failed = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(f"begun {nodeid}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = True
            self._write(f"failed {report.nodeid}")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write(f"ended {nodeid}")

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            print(line, file=file)


class _Plugin(Story):
    """Takes the tests that are wanted, and writes what happens."""

    def __init__(self, story: str, wanted: str) -> None:
        super().__init__(Path(story))
        names = Path(wanted).read_text("utf-8").splitlines()
        self._skipped = {name.removeprefix("not ") for name in names if name.startswith("not ")}
        self._wanted = {name: place for place, name in enumerate(names) if not name.startswith("not ")}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid not in self._skipped]
        if self._wanted:
            items[:] = sorted(
                (item for item in items if item.nodeid in self._wanted), key=lambda item: self._wanted[item.nodeid]
            )


def pytest_configure(config: pytest.Config) -> None:
    if _STORY in os.environ:
        config.pluginmanager.register(_Plugin(os.environ[_STORY], os.environ[_WANTED]), "trial")
