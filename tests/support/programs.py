"""Run Python programs in child processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gevent

from gmongo.testing import URI_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 90


def environment(uri: str | None = None) -> dict[str, str]:
    """Return environment variables for a program that imports gmongo and connects to `uri`."""
    inherited = {name: value for name, value in os.environ.items() if name != URI_VARIABLE}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**inherited, "PYTHONPATH": path, "COLUMNS": "120", **({URI_VARIABLE: uri} if uri else {})}


def run_python(*arguments: str, uri: str | None = None, timeout: float = TIMEOUT) -> subprocess.CompletedProcess[str]:
    """Run ``python`` in the root folder of the repository, and return the completed process."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(uri),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run_program(program: str, *arguments: str) -> str:
    """Run the source code `program` in a child process, and return its standard output.

    The call blocks only the current greenlet.
    """
    # A fork by `gevent.subprocess` is unsafe in a process with threads. `subprocess` in a native
    # thread is safe.
    run = gevent.get_hub().threadpool.apply
    completed: subprocess.CompletedProcess[str] = run(run_python, ("-c", program, *arguments))
    assert (completed.returncode, completed.stderr) == (0, "")
    return completed.stdout
