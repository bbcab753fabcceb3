"""Running a Python program inside this process, as the interpreter would."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pkgutil import get_importer
from typing import Any

# With -P, -I and PYTHONSAFEPATH, the interpreter searches neither the current directory nor that of a program.
_ONLY_WHAT_IS_INSTALLED = getattr(sys.flags, "safe_path", sys.flags.isolated)  # Python 3.10 has the latter


def run_program(is_module: bool, program: str, arguments: Sequence[str]) -> int:
    """Run a program to its end; returns its exit status. Its exceptions pass through.

    :param is_module: `program` is the name of a module, and not a file, or a directory or zip file with a ``__main__``.
    :param arguments: of the program.
    """
    sys.argv = [program, *arguments]
    try:
        if is_module:  # sys.path is that of ``-m gmongo``
            runpy.run_module(program, run_name="__main__", alter_sys=True)
            return 0
        if not _ONLY_WHAT_IS_INSTALLED:
            del sys.path[0]  # the current directory, which is there for ``-m gmongo``
        if get_importer(program) is not None:
            _run_folder(program)
        else:
            if not _ONLY_WHAT_IS_INSTALLED:
                sys.path.insert(0, os.path.dirname(os.path.realpath(program)))
            runpy.run_path(program, run_name="__main__")
    except SystemExit as ending:
        return _status(ending)
    return 0


def _run_folder(program: str) -> None:
    """Run what has a ``__main__``. (``runpy`` would let ``sys.path`` have a relative path, or change ``sys.argv``.)"""
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
