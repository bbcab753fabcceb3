"""The script of :class:`~gmongo.testing.process.TetheredProcess`: run a program that ends with its parent process.

This file runs as a script. The script imports only the standard library, not gevent or the driver.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any

_CHECK_INTERVAL = 0.2  # seconds
_GRACE_SECONDS = 2.0


def main() -> None:
    """Run the program that the command-line arguments name.

    If the process `parent_pid` ends, the script removes the directory `scratch` and ends the program.
    The argument `target` is ``module:function`` or the absolute path of an executable file.
    """
    parent_pid, scratch, target, *arguments = sys.argv[1:]
    threading.Thread(target=_end_with_parent, args=(int(parent_pid), scratch), daemon=True).start()
    if not os.path.isabs(target):
        sys.exit(_call(target, arguments))
    status = _run_file(target, arguments)
    if os.getppid() != int(parent_pid):
        shutil.rmtree(scratch, ignore_errors=True)  # the program may have written files after the first removal
    sys.exit(status)


def _call(target: str, arguments: list[str]) -> Any:
    sys.path[0] = os.getcwd()
    module_name, _, function_name = target.partition(":")
    sys.argv = [module_name, *arguments]
    return getattr(importlib.import_module(module_name), function_name)()


def _run_file(path: str, arguments: list[str]) -> int:
    program = subprocess.Popen([path, *arguments])
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    return program.wait()


def _end_with_parent(parent_pid: int, scratch: str) -> None:
    # Linux can send a signal when the parent ends (PR_SET_PDEATHSIG). But Linux sends the signal
    # when the thread that started this process ends, even if the parent process continues.
    # Therefore this function polls the process ID of the parent.
    while os.getppid() == parent_pid:
        time.sleep(_CHECK_INTERVAL)
    shutil.rmtree(scratch, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    shutil.rmtree(scratch, ignore_errors=True)  # the program may have written files during the grace period
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
