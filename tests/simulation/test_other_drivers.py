"""Tests with MongoDB's drivers for Go, Java, Node and Rust as clients of simulated deployments.

``tox -e drivers`` builds the programs of the drivers, and runs the tests. The folder ``drivers``
has one program for each driver. Each program receives a URI and the kind of deployment, connects
and prints ``ready``. If the input has a line ``read``, the program finds a document and prints a
field. If the input has a line ``write ID``, the program inserts a document and prints its ID.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from gmongo.testing import DeploymentProcess

SOURCES = Path(__file__).with_name("drivers")
BUILD_FOLDER = os.environ.get("OTHER_DRIVERS", "")
SETTINGS_BY_KIND = {"standalone": {}, "replica_set": {}, "sharded": {"mongos": 1}, "load_balanced": {"services": 1}}

pytestmark = pytest.mark.skipif(not BUILD_FOLDER, reason="OTHER_DRIVERS names no folder for the built programs")


class Language(NamedTuple):
    """Commands that build and start the program of one driver.

    :ivar tool: the program that must be installed.
    :ivar build: the command that builds the driver's program in a copy of its folder.
    :ivar command: the command that starts the driver's program.
    """

    tool: str
    build: str
    command: str


LANGUAGES = {
    "go": Language("go", "go mod tidy && go build -o orders .", "./orders"),
    "java": Language(
        "mvn",
        "mvn -q -B compile dependency:copy-dependencies -DoutputDirectory=target/libraries",
        "java -cp target/classes:target/libraries/* Orders",
    ),
    "node": Language("npm", "npm install --silent", "node main.mjs"),
    "rust": Language("cargo", "cargo build --release", "target/release/orders"),
}


@pytest.fixture(scope="module", params=LANGUAGES)
def command(request) -> list[str]:
    """Build the program of one language, and return the command that starts the program."""
    language = LANGUAGES[request.param]
    if shutil.which(language.tool) is None:
        pytest.skip(f"there is no {language.tool}")
    folder = Path(BUILD_FOLDER, request.param)
    shutil.copytree(SOURCES / request.param, folder, dirs_exist_ok=True)
    subprocess.run(language.build, shell=True, cwd=folder, check=True, timeout=3600)
    return ["env", "-C", str(folder), *language.command.split()]


class Client:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, line: str) -> str:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.read_line()

    def read_line(self) -> str:
        line = self._process.stdout.readline().strip()
        if not line:
            pytest.fail(self._process.communicate(timeout=60)[1][-2000:])
        return line


@contextmanager
def running_program(command: list[str], *arguments: str) -> Iterator[Client]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, *arguments], text=True, **pipes) as process:
        try:
            client = Client(process)
            assert client.read_line() == "ready"
            yield client
            process.stdin.close()
            assert process.wait(60) == 0, process.stderr.read()[-2000:]
        finally:
            process.kill()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", SETTINGS_BY_KIND)
def test_other_driver_continues_after_closed_connections(command: list[str], kind: str) -> None:
    with (
        getattr(DeploymentProcess, kind)(**SETTINGS_BY_KIND[kind]) as deployment,
        running_program(command, deployment.uri, kind) as client,
    ):
        for member in deployment.members:
            member.drop_connections()
        assert client("read") == "1"
        first = deployment.members.primary if deployment.members.has_primary else deployment.members[0]
        # The server closes the connection after the first 20 bytes of the reply to the next find.
        first.drop_after(20, "find")
        assert client("read") == "1"
        if kind != "standalone":  # a standalone does not support retryable writes
            first.drop_after(0, "insert")
        assert client("write afterwards") == "afterwards"
        if kind == "replica_set":
            deployment.members.primary.step_down()
            assert client("write elsewhere") == "elsewhere"
        inserts = [each.body["documents"] for each in deployment.commands.named("insert")]
        assert inserts.count([{"_id": "afterwards"}]) == (1 if kind == "standalone" else 2)
