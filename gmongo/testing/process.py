"""Run the servers of tests and examples in processes that end with their parent process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import gevent

_SCRIPT_PATH = str(Path(__file__).with_name("tethered.py").absolute())
_POLL_INTERVAL = 0.01
_MAX_OUTPUT_CHARACTERS = 4000


class TetheredProcess:
    """A program in a separate process group. The program ends with this process, even if this process is killed.

    :param target: a Python function (``module:function``) or the absolute path of an executable file.
    :param arguments: the command-line arguments of the program.
    :param scratch: a directory that :meth:`end` removes; by default a new temporary directory.
    :param cwd: the working directory, which is also the first entry of a Python program's module
        search path; by default `scratch`.
    :param environment: environment variables to set in addition to the variables of this process.
    :param pass_fds: file descriptors that a Python function inherits with unchanged numbers. An
        executable file inherits none of the file descriptors.
    """

    def __init__(
        self,
        target: str,
        arguments: Sequence[str],
        *,
        scratch: Path | None = None,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self._scratch = scratch or create_scratch()
        self._output_path = self._scratch / "output.txt"
        self._owner_pid = os.getpid()
        self._ended = False
        command = [sys.executable, _SCRIPT_PATH, str(self._owner_pid), str(self._scratch), target, *arguments]
        settings: dict[str, Any] = {
            "cwd": cwd or self._scratch,
            "env": {**os.environ, **(environment or {})},
            "pass_fds": pass_fds,
            "start_new_session": True,  # Ctrl-C on the terminal sends no signal to the process group
        }
        try:
            # Without monkey-patching, this is Popen of the standard library, which works in every
            # native thread and blocks only briefly. In a monkey-patched process, this is gevent's
            # Popen, which works only with the default event loop.
            with self._output_path.open("wb") as output:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **settings
                )
        except BaseException:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise

    @property
    def pid(self) -> int:
        """The process ID, which is also the number of the process group."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status. Return None while the process runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Send SIGKILL to the process group, and wait until the process ends. The scratch directory remains."""
        # After `poll` reports the end of the process, another process group may get the same number.
        # Therefore no other greenlet may run between `poll` and `killpg`.
        if os.getpid() == self._owner_pid and self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def output(self) -> str:
        """Return the end of the text that the program wrote to standard output and standard error."""
        try:
            text = self._output_path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return text[-_MAX_OUTPUT_CHARACTERS:].strip()

    def end(self, grace: float = 5.0) -> None:
        """Send SIGTERM to the program. If the program still runs after `grace` seconds, kill the process group.

        A second call, and a call in a fork of the process that started the program, do nothing.
        """
        if self._ended or os.getpid() != self._owner_pid:
            return
        self._ended = True
        deadline = monotonic() + grace
        try:
            self._process.terminate()
            while self._process.poll() is None and monotonic() < deadline:
                gevent.sleep(_POLL_INTERVAL)
        finally:  # also ends the program if the wait raises an exception, such as KeyboardInterrupt
            self.kill()
            shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> TetheredProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def create_scratch() -> Path:
    """Create a temporary directory, and return its path."""
    return Path(tempfile.mkdtemp(prefix="gmongo-"))
