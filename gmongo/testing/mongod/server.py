"""Run one `mongod` in a separate process."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import gevent

from gmongo.testing.mongod.connection import run_command
from gmongo.testing.mongod.program import EmbeddedDatabaseError, Program
from gmongo.testing.mongod.settings import HOST, Settings
from gmongo.testing.process import TetheredProcess, create_scratch

_CHECK_INTERVAL = 0.02  # seconds
_SHOWN_LOG_LINE_COUNT = 12
_START_ID, _LISTENING_ID = 4615611, 23016  # the IDs of two messages in the log of mongod
_FOLDER_ADVICE = "Let `path` or TMPDIR name a folder that this user may write to."
_REMEDIES = (
    ("address already in use", "Another program uses the port. End that program, or omit the setting `port`."),
    ("no space left", "The disk is full. Free some space, or let `path` or TMPDIR name a folder on another disk."),
    ("permission denied", _FOLDER_ADVICE),
)


class Server:
    """One `mongod` process.

    :meth:`kill`, :meth:`stop` and :meth:`restart` change neither the data nor the port.

    :param program: the executable file and its version.
    :param settings: the settings of the server.
    :param path: the folder of the data files; None means a temporary folder, which :meth:`end`
        removes.
    :param replica_set: the name of the replica set; None means a standalone.
    :param port: the TCP port; 0 means any free port.

    :ivar pid: the process ID of the last started `mongod`; None before the first start.
    :ivar is_stopped: True from :meth:`stop` to :meth:`resume`, :meth:`kill` or :meth:`restart`.
    """

    def __init__(
        self,
        program: Program,
        settings: Settings,
        path: Path | None = None,
        replica_set: str | None = None,
        port: int = 0,
    ) -> None:
        self._program, self._settings, self._replica_set = program, settings, replica_set
        self._scratch = create_scratch()
        self._data_folder = path or self._scratch / "data"
        self._is_temporary = path is None
        self._process: TetheredProcess | None = None
        self.port = port
        self.pid: int | None = None
        self.is_stopped = False

    @property
    def address(self) -> str:
        """The host and the port, such as ``"127.0.0.1:27017"``."""
        return f"{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        """True if the process exists. A process that :meth:`stop` suspended also exists."""
        return self._process is not None and self._process.poll() is None

    def start(self, deadline: float) -> None:
        """Start the process, and wait up to `deadline` until the server accepts connections."""
        self.launch()
        self.await_connections(deadline)

    def launch(self) -> None:
        """Start the process."""
        try:
            self._data_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EmbeddedDatabaseError(f"the data folder cannot be created: {error}. {_FOLDER_ADVICE}") from error
        folders = self._data_folder, self._scratch
        arguments = self._settings.create_arguments(self._program.version, *folders, self.port, self._replica_set)
        self._process = TetheredProcess(str(self._program.path), arguments, scratch=self._scratch)

    def await_connections(self, deadline: float) -> None:
        """Wait up to `deadline` until the server accepts connections."""
        while True:
            has_ended = not self.is_running
            log = self._read_log()
            listening_message = next((line for line in log if line.get("id") == _LISTENING_ID), None)
            if listening_message is not None and not has_ended:
                self.port = listening_message["attr"]["port"]
                self.pid = next(line["attr"]["pid"] for line in log if line.get("id") == _START_ID)
                return
            if has_ended:
                raise EmbeddedDatabaseError(f"mongod ended during its start. {self._describe_log(log)}")
            if monotonic() > deadline:
                raise EmbeddedDatabaseError(f"mongod did not accept connections in time. {self._describe_log(log)}")
            gevent.sleep(_CHECK_INTERVAL)

    def require_api_version(self) -> None:
        """Set the server parameter ``requireApiVersion``, if the settings require a version of the Stable API."""
        # The command line does not set the parameter, because members send each other commands
        # without a version during the initiation of a replica set.
        if self._settings.require_api_version:
            self.command({"setParameter": 1, "requireApiVersion": True})

    def create_users(self, member_count: int = 1) -> None:
        """Create the users of the settings, and wait until `member_count` members have stored each user."""
        for number, (name, password) in enumerate(self._settings.users.items()):
            command = {"createUser": name, "pwd": password, "roles": ["root"], "writeConcern": {"w": member_count}}
            self.command(command, without_credentials=number == 0)  # no user exists before the first command

    def command(self, command: Mapping[str, Any], *, without_credentials: bool = False) -> dict[str, Any]:
        """Run a command on the database ``admin``, and return the reply.

        :param without_credentials: True to send the command without credentials.
        :raises CommandFailedError: the server replied with an error, or sent no reply.
        """
        settings, credentials = self._settings, None if without_credentials else self._settings.credentials
        version = "1" if settings.require_api_version else None
        address, ca_file = (HOST, self.port), settings.ca_file
        return run_command(address, command, credentials=credentials, ca_file=ca_file, api_version=version)

    def kill(self) -> None:
        """Send SIGKILL to the server, and wait until the process ends."""
        if self._process is not None:
            self._process.kill()
            self.is_stopped = False

    def stop(self) -> None:
        """Suspend the process with SIGSTOP. The server sends no replies until :meth:`resume`.

        The connections remain open. On Linux, the method returns when all threads of the server are
        suspended.
        """
        self._send_signal(signal.SIGSTOP)
        self.is_stopped = True
        # Another greenlet may call resume() or kill() during the wait.
        while (
            self.is_stopped
            and self.is_running
            and not all(map(_is_suspended, Path(f"/proc/{self.pid}/task").glob("*/stat")))
        ):
            gevent.sleep(_CHECK_INTERVAL)

    def resume(self) -> None:
        """Send SIGCONT to continue a process that :meth:`stop` suspended."""
        self._send_signal(signal.SIGCONT)
        self.is_stopped = False

    def restart(self, timeout: float = 60.0) -> None:
        """End the server if the server runs, and start a new process with the same data and port.

        :param timeout: seconds until the server must accept connections; 60 by default.
        :raises EmbeddedDatabaseError: the new process ended, or does not accept connections in time.
        """
        deadline = monotonic() + timeout
        if self.is_running:
            self.resume()
            self._send_signal(signal.SIGTERM)
            while self.is_running and monotonic() < deadline:
                gevent.sleep(_CHECK_INTERVAL)
            self.kill()
        self.start(deadline)
        hello, is_member = {"hello": 1}, self._replica_set is not None
        while is_member and "me" not in self.command(hello, without_credentials=True) and monotonic() < deadline:
            gevent.sleep(_CHECK_INTERVAL)
        self.require_api_version()

    def step_down(self, seconds: int = 10) -> None:
        """Make the primary step down.

        :param seconds: the time in seconds during which the member cannot become primary; 10 by
            default.
        :raises CommandFailedError: the server is not the primary, or sent no reply.
        """
        self.command({"replSetStepDown": seconds, "force": True})

    def end(self, grace: float = 10.0) -> None:
        """End the server, and remove temporary data.

        :param grace: seconds from SIGTERM to SIGKILL, in which the server writes its data files. A
            server with temporary data receives SIGKILL immediately.
        """
        if self._process is None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        else:
            self._process.end(0.0 if self._is_temporary else grace)

    def _send_signal(self, signal_number: int) -> None:
        # If `mongod` has ended, another process may have the same ID. While the parent of `mongod` runs, the process
        # group of the parent contains only `mongod` and the parent. Therefore the check of the group proves that the
        # signal reaches `mongod`.
        if not self.is_running or self.pid is None or self._process is None:
            raise EmbeddedDatabaseError(f"the server {self.address} is not running")
        try:
            if os.getpgid(self.pid) == self._process.pid:
                os.kill(self.pid, signal_number)
        except ProcessLookupError:
            raise EmbeddedDatabaseError(f"the server {self.address} has exited") from None

    def _read_log(self) -> list[dict[str, Any]]:
        try:
            text = (self._scratch / "output.txt").read_text("utf-8", "replace")
        except OSError:
            return []
        return [_parse_log_line(line) for line in text.splitlines()]

    def _describe_log(self, log: list[dict[str, Any]]) -> str:
        errors = [line for line in log[:-_SHOWN_LOG_LINE_COUNT] if line.get("s") in ("E", "F")]
        lines = [f"{line['msg']} {line.get('attr') or ''}".strip() for line in [*errors, *log[-_SHOWN_LOG_LINE_COUNT:]]]
        text = "\n".join(line[:500] for line in lines)
        remedy = next((remedy for phrase, remedy in _REMEDIES if phrase in text.lower()), "")
        return f"{remedy} The log of mongod ends with:\n{text or '(nothing)'}".strip()

    def __repr__(self) -> str:
        return f"<Server {self.address}{'' if self.is_running else ' (not running)'}>"


def _is_suspended(stat_file: Path) -> bool:
    """Return True if a thread is suspended (state T in its ``stat`` file) or has ended."""
    try:
        return stat_file.read_text().rpartition(") ")[2].startswith("T")
    except OSError:
        return True


def _parse_log_line(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:  # a line that the dynamic loader wrote, or an incomplete line
        return {"msg": line}
    return entry if isinstance(entry, dict) and "msg" in entry else {"msg": line}
