"""Check which names the installed PyMongo has. A separate process imports PyMongo itself instead of gmongo."""

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

from gmongo._stand_in.module_aliases import ROOTS, root_of

_PROGRAM = (
    "import json, sys; query = json.load(sys.stdin); sys.path[:] = query['path']; import {0}; {0}.print_existing(query)"
)
_SELF_ATTRIBUTE_PATTERN = re.compile(r"\bself\.(\w+)")


def existing_in_pymongo(names: Iterable[str]) -> set[str]:
    """Return the dotted names that exist in the installed PyMongo. If the separate process fails, return all names."""
    requested_names = set(names)
    if not requested_names:
        return set()
    process = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(__name__)],
        input=json.dumps({"path": sys.path, "names": sorted(requested_names)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return set(json.loads(process.stdout)) if process.returncode == 0 else requested_names


def print_existing(query: dict[str, list[str]]) -> None:
    """Print the requested names that PyMongo has. The function runs in the separate process."""
    json.dump([name for name in query["names"] if _exists(name)], sys.stdout)


def _exists(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module_name = ".".join(parts[:length])
        try:
            module = importlib.import_module(module_name)
        except Exception:  # if the dependencies of a module are not installed, the import may raise any exception
            if _has_file(module_name):
                return True
        else:
            return _has_members(module, parts[length:])
    return False


def _has_file(module_name: str) -> bool:
    try:
        return find_spec(module_name) is not None
    except ImportError:
        return False


def _has_members(value: object, parts: list[str]) -> bool:
    if not parts:
        return True
    name, *others = parts
    if others:
        return hasattr(value, name) and _has_members(getattr(value, name), others)
    return hasattr(value, name) or (isinstance(value, type) and name in _instance_attributes(value))


@cache
def _instance_attributes(kind: type) -> set[str]:
    """Return the instance attributes of a class: names after ``self.`` in the code of the class and its bases."""
    return {
        f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for base in kind.__mro__
        if root_of(base.__module__) in ROOTS
        for name in _SELF_ATTRIBUTE_PATTERN.findall(_read_source(base))
    }


def _read_source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    # A class from a function such as ``namedtuple`` has no source code.
    except (OSError, TypeError):
        return ""
