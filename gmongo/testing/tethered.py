"""What a :class:`~gmongo.testing.process.TetheredProcess` runs: a program that ends with its parent process.

It is run as a file, so that neither gevent nor the driver is loaded, and imports the standard library only.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import threading
import time

_LOOK_EVERY = 0.2
_GRACE = 2


def main() -> None:
    """Run ``module:function`` with the remaining arguments of the command line as its own.

    The arguments are: the process ID of the parent, a directory to remove if the parent vanishes,
    ``module:function``, and those of the function.
    """
    sys.path[0] = os.getcwd()
    parent, scratch, target, *arguments = sys.argv[1:]
    threading.Thread(target=_end_with, args=(int(parent), scratch), daemon=True).start()
    module, _, function = target.partition(":")
    sys.argv = [module, *arguments]
    sys.exit(getattr(importlib.import_module(module), function)())


def _end_with(parent: int, scratch: str) -> None:
    # Linux has a signal for the parent's death, but it follows the parent's thread rather than its process.
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    shutil.rmtree(scratch, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
