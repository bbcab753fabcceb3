"""Programs in processes of their own."""

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
    """The variables of this process, with the project importable, and `uri` as the database."""
    inherited = {name: value for name, value in os.environ.items() if name != URI_VARIABLE}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**inherited, "PYTHONPATH": path, "COLUMNS": "120", **({URI_VARIABLE: uri} if uri else {})}


def run_python(*arguments: str, uri: str | None = None, timeout: float = TIMEOUT) -> subprocess.CompletedProcess[str]:
    """Run ``python`` with these arguments, in the root of the project, as a user does, to its end."""
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
    """Run a program that uses gmongo, while the servers of this process go on; returns what it printed.

    A native thread starts it: ``gevent.subprocess`` would fork, and other threads may be running.
    """
    run = gevent.get_hub().threadpool.apply
    done: subprocess.CompletedProcess[str] = run(run_python, ("-c", program, *arguments))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
