"""``python -m tests.live.runs`` runs tests on `mongod` servers. The argument is ``ci`` in continuous
integration, and ``long`` in tox.

Each run is a separate process with its own servers. By default, two runs execute concurrently.
``--program`` and the environment variable GMONGO_MONGODS (paths separated by colons) add runs with
further `mongod` programs. If such a `mongod` program cannot start, there is no run with this program.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from gmongo.testing import URI_VARIABLE, EmbeddedDatabaseError
from gmongo.testing.mongod.program import find_program
from tests.live import campaigns, official, prose_tests
from tests.live.mongod import MECHANISMS, run_mongod

PROGRAMS_VARIABLE = "GMONGO_MONGODS"
_OFFICIAL_OPTIONS = ("--only", official.PART, "--only", prose_tests.PART)
_CAMPAIGN_OPTIONS = (*_OFFICIAL_OPTIONS, "--only", campaigns.CAMPAIGN_PART, "--steps", "20")
_TIME_LIMIT = 3600.0  # Time limit of one run in seconds.
_ANSWERS_MODULE = "tests.simulation.answers"
_FUZZ_MODULE = "tests.simulation.fuzz"
_OWN_SERVERS_OPTION = "--mongodb-members"  # With this option, each pytest process starts its own servers.


class Run(NamedTuple):
    """One run: a program that runs tests on servers.

    :param name: the name of the run in the output.
    :param member_count: the number of members of the replica set; 0 for a standalone.
    :param arguments: arguments of pytest if the first argument is a path; a module name and arguments
        if the first argument is a module name; otherwise arguments of ``tests.live``.
    """

    name: str
    member_count: int
    arguments: tuple[str, ...]

    def command(self, report: Path) -> list[str]:
        """Return the command line of the run."""
        if self.arguments[0] in (_ANSWERS_MODULE, _FUZZ_MODULE):
            return [sys.executable, "-m", *self.arguments]
        if self.arguments[0].startswith("tests/"):
            return [sys.executable, "-m", "pytest", "-q", "-rfE", *self.arguments]
        return [
            sys.executable,
            "-m",
            "tests.live",
            "--mongod",
            str(self.member_count),
            *self.arguments,
            "--report",
            str(report),
        ]


CI_RUNS = (
    Run("official and prose tests, replica set of 3", 3, _OFFICIAL_OPTIONS),
    Run("official and prose tests, standalone", 0, _OFFICIAL_OPTIONS),
    Run("tests of the API, replica set of 1", 1, ("tests/api", "--tier", "all")),
    Run("recorded answers, replica set of 1", 1, (_ANSWERS_MODULE,)),
    Run("random commands, replica set of 1", 1, (_FUZZ_MODULE, "--seconds", "60")),
    Run("comparison with PyMongo, replica set of 1", 1, ("tests/differential", "-k", "MONGODB_URI", "--tier", "all")),
)
LONG_RUNS = (
    *CI_RUNS,
    Run("campaign with killed and suspended members", 3, ("--only", campaigns.CAMPAIGN_PART, "--steps", "40")),
    Run("main job", 3, ("--only", campaigns.MAIN_JOB_PART)),
    Run(
        "switch points and busy loop, replica set of 1",
        1,
        ("tests/gevent/test_switch_points.py", "tests/gevent/test_busy_loop.py", "-n", "2", _OWN_SERVERS_OPTION, "1"),
    ),
    Run("TLS", 3, ("--tls", *_CAMPAIGN_OPTIONS)),
    *(Run(f"users, {mechanism}", 3, ("--mechanism", mechanism, *_CAMPAIGN_OPTIONS)) for mechanism in MECHANISMS),
    *(Run(f"compressor {name}", 3, ("--compressor", name, *_CAMPAIGN_OPTIONS)) for name in ("zlib", "snappy", "zstd")),
    # This run uses a standalone, because the members of a replica set of MongoDB 6.0.5 vote on index
    # builds without an API version.
    Run(
        "Stable API required, standalone with users",
        0,
        ("--api-version", "1", "--mechanism", MECHANISMS[1], *_OFFICIAL_OPTIONS),
    ),
)


def _runs_with_program(path: str) -> list[Run]:
    try:
        version = ".".join(map(str, find_program(path).version))
    except EmbeddedDatabaseError as error:
        print(f"skipped: {path}: {str(error).splitlines()[0]}", flush=True)
        return []
    return [Run(f"MongoDB {version}, replica set of 3", 3, ("--program", path, *_CAMPAIGN_OPTIONS))]


def perform(run: Run) -> bool:
    """Perform a run, print its outcome and lines of its output, and return True if no case fails."""
    begin = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            completed = _complete_process(run, Path(folder))
        except subprocess.TimeoutExpired:
            print(f"== {run.name}: did not end within {_TIME_LIMIT:g} s", flush=True)
            return False
    lines = [line for line in completed.stdout.splitlines() if not line.startswith("libmongocrypt")]
    output = "\n".join(lines[-60:] if completed.returncode else _summary(lines))
    outcome = "failed" if completed.returncode else "passed"
    print(f"== {run.name}: {outcome} after {monotonic() - begin:.0f} s\n{output}", flush=True)
    return completed.returncode == 0


def _complete_process(run: Run, folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "timeout": _TIME_LIMIT}
    command = run.command(folder)
    if "tests.live" in command or _OWN_SERVERS_OPTION in command:
        return subprocess.run(command, check=False, **settings)  # type: ignore[call-overload, no-any-return]
    with run_mongod(run.member_count, accepts_version_2=False) as deployment:
        command += ["--check", deployment.uri] if _ANSWERS_MODULE in command else []
        command += ["--uri", deployment.uri] if _FUZZ_MODULE in command else []
        environment = {**os.environ, URI_VARIABLE: deployment.uri}
        return subprocess.run(command, check=False, env=environment, **settings)  # type: ignore[call-overload, no-any-return]


def _summary(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if (" passed" in line or " differences" in line) and not line.startswith(" ")]


def main() -> int:
    """Perform the selected runs, and return 1 if a run fails, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.runs", description=__doc__)
    parser.add_argument("which", choices=("ci", "long"), help="ci: ten minutes; long: everything")
    parser.add_argument("--only", default="", help="runs with these words in their names")
    parser.add_argument("--program", action="append", default=[], help="path of a further mongod, repeatable")
    parser.add_argument("--parallel", type=int, default=2, metavar="N", help="concurrent runs (2)")
    options = parser.parse_args()
    program = find_program()
    print(f"mongod {'.'.join(map(str, program.version))}: {program.path}", flush=True)
    runs = list(CI_RUNS if options.which == "ci" else LONG_RUNS)
    further_paths = [*options.program, *filter(None, os.environ.get(PROGRAMS_VARIABLE, "").split(os.pathsep))]
    runs += [run for path in further_paths for run in _runs_with_program(path)]
    with ThreadPoolExecutor(options.parallel) as pool:
        outcomes = list(pool.map(perform, [run for run in runs if options.only in run.name]))
    failed_count = outcomes.count(False)
    print(f"runs: {len(outcomes) - failed_count} passed, {failed_count} failed")
    return int(failed_count > 0)


if __name__ == "__main__":
    sys.exit(main())
