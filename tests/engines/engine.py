"""Build each engine, and control the process of an engine.

The environment variable ``GMONGO_ENGINES`` contains the path of the folder for the builds. The tests
start each build as a separate process, and import no build, because SecantusDB is under the GPL.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import NamedTuple, TypeVar

import gevent
import pymongo
import pymongo.errors

from gmongo.testing.process import TetheredProcess

ENGINES_VARIABLE = "GMONGO_ENGINES"
_Row = TypeVar("_Row")
_SOURCES = Path(__file__).with_name("sources")
_ROOT = Path(__file__).resolve().parents[2]
_BUILD_LIMIT = 900
_START_LIMIT = 60.0
_REPLY_TIMEOUT = 5
_HOST = "127.0.0.1"


def rows_to_run(rows: list[_Row]) -> list[_Row]:
    """Return `rows` if ``GMONGO_ENGINES`` is set.

    Without the variable, return only the first row, so that pytest reports one skipped test.
    """
    return rows if ENGINES_VARIABLE in os.environ else rows[:1]


class MissingEngineError(Exception):
    """Raised if the engine cannot run on this machine. The error text contains the reason."""


class Engine(NamedTuple):
    """A server other than MongoDB that uses MongoDB's wire protocol.

    :param name: name of the engine.
    :param version: version of the built engine.
    :param program: name of the program on the ``PATH`` that builds the engine.
    :param build: function that builds the engine in a folder.
    :param make_command: function that receives the build folder, a data folder and a port, and
        returns the command line of the server.
    """

    name: str
    version: str
    program: str
    build: Callable[[Path], None]
    make_command: Callable[[Path, Path, int], list[str]]

    def build_once(self, builds_folder: Path) -> Path:
        """Build the engine if no build of this version exists.

        Return the folder that contains the build.

        :raises MissingEngineError: The program that builds the engine is missing, or the build fails.
        """
        if shutil.which(self.program) is None:
            raise MissingEngineError(f"{self.name} is built with {self.program}, which is not on the path")
        folder = builds_folder / f"{self.name}-{self.version}"
        marker = folder / "built"
        if not marker.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self.build(folder)
            marker.touch()
        return folder


def run(*command: str, cwd: Path, **variables: str) -> None:
    try:
        result = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_BUILD_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingEngineError(f"{command[0]}: {error}") from error
    if result.returncode:
        lines = (result.stderr + result.stdout).strip().splitlines()
        raise MissingEngineError(f"{' '.join(command[:3])} fails: {lines[-1] if lines else result.returncode}")


def _copy_sources(folder: Path, *names: str) -> None:
    for name in names:
        shutil.copy(_SOURCES / name, folder)


def _build_secantus(folder: Path) -> None:
    run(sys.executable, "-m", "venv", str(folder / "venv"), cwd=folder)
    run(str(folder / "venv/bin/pip"), "install", "--quiet", f"secantusdb=={_SECANTUS_VERSION}", cwd=folder)


def _build_ferret(folder: Path) -> None:
    _copy_sources(folder, "go.mod", "main.go")
    run("go", "build", "-mod=mod", "-p", "2", "-o", "engine", ".", cwd=folder, GOFLAGS="")


def _build_java(folder: Path) -> None:
    _copy_sources(folder, "pom.xml", "Main.java")
    run("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars", cwd=folder)
    run("javac", "-cp", "jars/*", "Main.java", cwd=folder)


def _build_nx(folder: Path) -> None:
    if importlib.util.find_spec("nx_27017") is None:
        raise MissingEngineError("nx-27017 is not installed: pip install gmongo[testing]")


_SECANTUS_VERSION = "0.7.0b3"
ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "secantus",
            _SECANTUS_VERSION,
            "python3",
            _build_secantus,
            lambda built, data, port: [
                str(built / "venv/bin/python"),
                "-m",
                "secantus",
                "--enable-test-commands",
                "--cache-size=256M",
                f"--host={_HOST}",
                f"--port={port}",
                f"--storage-path={data}",
            ],
        ),
        Engine(
            "ferretdb",
            "1.24.0",
            "go",
            _build_ferret,
            lambda built, data, port: [str(built / "engine"), str(data), f"{_HOST}:{port}"],
        ),
        Engine(
            "java",
            "1.47.0",
            "mvn",
            _build_java,
            lambda built, data, port: ["java", "-Xmx1g", "-cp", f"{built}/jars/*:{built}", "Main", str(port)],
        ),
        Engine(
            "nx",
            "installed",
            "python3",
            _build_nx,
            lambda built, data, port: [
                sys.executable,
                "-c",
                "from nx_27017.nx_27017 import main; main()",
                f"--db={data}/data.db",
                f"--host={_HOST}",
                f"--port={port}",
                f"--log-file={data}/log",
                f"--pid-file={data}/pid",
            ],
        ),
    )
}


class Server:
    """Context manager of the process of an engine.

    A restarted process has the port and the data of the previous process.

    :param engine: engine of the process.
    :param build_folder: folder that contains the build.
    :param data_folder: folder in which the server stores its data.
    """

    def __init__(self, engine: Engine, build_folder: Path, data_folder: Path) -> None:
        self.engine = engine
        with socket.create_server((_HOST, 0)) as listener:
            self.address: tuple[str, int] = listener.getsockname()[:2]
        self.uri = f"mongodb://{_HOST}:{self.address[1]}/?directConnection=true"
        self._command = engine.make_command(build_folder, data_folder, self.address[1])
        self._process: TetheredProcess | None = None

    def start(self) -> None:
        """Start the process, and wait for a reply to ping.

        :raises MissingEngineError: The process ends, does not reply in time, or sends a reply that
            PyMongo rejects.
        """
        program, *arguments = self._command
        self._process = process = TetheredProcess(shutil.which(program) or program, arguments, cwd=_ROOT)
        deadline = monotonic() + _START_LIMIT
        while not self._replies_to_ping():
            if process.poll() is not None or monotonic() > deadline:
                output = process.output()
                self.stop()
                raise MissingEngineError(f"{self.engine.name} does not reply. Last output: {output[-300:]}")
            gevent.sleep(0.05)

    def _replies_to_ping(self) -> bool:
        try:
            with pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=1000, connectTimeoutMS=1000) as client:
                client.admin.command("ping")
        except pymongo.errors.ConnectionFailure:
            return False
        except pymongo.errors.PyMongoError as error:
            # PyMongo rejects the reply of the engine.
            raise MissingEngineError(f"{self.engine.name} replies {error}") from error
        return True

    def restart_if_hung(self) -> bool:
        """Restart the process if PyMongo cannot list the databases of the server.

        :returns: True if the process was restarted.
        """
        limit = 1000 * _REPLY_TIMEOUT
        with pymongo.MongoClient(self.uri, socketTimeoutMS=limit, serverSelectionTimeoutMS=limit) as client:
            try:
                client.list_database_names()
            except pymongo.errors.ConnectionFailure:
                self.kill()
                self.start()
                return True
        return False

    def signal(self, number: int) -> None:
        """Send a signal to the process group of the engine."""
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        if self._process is not None:
            self._process.end(0.0)
            self._process = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
