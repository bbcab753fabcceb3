"""Run a database server that is a Python program: nx-27017 or SecantusDB."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import gevent

from gmongo.testing.mongod.connection import CommandFailedError, run_command
from gmongo.testing.mongod.program import EmbeddedDatabaseError
from gmongo.testing.process import TetheredProcess, new_scratch

_HOST = "127.0.0.1"
_ATTEMPTS = 5
_CHECK_INTERVAL = 0.02  # seconds
_REPLY_TIMEOUT = 5.0  # seconds
_NOT_OURS = -1
_PORT_IS_TAKEN = "address already in use"


class Engine(NamedTuple):
    """A database product that is a Python program.

    :param name: the name of the product.
    :param target: the function that runs the server, as ``module:function``.
    :param requirement: the argument of ``pip install`` that installs the product.
    :param grace: seconds from SIGTERM to SIGKILL, for a server whose data are not temporary.
    :param arguments: a function that returns the command-line options for a data path, a scratch folder and a port.
    """

    name: str
    target: str
    requirement: str
    grace: float
    arguments: Callable[[Path | None, Path, int], dict[str, str]]

    @property
    def is_installed(self) -> bool:
        """True if the module of the server is installed.

        gmongo does not import the module, because of the licence of the server.
        """
        return importlib.util.find_spec(self.target.partition(".")[0]) is not None


def _nx_arguments(path: Path | None, scratch: Path, port: int) -> dict[str, str]:
    return {
        "--db": str(path or scratch / "data.db"),
        "--host": _HOST,
        "--port": str(port),
        "--log-file": str(scratch / "nx-27017.log"),
        "--pid-file": str(scratch / "nx-27017.pid"),
    }


def _secantus_arguments(path: Path | None, scratch: Path, port: int) -> dict[str, str]:
    data = path or scratch / "data"
    return {"--storage-path": str(data), "--host": _HOST, "--port": str(port), "--cache-size": "256M"}


ENGINES = {
    # nx-27017 sometimes ignores a SIGTERM. A SIGKILL loses no data, because nx-27017 writes each
    # change to the file before the reply.
    "nx": Engine("nx-27017", "nx_27017.nx_27017:main", "gmongo[testing]", 2.0, _nx_arguments),
    "secantus": Engine("SecantusDB", "secantus.cli:main", "secantusdb", 10.0, _secantus_arguments),
}


class PythonServer:
    """A server process of a database product.

    :param engine: the database product.
    :param path: the file or the folder of the data; None means temporary data.
    """

    def __init__(self, engine: Engine, path: Path | None) -> None:
        self._engine, self._path = engine, path
        self._process: TetheredProcess | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """The host and the port, such as ``"127.0.0.1:27017"``."""
        return f"{_HOST}:{self.port}"

    def start(self, deadline: float) -> None:
        """Start the process on a free port, and wait until the server replies to a command.

        :param deadline: the value of ``time.monotonic()`` at which the wait ends.
        :raises EmbeddedDatabaseError: the server ended, or does not reply in time. The error
            message contains the output of the server.
        """
        # Another process may take the port before the server opens the port. In this case, the next
        # attempt uses another port.
        for _attempt in range(_ATTEMPTS):
            self.port = _free_port()
            scratch = new_scratch()
            words = [
                word for option in self._engine.arguments(self._path, scratch, self.port).items() for word in option
            ]
            self._process = TetheredProcess(self._engine.target, words, scratch=scratch)
            if self._becomes_ready(self._process, deadline):
                return
            self._process.end(0.0)
        raise EmbeddedDatabaseError(f"{self._engine.name} found its port in use {_ATTEMPTS} times")

    def end(self) -> None:
        """End the server, and remove its temporary data."""
        if self._process is not None:
            self._process.end(0.0 if self._path is None else self._engine.grace)

    def _becomes_ready(self, process: TetheredProcess, deadline: float) -> bool:
        """Wait for a reply of the server. Return False if a process other than the server uses the port."""
        name = self._engine.name
        while True:
            answering = answering_process(self.port, min(deadline - monotonic(), _REPLY_TIMEOUT))
            if answering is not None:
                return answering == process.pid
            output = f"Its output was:\n{process.output() or '(nothing)'}"
            if process.poll() is not None:
                if _PORT_IS_TAKEN in output.lower():
                    return False
                raise EmbeddedDatabaseError(f"{name} ended before it was ready. {output}")
            if monotonic() >= deadline:
                raise EmbeddedDatabaseError(f"{name} did not reply in time. {output}")
            gevent.sleep(_CHECK_INTERVAL)


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def answering_process(port: int, timeout: float) -> int | None:
    """Return the process ID in the ``serverStatus`` reply of the server on `port`.

    Return None if no server replies, and -1 if the reply contains no process ID.
    """
    try:
        answer = run_command((_HOST, port), {"serverStatus": 1}, timeout=timeout).get("pid")
    except CommandFailedError as error:
        return None if isinstance(error.__cause__, (OSError, EOFError)) else _NOT_OURS
    return answer if isinstance(answer, int) else _NOT_OURS
