"""Run PyMongo's tests with one driver on one deployment. Each job is a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from gmongo.testing import DeploymentProcess, EmbeddedReplicaSet
from tests.pymongo_suite.sources import create_renamed_copy

DRIVERS = ("pymongo", "gmongo")
DEPLOYMENTS: Mapping[str, Callable[[], DeploymentProcess | EmbeddedReplicaSet]] = {
    "standalone": partial(DeploymentProcess, "--standalone"),
    "replica set": partial(DeploymentProcess, "--replica-set", "3"),
    "sharded": partial(DeploymentProcess, "--sharded", "2"),
    "load balanced": partial(DeploymentProcess, "--load-balanced", "2"),
    "mongod": partial(EmbeddedReplicaSet, 3, name="repl0"),
}
"""Functions that start the deployments: simulated deployments, and a replica set of real members."""
SIMULATED = tuple(name for name in DEPLOYMENTS if name != "mongod")

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
# The timeout is long: after a state change error, a retry without a replica set waits up to 10 s.
_JOB_TIMEOUT = 1800
"""Timeout of one job in seconds."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of one test.

    :param kind: ``"passed"``, ``"skipped"`` or ``"failed"``.
    :param text: Text of the error, or reason why the test was skipped.
    """

    kind: str
    text: str = ""


@dataclass(frozen=True)
class Job:
    """A process that runs tests with one driver on one deployment.

    :param driver: One of :data:`DRIVERS`.
    :param deployment: One of :data:`DEPLOYMENTS`.
    :param number: Unique number of the job among the jobs of this driver and deployment.
    :param files: Files that contain the tests.
    :param only: Names of the tests to run. If `only` is empty, the job runs all tests of the files.
    """

    driver: str
    deployment: str
    number: int
    files: tuple[str, ...]
    only: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Return the name of the job for file names and messages."""
        return f"{self.driver} {self.deployment} {self.number}".replace(" ", "-")

    def run(self, folder: Path, output: Path) -> dict[str, Outcome]:
        """Run the tests, and return their outcomes, keyed by the names of the tests.

        :param folder: Folder with PyMongo's package ``test``.
        :param output: Folder to which the job writes its log and report.
        :raises RuntimeError: The job has timed out, or has not written a report.
        """
        report = output / f"{self.name}.xml"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-c", str(_HERE / "suite.ini"), "--rootdir", str(folder)]
        command += [f"--junitxml={report}", *self.files]
        with (
            DEPLOYMENTS[self.deployment]() as deployment,
            (output / f"{self.name}.log").open("wb") as log,
        ):
            try:
                subprocess.run(
                    command,
                    cwd=folder,
                    env=self._environment(deployment, output),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    timeout=_JOB_TIMEOUT,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"{self.name} did not end within {_JOB_TIMEOUT} s: see {log.name}") from None
        if not report.exists():
            raise RuntimeError(f"{self.name} has no report: see {output / self.name}.log")
        return read_outcomes(report)

    def _environment(self, deployment: DeploymentProcess | EmbeddedReplicaSet, output: Path) -> dict[str, str]:
        host, _, port = deployment.members[0].address.rpartition(":")
        paths = [str(_ROOT), str(create_renamed_copy(output.parent))]
        variables = {"DB_IP": host, "DB_PORT": port, "GMONGO_DRIVER": self.driver, "PYTHONPATH": os.pathsep.join(paths)}
        if self.only:
            names_file = output / f"{self.name}.only"
            names_file.write_text("\n".join(self.only), "utf-8")
            variables["GMONGO_ONLY"] = str(names_file)
        if self.deployment == "load balanced" and isinstance(deployment, DeploymentProcess):
            uri = deployment.uri_of(f"{host}:{port}", loadBalanced="true")
            variables |= {"TEST_LOAD_BALANCER": "1", "SINGLE_MONGOS_LB_URI": uri, "MULTI_MONGOS_LB_URI": deployment.uri}
        return {**os.environ, **variables}


def read_outcomes(report: Path) -> dict[str, Outcome]:
    """Return the outcomes in a report of pytest, keyed by the names of the tests."""
    outcomes_by_name: dict[str, Outcome] = {}
    for case in (
        ElementTree.parse(report).getroot().iterfind(".//testcase[@classname!='']")
    ):  # If a whole file is skipped, its entry has no class name.
        name = f"{case.get('classname', '').removeprefix('test.')}.{case.get('name')}"
        problem = next((each for each in case if each.tag in ("failure", "error", "skipped")), None)
        if problem is None:
            outcomes_by_name.setdefault(name, Outcome("passed"))
            continue
        kind = "skipped" if problem.tag == "skipped" else "failed"
        text = f"{problem.get('message') or ''}\n{problem.text or ''}"
        earlier_outcome = outcomes_by_name.get(name, Outcome("skipped"))
        # If a test and its teardown fail, the first entry describes the test, and the second entry
        # describes the teardown.
        if earlier_outcome.kind == "failed":
            outcomes_by_name[name] = Outcome("failed", earlier_outcome.text + text)
        elif name not in outcomes_by_name or kind == "failed":
            outcomes_by_name[name] = Outcome(kind, text)
    return outcomes_by_name
