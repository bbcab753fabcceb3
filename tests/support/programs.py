"""Programs in processes of their own, while the scripted servers of this process go on."""

from __future__ import annotations

import os
import subprocess
import sys

import gevent


def run_program(program: str, *arguments: str) -> str:
    """Run a program that uses gmongo; returns what it printed.

    A native thread starts it: ``gevent.subprocess`` would fork, and other threads may be running.
    """
    done: subprocess.CompletedProcess[str] = gevent.get_hub().threadpool.apply(_run, (program, arguments))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _run(program: str, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
