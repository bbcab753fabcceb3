"""Which of PyMongo's names a program asks for, for ``python -m gmongo --check``."""

from __future__ import annotations

import sys
from types import FrameType, ModuleType

from gmongo._stand_in.in_pymongo import those_in_pymongo
from gmongo._stand_in.names import ALIASES, ROOTS
from gmongo._stand_in.refused import Refused

_NOT_PROGRAMS = frozenset({"gmongo", *ROOTS})
_FINDER = "gmongo._stand_in.finder"


class Asked:
    """Collects what is asked for: names of modules, and attributes that gmongo's objects do not have.

    :ivar names: each name, and the modules that asked for it.
    :ivar absent: those that gmongo does not have.
    :ivar refused: those of classes that gmongo has to be named only.
    """

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}
        self.absent: set[str] = set()
        self.refused: set[str] = set()
        self._classes: dict[type, str] = {}

    def module(self, name: str, module: ModuleType | None, by_program: bool) -> None:
        """A module was loaded, or was asked for and is not there.

        :param by_program: it was not only loaded together with another one.
        """
        if by_program:
            self._note(name, module is None, _FINDER)
        if module is not None:
            self._watch(_plainest(name), module)

    def missing(self) -> dict[str, str]:
        """The names that gmongo does not have and PyMongo has, each with PyMongo's name for it: libraries ask for
        those of older versions, too, which PyMongo does not have either.

        A module that has several of PyMongo's names is one object, so that nothing tells by which of them it was asked.
        """
        meant = {name: _all_names(name) for name in self.absent}
        there = those_in_pymongo(name for names in meant.values() for name in names)
        return {
            name: next(each for each in names if each in there) for name, names in meant.items() if there & {*names}
        }

    def _note(self, name: str, is_absent: bool, passing: str = "") -> None:
        place = _asking(passing)
        if place is None:
            return
        self.names.setdefault(name, set()).add(place)
        if is_absent:
            self.absent.add(name)

    def _watch(self, module_name: str, module: ModuleType) -> None:
        """Notice the names that are asked for in a module, and the attributes of the objects of its classes."""
        if getattr(type(module), "watched", False):
            return
        exported, spec = getattr(module, "__all__", ()), module.__spec__
        for name, value in vars(module).items():
            if isinstance(value, type) and (name in exported or (spec and value.__module__ == spec.name)):
                self._watch_objects(f"{module_name}.{name}", value)
        asked, plain = self, type(module)

        class Watched(plain):  # type: ignore[misc, valid-type]
            watched = True

            def __getattribute__(self, name: str) -> object:
                if name.startswith("__") and name != "__version__":  # the interpreter and its modules ask for these
                    return super().__getattribute__(name)
                full = f"{module_name}.{name}"
                try:
                    value = super().__getattribute__(name)
                except AttributeError:
                    asked._note(full, is_absent=True)
                    raise
                asked._note(full, is_absent=False)
                if isinstance(value, type) and issubclass(value, Refused):
                    asked.refused.add(full)
                return value

        module.__class__ = Watched

    def _watch_objects(self, class_name: str, kind: type) -> None:
        """Notice the attributes that are asked of the objects of a class and are not there."""
        if kind in self._classes or issubclass(kind, Refused) or _root(kind.__module__) != "gmongo":
            return
        self._classes[kind] = class_name
        asked, own = self, getattr(kind, "__getattr__", object.__getattribute__)

        def __getattr__(instance: object, name: str) -> object:
            try:
                return own(instance, name)
            except AttributeError:
                if not name.startswith("__"):
                    classes = (asked._classes.get(each) for each in type(instance).__mro__)
                    asked._note(f"{next(filter(None, classes))}.{name}", is_absent=True)
                raise

        setattr(kind, "__getattr__", __getattr__)  # noqa: B010 - a method is assigned


def _plainest(name: str) -> str:
    """The shortest of the names that a module has."""
    return min(_names_of_module(name), key=len)


def _names_of_module(name: str) -> list[str]:
    target = ALIASES.get(name)
    return [alias for alias in ALIASES if ALIASES[alias] == target] if target else [name]


def _all_names(name: str) -> list[str]:
    """A name, and what else it is called: by the other names of its module."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if module in ALIASES:
            return [".".join([each, *parts[length:]]) for each in sorted(_names_of_module(module), key=len)]
    return [name]


def _asking(passing: str) -> str | None:
    """The module whose code is running; None if it is one of gmongo's.

    :param passing: the module of gmongo's through which the program asks.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name not in (__name__, passing) and _root(name) != "importlib":
            return None if _root(name) in _NOT_PROGRAMS else name
        frame = frame.f_back
    return None


def _root(name: str) -> str:
    return name.partition(".")[0]
