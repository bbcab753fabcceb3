"""What PyMongo itself has, asked in a process of its own, where nothing stands in for it."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec

from gmongo._stand_in.names import ROOTS

_PROGRAM = "import json, sys; asked = json.load(sys.stdin); sys.path[:] = asked['path']; import {0}; {0}.answer(asked)"
_OF_SELF = re.compile(r"\bself\.(\w+)")


def those_in_pymongo(names: Iterable[str]) -> set[str]:
    """Those of some dotted names that lead to something in PyMongo, as it is installed; all of them if it cannot tell.

    :param names: of modules, of what is in them, and of attributes of classes and their objects.
    """
    asked = set(names)
    if not asked:
        return set()
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(__name__)],
        input=json.dumps({"path": sys.path, "names": sorted(asked)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return set(json.loads(done.stdout)) if done.returncode == 0 else asked


def answer(asked: dict[str, list[str]]) -> None:
    """Write which of the names are there, in the process that is asked."""
    json.dump([name for name in asked["names"] if _is_there(name)], sys.stdout)


def _is_there(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            found = importlib.import_module(module)
        except Exception:  # whatever a module raises that lacks what it needs
            if _has_file(module):
                return True
        else:
            return _leads_on(found, parts[length:])
    return False


def _has_file(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def _leads_on(value: object, parts: list[str]) -> bool:
    if not parts:
        return True
    name, *others = parts
    if others:
        return hasattr(value, name) and _leads_on(getattr(value, name), others)
    return hasattr(value, name) or (isinstance(value, type) and name in _of_objects(value))


@cache
def _of_objects(kind: type) -> set[str]:
    """The attributes that a class gives its objects, by its code: whatever it says of ``self``."""
    return {
        f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for base in kind.__mro__
        if base.__module__.partition(".")[0] in ROOTS
        for name in _OF_SELF.findall(_source(base))
    }


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):  # it was made by a call, as a named tuple is
        return ""
