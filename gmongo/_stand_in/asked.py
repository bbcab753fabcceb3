"""Which of PyMongo's names a program asks for, for ``python -m gmongo --check``."""

from __future__ import annotations

import subprocess
import sys
from types import FrameType, ModuleType
from typing import Any

from gmongo._stand_in.names import ALIASES, ROOTS

_NOT_PROGRAMS = frozenset({"gmongo", *ROOTS})
_FINDER = "gmongo._stand_in.finder"
_ASK_PYMONGO = """
import importlib, sys
for name in sys.argv[1:]:
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ImportError:
        try:
            getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError):
            continue
    print(name)
"""


class Asked:
    """Collects what is asked for.

    :ivar names: each name, and the modules that asked for it.
    :ivar absent: those that gmongo does not have.
    """

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}
        self.absent: set[str] = set()

    def module(self, name: str, module: ModuleType | None, by_program: bool) -> None:
        """A module was loaded, or was asked for and is not there.

        :param by_program: it was not only loaded together with another one.
        """
        who = _asking(_FINDER) if by_program else None
        if who is not None:
            self.names.setdefault(name, set()).add(who)
            if module is None:
                self.absent.add(name)
        if type(module) is ModuleType:
            self._watch(_plainest(name), module)

    def _watch(self, module_name: str, module: ModuleType) -> None:
        """Notice the names that are asked for in a module."""
        names, absent = self.names, self.absent

        class Watched(ModuleType):
            def __getattribute__(self, name: str) -> Any:
                who = None if name.startswith("__") else _asking()
                if who is None:
                    return super().__getattribute__(name)
                full = f"{module_name}.{name}"
                names.setdefault(full, set()).add(who)
                try:
                    return super().__getattribute__(name)
                except AttributeError:
                    absent.add(full)
                    raise

        module.__class__ = Watched


def missing(asked: Asked) -> set[str]:
    """The names that are absent in gmongo and not in PyMongo: libraries ask for names of its older versions too.

    PyMongo, as it is installed, is asked in a process of its own.
    """
    if not asked.absent:
        return set()
    command = [sys.executable, "-c", _ASK_PYMONGO, *sorted(asked.absent)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return set(answer.stdout.split()) if answer.returncode == 0 else set(asked.absent)


def _plainest(name: str) -> str:
    """The shortest of the names that a module has."""
    target = ALIASES.get(name)
    return min((alias for alias in ALIASES if ALIASES[alias] == target), key=len) if target else name


def _asking(passing: str = "") -> str | None:
    """The module whose code is running; None if it is one of gmongo's.

    :param passing: the one of gmongo's that the program gets here through.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name != passing and name.partition(".")[0] != "importlib":
            return None if name.partition(".")[0] in _NOT_PROGRAMS else name
        frame = frame.f_back
    return None
