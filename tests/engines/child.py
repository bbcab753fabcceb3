"""Runs the program of its command line, as a child of a process that ends with the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def main() -> int:
    """Its exit status. A signal to this process ends the program, too."""
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    return subprocess.call(sys.argv[1:])
