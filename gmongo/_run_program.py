"""Run a Python program in this process, as the command ``python PROGRAM`` does."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pkgutil import get_importer
from traceback import walk_tb
from typing import Any

# True if -P, -I or PYTHONSAFEPATH keeps the program's directory out of sys.path. Python 3.10 has no safe_path.
_IS_SAFE_PATH = getattr(sys.flags, "safe_path", sys.flags.isolated)


def run_program(is_module: bool, program: str, arguments: Sequence[str]) -> int:
    """Run a program to its end, and return its exit status. Exceptions except SystemExit propagate.

    `program` is the name of a module, or the path of a Python file, directory or zip file. A
    directory or zip file must contain ``__main__``.
    """
    sys.argv = [program, *arguments]
    _keep_pytest_silent()
    try:
        if is_module:  # the interpreter has already set sys.path for ``-m gmongo``
            _run_module(program)
            return 0
        if not _IS_SAFE_PATH:
            del sys.path[0]  # the current directory, which the interpreter added for ``-m gmongo``
        if not os.path.exists(program):
            raise SystemExit(f"{sys.executable}: can't open file {os.path.abspath(program)!r}: No such file")
        if get_importer(program) is not None:
            _run_folder(program)
        else:
            if not _IS_SAFE_PATH:
                sys.path.insert(0, os.path.dirname(os.path.realpath(program)))
            runpy.run_path(program, run_name="__main__")
    except SystemExit as system_exit:
        return _convert_exit_status(system_exit)
    return 0


def _keep_pytest_silent() -> None:
    # pytest rewrites the assertions of each plugin package, and warns if the package is already imported. If warnings
    # are errors, the warning ends pytest. The word PYTEST_DONT_REWRITE in the docstring prevents the warning.
    package = sys.modules["gmongo"]
    package.__doc__ = f"{package.__doc__}\n\nPYTEST_DONT_REWRITE"


def _run_module(name: str) -> None:
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except ImportError as error:
        _own_frame, *frames = [frame for frame, _line in walk_tb(error.__traceback__)]
        if any(frame.f_globals is not vars(runpy) for frame in frames):
            raise  # the program itself raised the error
        raise SystemExit(f"{sys.executable}: {error}") from None


def _run_folder(program: str) -> None:
    """Run ``__main__`` of a directory or zip file. ``runpy`` would change ``sys.argv``."""
    path = os.path.join(os.getcwd(), program)
    importer: Any = get_importer(path)
    spec: ModuleSpec | None = importer.find_spec("__main__")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{sys.executable}: can't find '__main__' module in {path!r}")
    sys.path.insert(0, path)
    sys.modules["__main__"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


def _convert_exit_status(system_exit: SystemExit) -> int:
    code = system_exit.code
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1
