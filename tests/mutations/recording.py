"""Record which lines of gmongo each test reaches, and the duration of each test.

A recording is a run of pytest under coverage.py. The name of the current test is the context of
coverage.py. The tracer of coverage.py follows switches of greenlets. The folder ``.mutations``
contains the recordings and the recorded code, so that a recording is still useful after changes of
the code. As a pytest plugin (``-p tests.mutations.recording``) this module records the tests and
their child processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.mutations.mutation import ROOT

RECORDINGS = ROOT / ".mutations"
TEST_FOLDERS = (
    "unit", "cmap", "execution", "sdam", "auth", "tls", "encryption", "api", "hostile", "gevent",
    "load_balanced", "telemetry", "status", "stable_api", "simulation", "differential", "spec",
    "libraries",
)  # fmt: skip
_FOLDER_VARIABLE = "GMONGO_RECORDING"  # Environment variable with the output folder of the plugin.
# Environment variable that passes the name of the current test to its child processes.
_TEST_VARIABLE = "GMONGO_RECORDED_TEST"
_RUN_TIMEOUT = 3000  # Time limit of a recording in seconds.
_COVERAGE_SETTINGS = """
[run]
data_file = {output_folder}/lines
parallel = true
include = {root}/gmongo/*
concurrency = gevent, thread
patch = _exit, fork
context = ${{GMONGO_RECORDED_TEST}}
disable_warnings = no-data-collected, couldnt-parse, module-not-imported, trace-changed, no-sysmon
"""


@dataclass(frozen=True, order=True)
class Test:
    """A recorded test.

    :ivar seconds: the duration of the test.
    :ivar line_count: the number of lines of gmongo that the test reaches.
    """

    __test__ = False

    seconds: float
    line_count: int
    name: str


@dataclass
class Recording:
    """The recorded tests.

    :ivar tests: the tests that passed, by name.
    :ivar failed: the names of the tests that failed in the recording, without a mutation.
    """

    tests: dict[str, Test] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _parts: list[tuple[Any, Path, set[str]]] = field(default_factory=list)

    def tests_of_line(self, file: str, line: int) -> list[Test]:
        """Return the tests that reach a line of the current code.

        :param file: the path of the file below ``gmongo``.
        """
        return sorted(self.tests[name] for name in self._tests_by_line(file).get(line, ()) if name)

    def tests_of_file(self, file: str) -> list[Test]:
        """Return the tests that reach any line of a file.

        The returned tests may detect changes of code that runs on import.
        """
        return sorted({self.tests[name] for names in self._tests_by_line(file).values() for name in names if name})

    def _tests_by_line(self, file: str) -> Mapping[int, set[str]]:
        """Return, for each line of the current code, the names of the tests that reach the line.

        The empty name marks a line that ran outside of tests.
        """
        if file not in self.__dict__.setdefault("_lines", {}):
            tests_by_line: dict[int, set[str]] = {}
            current_source = (ROOT / "gmongo" / file).read_text("utf-8")
            for data, part, names in self._parts:
                recorded = data.contexts_by_lineno(str(ROOT / "gmongo" / file))
                reached = {line: (names | {""}).intersection(contexts) for line, contexts in recorded.items()}
                for line, contexts in updated_lines(reached, _recorded_source(part, file), current_source).items():
                    tests_by_line.setdefault(line, set()).update(contexts)
            self.__dict__["_lines"][file] = tests_by_line
        lines: Mapping[int, set[str]] = self.__dict__["_lines"][file]
        return lines


def updated_lines(reached: Mapping[int, set[str]], before: str, current_source: str) -> dict[int, set[str]]:
    """Return, for each line of `current_source`, the names of the tests that reached the line.

    For a line that `before` does not contain, return the tests of the neighbouring lines.
    """
    new_numbers = new_line_numbers(before, current_source)
    tests_by_line = {new_numbers[line]: set(tests) for line, tests in reached.items() if line in new_numbers}
    for line in sorted(set(range(1, len(current_source.splitlines()) + 1)).difference(new_numbers.values())):
        above = max((each for each in tests_by_line if each < line), default=0)
        below = min((each for each in tests_by_line if each > line), default=0)
        tests_by_line[line] = (tests_by_line.get(above, set()) | tests_by_line.get(below, set())) - {""}
    return tests_by_line


@cache
def new_line_numbers(before: str, after: str) -> dict[int, int]:
    """Return the new line number by old line number, for all lines that the two texts share."""
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return {a + i + 1: b + i + 1 for a, b, size in matcher.get_matching_blocks() for i in range(size)}


def record_tests(folders: Iterable[str] = TEST_FOLDERS) -> Recording:
    """Record both tiers of all test files that have no recording of their current version.

    Return one recording of all folders.
    """
    result = Recording()
    for folder in folders:
        files = {
            str(path.relative_to(ROOT)): _digest(path) for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))
        }
        parts = _recorded_parts(folder)
        current_files = {file for part in parts for file, digest in part["files"].items() if files.get(file) == digest}
        if missing_files := sorted(files.keys() - current_files):
            print(f"recording {len(missing_files)} files of tests/{folder}", flush=True)
            _record(
                RECORDINGS / folder / str(len(list((RECORDINGS / folder).glob("*")))),
                missing_files,
                {file: files[file] for file in missing_files},
            )
            parts = _recorded_parts(folder)
        _add_parts(result, parts, files)
    return result


def _add_parts(result: Recording, parts: list[dict[str, Any]], files: Mapping[str, str]) -> None:
    """Add the data of each test file to a recording.

    If several parts contain the current version of a test file, use the latest part.
    """
    from coverage import CoverageData

    seen_files: set[str] = set()
    for part in reversed(parts):
        current_files = {file for file, digest in part["files"].items() if files.get(file) == digest} - seen_files
        seen_files |= current_files
        tests = [Test(*each) for each in part["tests"] if each[2].partition("::")[0] in current_files]
        result.tests.update((test.name, test) for test in tests)
        result.failed += [name for name in part.get("failed", ()) if name.partition("::")[0] in current_files]
        data = CoverageData(str(part["folder"] / "lines"))
        data.read()
        result._parts.append((data, part["folder"], {test.name for test in tests}))


def _recorded_parts(folder: str) -> list[dict[str, Any]]:
    """Return the parts that were recorded for a folder, beginning with the oldest part."""
    paths = sorted((RECORDINGS / folder).glob("*/tests.json"), key=lambda path: int(path.parent.name))
    return [{**json.loads(path.read_text("utf-8")), "folder": path.parent} for path in paths]


