"""Server processes for tests and examples, which never outlive the process that started them."""

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
from types import TracebackType
from typing import Any

import gevent

_PROGRAM = str(Path(__file__).with_name("tethered.py").absolute())
_POLL_EVERY = 0.01
_TAIL = 4000


class TetheredProcess:
    """A Python program that ends with this process, even if this one is killed; it has its own process group.

    It works with and without monkey-patching, and lets other greenlets run while it waits.

    :param target: what it runs, as ``module:function``.
    :param arguments: of its command line.
    :param scratch: a directory of its own, which is removed when it ends; a temporary one by default.
    :param cwd: its working directory, and the first on its module search path; `scratch` by default.
    :param environment: variables to set besides those of this process.
    :param pass_fds: file descriptors that it inherits under their numbers.
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
        self._scratch = scratch or new_scratch()
        self._output_path = self._scratch / "output.txt"
        self._owner = os.getpid()
        self._ended = False
        command = [sys.executable, _PROGRAM, str(self._owner), str(self._scratch), target, *arguments]
        settings: dict[str, Any] = {
            "cwd": cwd or self._scratch,
            "env": {**os.environ, **(environment or {})},
            "pass_fds": pass_fds,
            "start_new_session": True,  # a group of its own, which Ctrl-C on the terminal does not reach
        }
        try:
            self._process = self._spawn(command, settings)
        except BaseException:
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise

    def _spawn(self, command: list[str], settings: dict[str, Any]) -> subprocess.Popen[bytes]:
        # The standard library's Popen starts and polls without blocking for long, and in any native thread, which
        # gevent's does not. In a patched process this is gevent's.
        with self._output_path.open("wb") as output:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **settings
            )

    @property
    def pid(self) -> int:
        """Its process ID, which is also that of its process group."""
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """The last of what it wrote to its standard output and standard error."""
        try:
            text = self._output_path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return text[-_TAIL:].strip()

    def end(self, grace: float = 5.0) -> None:
        """End it: SIGTERM first, and SIGKILL for the whole group when it is gone or `grace` is over.

        Does nothing if it has been ended, and nothing in a fork of the process that started it.

        :param grace: seconds that it is given to end by itself.
        """
        if self._ended or os.getpid() != self._owner:
            return
        self._ended = True
        deadline = monotonic() + grace
        try:
            self._process.terminate()
            while self._process.poll() is None and monotonic() < deadline:
                gevent.sleep(_POLL_EVERY)
        finally:  # also when the wait is interrupted
            self._kill()

    def _kill(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # no process is left in the group
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._process.wait()

    def __enter__(self) -> TetheredProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def new_scratch() -> Path:
    """A new temporary directory."""
    return Path(tempfile.mkdtemp(prefix="gmongo-"))
