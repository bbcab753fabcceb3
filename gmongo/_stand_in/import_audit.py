"""Audit of the PyMongo names that a program uses, for ``python -m gmongo --check``."""

from __future__ import annotations

import sys
from types import FrameType, ModuleType

from gmongo._stand_in.module_aliases import ALIASES, ROOTS
from gmongo._stand_in.placeholders import Placeholder
from gmongo._stand_in.pymongo_introspection import existing_in_pymongo

_DRIVER_PACKAGES = frozenset({"gmongo", *ROOTS})
_FINDER = "gmongo._stand_in.finder"


class ImportAudit:
    """Record of used names: modules, and attributes that gmongo's objects do not have.

    :ivar names: each used name, and the modules that used it.
    :ivar absent: used names that gmongo does not have.
    :ivar refused: used names of classes that gmongo has only as placeholders.
    """

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}
        self.absent: set[str] = set()
        self.refused: set[str] = set()
        self._classes: dict[type, str] = {}

    def module(self, name: str, module: ModuleType | None, by_program: bool) -> None:
        """Record a module that was loaded, or that gmongo does not have.

        :param by_program: False if the module was only loaded together with another module.
        """
        if by_program:
            self._note(name, module is None, _FINDER)
        if module is not None:
            self._watch(_shortest_name(name), module)

    def missing(self) -> dict[str, str]:
        """Return the absent names that PyMongo has, each with its name in PyMongo.

        Libraries also use names of older versions, which the installed PyMongo does not have either.

        A module under several PyMongo names is one object, so the record does not distinguish these names.
        """
        aliases = {name: _all_names(name) for name in self.absent}
        known = existing_in_pymongo(name for names in aliases.values() for name in names)
        return {
            name: next(each for each in names if each in known) for name, names in aliases.items() if known & {*names}
        }

    def _note(self, name: str, is_absent: bool, passing: str = "") -> None:
        place = _user_module(passing)
        if place is None:
            return
        self.names.setdefault(name, set()).add(place)
        if is_absent:
            self.absent.add(name)

    def _watch(self, module_name: str, module: ModuleType) -> None:
        """Record the names that are read from a module, and the absent attributes of objects of its classes."""
        if getattr(type(module), "watched", False):
            return
        exported, spec = getattr(module, "__all__", ()), module.__spec__
        for name, value in vars(module).items():
            if isinstance(value, type) and (name in exported or (spec and value.__module__ == spec.name)):
                self._watch_objects(f"{module_name}.{name}", value)
        record, plain = self, type(module)

        class Watched(plain):  # type: ignore[misc, valid-type]
            watched = True

            def __getattribute__(self, name: str) -> object:
                if name.startswith("__") and name != "__version__":  # the interpreter and the library read these
                    return super().__getattribute__(name)
                full = f"{module_name}.{name}"
                try:
                    value = super().__getattribute__(name)
                except AttributeError:
                    record._note(full, is_absent=True)
                    raise
                record._note(full, is_absent=False)
                if isinstance(value, type) and issubclass(value, Placeholder):
                    record.refused.add(full)
                return value

        module.__class__ = Watched

    def _watch_objects(self, class_name: str, kind: type) -> None:
        """Record the absent attributes that are read from objects of a class."""
        if kind in self._classes or issubclass(kind, Placeholder) or _root(kind.__module__) != "gmongo":
            return
        self._classes[kind] = class_name
        record, original = self, getattr(kind, "__getattr__", object.__getattribute__)

        def __getattr__(instance: object, name: str) -> object:
            try:
                return original(instance, name)
            except AttributeError:
                if not name.startswith("__"):
                    classes = (record._classes.get(each) for each in type(instance).__mro__)
                    record._note(f"{next(filter(None, classes))}.{name}", is_absent=True)
                raise

        setattr(kind, "__getattr__", __getattr__)  # noqa: B010 - a method is assigned


def _shortest_name(name: str) -> str:
    """Return the shortest name of a module."""
    return min(_names_of_module(name), key=len)


def _names_of_module(name: str) -> list[str]:
    target = ALIASES.get(name)
    return [alias for alias in ALIASES if ALIASES[alias] == target] if target else [name]


def _all_names(name: str) -> list[str]:
    """Return a name, and its equivalents under the other names of its module."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if module in ALIASES:
            return [".".join([each, *parts[length:]]) for each in sorted(_names_of_module(module), key=len)]
    return [name]


def _user_module(passing: str) -> str | None:
    """Return the module whose code runs, or None for a gmongo module.

    :param passing: the gmongo module between the program and this record.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name not in (__name__, passing) and _root(name) != "importlib":
            return None if _root(name) in _DRIVER_PACKAGES else name
        frame = frame.f_back
    return None


def _root(name: str) -> str:
    return name.partition(".")[0]
