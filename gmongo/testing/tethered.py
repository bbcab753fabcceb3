"""Run a program that ends with its parent process, for :class:`~gmongo.testing.process.TetheredProcess`.

The file runs as a script, so that neither gevent nor the driver is loaded. It imports the standard library only.
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
_GRACE = 2.0  # seconds


def main() -> None:
    """Run a program with the remaining arguments of the command line.

    The arguments are: the process ID of the parent, a directory to remove if the parent ends, the target, and the
    arguments of the target. The target is ``module:function``, or the absolute path of an executable file.
    """
    parent, scratch, target, *arguments = sys.argv[1:]
    threading.Thread(target=_end_with_parent, args=(int(parent), scratch), daemon=True).start()
    if not os.path.isabs(target):
        sys.exit(_call(target, arguments))
    status = _run_file(target, arguments)
    if os.getppid() != int(parent):
        shutil.rmtree(scratch, ignore_errors=True)  # the program may have written files while it ended
    sys.exit(status)


def _call(target: str, arguments: list[str]) -> Any:
    sys.path[0] = os.getcwd()
    module, _, function = target.partition(":")
    sys.argv = [module, *arguments]
    return getattr(importlib.import_module(module), function)()


def _run_file(path: str, arguments: list[str]) -> int:
    program = subprocess.Popen([path, *arguments])
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    return program.wait()


def _end_with_parent(parent: int, scratch: str) -> None:
    # Linux has a signal for the parent's death. The signal follows the parent's thread instead of its process.
    while os.getppid() == parent:
        time.sleep(_CHECK_INTERVAL)
    shutil.rmtree(scratch, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    shutil.rmtree(scratch, ignore_errors=True)  # the program may have written files meanwhile
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
