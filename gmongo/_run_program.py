"""Run a Python program in this process, like the interpreter."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pkgutil import get_importer
from typing import Any

# With -P, -I and PYTHONSAFEPATH, the interpreter adds neither the current nor the program's directory to sys.path.
_ONLY_WHAT_IS_INSTALLED = getattr(sys.flags, "safe_path", sys.flags.isolated)  # Python 3.10 has no safe_path


def run_program(is_module: bool, program: str, arguments: Sequence[str]) -> int:
    """Run a program to its end, and return its exit status. Its exceptions propagate.

    :param is_module: True for a module name; False for a file, or a directory or zip file with a ``__main__``.
    :param arguments: the arguments of the program.
    """
    sys.argv = [program, *arguments]
    _keep_pytest_silent()
    try:
        if is_module:  # ``-m gmongo`` has set sys.path
            runpy.run_module(program, run_name="__main__", alter_sys=True)
            return 0
        if not _ONLY_WHAT_IS_INSTALLED:
            del sys.path[0]  # the current directory, which ``-m gmongo`` has added
        if not os.path.exists(program):
            raise SystemExit(f"{sys.executable}: can't open file {os.path.abspath(program)!r}: No such file")
        if get_importer(program) is not None:
            _run_folder(program)
        else:
            if not _ONLY_WHAT_IS_INSTALLED:
                sys.path.insert(0, os.path.dirname(os.path.realpath(program)))
            runpy.run_path(program, run_name="__main__")
    except SystemExit as ending:
        return _status(ending)
    return 0


def _keep_pytest_silent() -> None:
    # pytest rewrites the assertions of each package with a plugin, and warns if the package is imported already.
    # With warnings as errors, the warning ends pytest. The word in the docstring of the package prevents the warning.
    package = sys.modules["gmongo"]
    package.__doc__ = f"{package.__doc__}\n\nPYTEST_DONT_REWRITE"


def _run_folder(program: str) -> None:
    """Run a directory or zip file with a ``__main__``. ``runpy`` would add a relative path, or change ``sys.argv``."""
    path = os.path.join(os.getcwd(), program)
    importer: Any = get_importer(path)
    spec: ModuleSpec | None = importer.find_spec("__main__")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{sys.executable}: can't find '__main__' module in {path!r}")
    sys.path.insert(0, path)
    sys.modules["__main__"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


def _status(ending: SystemExit) -> int:
    code = ending.code
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1
