"""Running a Python program inside this process, as the interpreter would."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence


def run_program(is_module: bool, program: str, arguments: Sequence[str]) -> int:
    """Run a program to its end; returns its exit status. Its exceptions pass through.

    :param is_module: `program` is the name of a module, not a file.
    :param arguments: of the program.
    """
    sys.argv = [program, *arguments]
    sys.path.insert(0, os.getcwd() if is_module else os.path.dirname(os.path.abspath(program)))
    try:
        if is_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as ending:
        return _status(ending)
    return 0


def _status(ending: SystemExit) -> int:
    code = ending.code
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1