def _record(output_folder: Path, targets: list[str], digests: Mapping[str, str]) -> None:
    from coverage import Coverage

    output_folder.mkdir(parents=True)
    plugins = ["-p", "no:cacheprovider", "-p", "tests.mutations.recording", "--timeout=120"]
    if output_folder.parent.name == "libraries":  # the suites of libraries take too long
        plugins += ["-m", "not long"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, *targets]
    environment = {**os.environ, _FOLDER_VARIABLE: str(output_folder)}
    output = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=_RUN_TIMEOUT, check=False)
    if output.returncode == pytest.ExitCode.INTERRUPTED or not (output_folder / "found.json").exists():
        raise RuntimeError(f"there is no recording: {output.stdout.decode()[-2000:]}{output.stderr.decode()[-2000:]}")
    combined = Coverage(data_file=str(output_folder / "lines"), config_file=False)
    combined.combine([str(output_folder)])
    combined.save()
    results = json.loads((output_folder / "found.json").read_text("utf-8"))
    shutil.copytree(ROOT / "gmongo", output_folder / "gmongo", ignore=shutil.ignore_patterns("__pycache__"))
    results["files"] = digests
    (output_folder / "tests.json").write_text(json.dumps(results), "utf-8")


def _digest(path: Path) -> str:
    """Return one digest for a test file and its ``.jsonl`` file of cases."""
    cases = path.with_suffix(".jsonl")
    return hashlib.sha256(path.read_bytes() + (cases.read_bytes() if cases.exists() else b"")).hexdigest()


def _recorded_source(part: Path, file: str) -> str:
    """Return the source code of a file at the time of the recording, or an empty text if the file did
    not exist.
    """
    path = part / "gmongo" / file
    return path.read_text("utf-8") if path.exists() else ""


class _Plugin:
    """Pytest plugin that records which lines the tests of a run reach."""

    def __init__(self, output_folder: Path) -> None:
        import coverage

        self._output_folder = output_folder
        settings = output_folder / "settings"
        settings.write_text(_COVERAGE_SETTINGS.format(output_folder=output_folder, root=ROOT), "utf-8")
        # In this process, coverage.py must not patch `fork`, because a forked child of this process
        # must not record.
        self._coverage = coverage.Coverage(
            data_file=str(output_folder / "lines.tests"),
            include=[f"{ROOT}/gmongo/*"],
            concurrency=["gevent", "thread"],
            config_file=False,
        )
        self._coverage.start()
        # If this variable is set, child processes start coverage.py.
        os.environ["COVERAGE_PROCESS_START"] = str(settings)
        self._seconds: dict[str, float] = {}
        self._failed: list[str] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        os.environ[_TEST_VARIABLE] = item.nodeid
        began = monotonic()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = monotonic() - began
            self._coverage.switch_context("")
            os.environ[_TEST_VARIABLE] = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self._failed:
            self._failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        data = self._coverage.get_data()
        lines = Counter(
            context
            for file in data.measured_files()
            for contexts in data.contexts_by_lineno(file).values()
            for context in contexts
        )
        tests = [
            (round(time, 4), lines[name], name) for name, time in self._seconds.items() if name not in self._failed
        ]
        (self._output_folder / "found.json").write_text(json.dumps({"tests": tests, "failed": self._failed}), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if output_folder := os.environ.get(_FOLDER_VARIABLE):
        config.pluginmanager.register(_Plugin(Path(output_folder)), "recording")
