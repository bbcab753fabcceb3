"""Run the tests of a library with gmongo or with PyMongo.

Each run has its own process and deployment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from gmongo.testing import DeploymentProcess

PLUGINS_FOLDER = Path(__file__).parent / "plugins"
# For each driver, the beginning of a command that monkey-patches the standard library and runs a
# module.
COMMAND_PREFIXES = {
    "pymongo": (sys.executable, "-m", "gevent.monkey", "--module"),
    "gmongo": (sys.executable, "-m", "gmongo", "-m"),
}
_PYTEST_COMMAND = ("pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--timeout", "60", "--junitxml")
_TIMEOUT = 900  # Time limit in seconds for all tests of a library.


def run_with_driver(
    driver: str,
    tests: Sequence[str],
    folder: Path,
    log: Path,
    port: int = 0,
    runner: Sequence[str] = (),
    deployment: Sequence[str] = ("--standalone",),
) -> tuple[set[str], set[str]]:
    """Run tests with one driver.

    Return the names of the tests that pass, and the names of the tests that do not pass.

    :param driver: ``"gmongo"`` or ``"pymongo"``.
    :param tests: Arguments of the runner that select the tests.
    :param folder: Working directory of the process.
    :param log: File to which the output of the process is written.
    :param port: Port of the server, or 0 for any free port.
    :param runner: Name and arguments of a module that runs the tests and writes a report. If this
        parameter is empty, pytest runs the tests.
    :param deployment: Command line options of the simulated deployment.
    """
    report = log.with_suffix(".xml")
    variables = {"GMONGO_DRIVER": driver, "GMONGO_REPORT": str(report)}
    port_options = ("--port", str(port)) if port else ()
    with DeploymentProcess(*deployment, *port_options) as server, log.open("wb") as output:
        subprocess.run(
            [*COMMAND_PREFIXES[driver], *(runner or (*_PYTEST_COMMAND, str(report))), *tests],
            cwd=folder,
            env=_environment({"MONGODB_URI": server.uri, **variables}),
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT,
            check=False,
        )
    return _read_report(report) if report.exists() else (set(), set())


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join([str(PLUGINS_FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "C_FORCE_ROOT": "1", **variables}


def _read_report(report: Path) -> tuple[set[str], set[str]]:
    passed, not_passed = set(), set()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        outcome_tags = {child.tag for child in case} & {"failure", "error", "skipped"}
        (not_passed if outcome_tags else passed).add(f"{case.get('classname')}::{case.get('name')}")
    return passed, not_passed - passed
