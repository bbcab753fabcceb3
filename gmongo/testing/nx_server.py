"""Run nx-27017, a database server that is a Python program."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path
from time import monotonic

import gevent

from gmongo.testing.mongod.connection import CommandFailedError, run_command
from gmongo.testing.mongod.program import EmbeddedDatabaseError
from gmongo.testing.process import TetheredProcess, create_scratch

_HOST = "127.0.0.1"
_MAX_ATTEMPTS = 5
_CHECK_INTERVAL = 0.02  # seconds
_REPLY_TIMEOUT = 5.0  # seconds
# Seconds from SIGTERM to SIGKILL. nx-27017 sometimes ignores a SIGTERM. A SIGKILL loses no data,
# because nx-27017 writes each change to the file before the reply.
_GRACE_SECONDS = 2.0


class NxServer:
    """An nx-27017 process. `path` is the SQLite file, or None for temporary data."""

    def __init__(self, path: Path | None) -> None:
        if importlib.util.find_spec("nx_27017") is None:
            raise EmbeddedDatabaseError(
                "the embedded database needs nx-27017, which is not installed: run pip install 'gmongo[testing]', or "
                "set MONGODB_URI to the connection string of a database"
            )
        self._path = path
        self._process: TetheredProcess | None = None
        self.port = 0

    def start(self, deadline: float) -> None:
        """Start the process on a free port, and wait until the server replies to a command.

        :param deadline: the value of ``time.monotonic()`` at which the wait ends.
        """
        # Another process may take the port before the server opens the port. In this case, the next
        # attempt uses another port.
        for _attempt in range(_MAX_ATTEMPTS):
            self.port = _find_free_port()
            scratch = create_scratch()
            arguments = ["--db", str(self._path or scratch / "data.db"), "--host", _HOST, "--port", str(self.port)]
            arguments += ["--log-file", str(scratch / "nx-27017.log"), "--pid-file", str(scratch / "nx-27017.pid")]
            self._process = TetheredProcess("nx_27017.nx_27017:main", arguments, scratch=scratch)
            if self._becomes_ready(self._process, deadline):
                return
            self._process.end(0.0)
        raise EmbeddedDatabaseError(f"nx-27017 found its port in use {_MAX_ATTEMPTS} times")

    def end(self) -> None:
        """End the server, and remove its temporary data."""
        if self._process is not None:
            self._process.end(0.0 if self._path is None else _GRACE_SECONDS)

    def _becomes_ready(self, process: TetheredProcess, deadline: float) -> bool:
        """Wait for a reply of the server. Return False if a process other than the server uses the port."""
        while True:
            pid = find_process_id(self.port, min(deadline - monotonic(), _REPLY_TIMEOUT))
            if pid is not None:
                return pid == process.pid
            output = f"Its output was:\n{process.output() or '(nothing)'}"
            if process.poll() is not None:
                if "address already in use" in output.lower():
                    return False
                raise EmbeddedDatabaseError(f"nx-27017 ended before it was ready. {output}")
            if monotonic() >= deadline:
                raise EmbeddedDatabaseError(f"nx-27017 did not reply in time. {output}")
            gevent.sleep(_CHECK_INTERVAL)


def _find_free_port() -> int:
    with socket.create_server((_HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def find_process_id(port: int, timeout: float) -> int | None:
    """Return the process ID that the server on `port` reports, -1 for a reply without ID, or None without a reply."""
    try:
        pid = run_command((_HOST, port), {"serverStatus": 1}, timeout=timeout).get("pid")
    except CommandFailedError as error:
        return None if isinstance(error.__cause__, (OSError, EOFError)) else -1
    return pid if isinstance(pid, int) else -1
