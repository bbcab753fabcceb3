"""Audit and report of the PyMongo names that a program uses, for ``python -m gmongo --check``."""

from __future__ import annotations

import os
import sys
from types import FrameType, ModuleType
from typing import TextIO

from gmongo._stand_in.module_aliases import ALIASES, ROOTS, root_of
from gmongo._stand_in.pymongo.asynchronous import Placeholder
from gmongo._stand_in.pymongo_introspection import existing_in_pymongo

_DRIVER_PACKAGES = frozenset({"gmongo", *ROOTS})
_FINDER_MODULE = "gmongo._stand_in.finder"
_HEADERS = ("name", "available", "used by")
_MAX_MODULES = 3  # maximum number of modules in the column "used by"
_LIMITATIONS_TEXT = (
    "The check records the names that executed code reads from modules, and absent attributes of gmongo's objects. "
    "The check records neither names that code reads from a class or sets in a class, nor names in other code"
)


class ImportAudit:
    """Record of the PyMongo names that a program uses: modules, their members, and absent attributes of objects."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}  # used name -> the modules that used the name
        self.absent: set[str] = set()  # the names that the program uses and that gmongo does not have
        self.placeholders: set[str] = set()  # the names of placeholder classes that the program uses
        self._classes: dict[type, str] = {}

    def record_import(self, name: str, module: ModuleType | None, is_program_import: bool) -> None:
        """Record an import, and start to record uses of the module. `module` is None if gmongo does not have it.

        `is_program_import` is False if gmongo loaded the module together with a package.
        """
        if is_program_import:
            self._record_use(name, module is None, _FINDER_MODULE)
        if module is not None:
            self._watch(min(_list_module_names(name), key=len), module)

    def find_missing(self) -> dict[str, str]:
        """Return a dict: name that gmongo lacks but PyMongo has -> name in the installed PyMongo.

        The record contains only the shortest PyMongo name of a module. PyMongo may have the member of
        the module only under a longer name.
        """
        aliases = {name: _all_names(name) for name in self.absent}
        known = existing_in_pymongo(name for names in aliases.values() for name in names)
        return {
            name: next(each for each in names if each in known) for name, names in aliases.items() if known & {*names}
        }

    def _record_use(self, name: str, is_absent: bool, ignored_module: str = "") -> None:
        module = _find_user_module(ignored_module)
        if module is None:
            return
        self.names.setdefault(name, set()).add(module)
        if is_absent:
            self.absent.add(name)

    def _watch(self, module_name: str, module: ModuleType) -> None:
        """Start to record the names that code reads from a module, and absent attributes of objects of its classes."""
        if getattr(type(module), "watched", False):
            return
        exported, spec = getattr(module, "__all__", ()), module.__spec__
        for name, value in vars(module).items():
            if isinstance(value, type) and (name in exported or (spec and value.__module__ == spec.name)):
                self._watch_objects(f"{module_name}.{name}", value)
        record, module_class = self, type(module)

        class Watched(module_class):  # type: ignore[misc, valid-type]
            watched = True

            def __getattribute__(self, name: str) -> object:
                # Ignore names like ``__spec__``, which the interpreter and the standard library read.
                if name.startswith("__") and name != "__version__":
                    return super().__getattribute__(name)
                full_name = f"{module_name}.{name}"
                try:
                    value = super().__getattribute__(name)
                except AttributeError:
                    record._record_use(full_name, is_absent=True)
                    raise
                record._record_use(full_name, is_absent=False)
                if isinstance(value, type) and issubclass(value, Placeholder):
                    record.placeholders.add(full_name)
                return value

        module.__class__ = Watched

    def _watch_objects(self, class_name: str, kind: type) -> None:
        """Start to record which absent attributes code reads from objects of a class."""
        if kind in self._classes or issubclass(kind, Placeholder) or root_of(kind.__module__) != "gmongo":
            return
        self._classes[kind] = class_name
        record, original = self, getattr(kind, "__getattr__", object.__getattribute__)

        def __getattr__(instance: object, name: str) -> object:
            try:
                return original(instance, name)
            except AttributeError:
                if not name.startswith("__"):
                    classes = (record._classes.get(each) for each in type(instance).__mro__)
                    record._record_use(f"{next(filter(None, classes))}.{name}", is_absent=True)
                raise

        setattr(kind, "__getattr__", __getattr__)  # noqa: B010 - a method is assigned


def _list_module_names(name: str) -> list[str]:
    target = ALIASES.get(name)
    return [alias for alias in ALIASES if ALIASES[alias] == target] if target else [name]


def _all_names(name: str) -> list[str]:
    """Return all PyMongo names of a module or a member, because a module may have several names."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if module in ALIASES:
            return [".".join([each, *parts[length:]]) for each in sorted(_list_module_names(module), key=len)]
    return [name]


def _find_user_module(ignored_module: str) -> str | None:
    """Return the name of the module that uses a name, or None for gmongo. Ignore frames of `ignored_module`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name not in (__name__, ignored_module) and root_of(name) != "importlib":
            return None if root_of(name) in _DRIVER_PACKAGES else name
        frame = frame.f_back
    return None


def write_report(record: ImportAudit, pymongo_names: dict[str, str], stream: TextIO) -> None:
    """Write a table of the used names, with the absent names first. Use :mod:`rich` if available."""
    title = f"process {os.getpid()} used {len(record.names)} names of pymongo and gridfs; {len(pymongo_names)} missing"
    status = dict.fromkeys(record.placeholders, "placeholder")
    status |= {name: "no" if name in pymongo_names else "not in PyMongo either" for name in record.absent}
    names = sorted(record.names, key=lambda name: (name not in pymongo_names, name not in record.absent, name))
    pairs = [(name, pymongo_names.get(name, name)) for name in names]
    rows = [(shown, status.get(name, "yes"), _format_modules(record.names[name])) for name, shown in pairs]
    try:
        from rich.console import Console
        from rich.table import Column, Table
    except ImportError:
        _write_plain_table(title, rows, stream)
    else:
        name, *others = _HEADERS
        table = Table(Column(name, no_wrap=True), *others, title=title, title_justify="left")
        for row in rows:
            table.add_row(*row, style=None if row[1] == "yes" else "bold red" if row[1] == "no" else "dim")
        Console(file=stream).print(table)
    print(_LIMITATIONS_TEXT, file=stream)


def _write_plain_table(title: str, rows: list[tuple[str, str, str]], stream: TextIO) -> None:
    widths = [max(len(row[column]) for row in (_HEADERS, *rows)) for column in range(len(_HEADERS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (_HEADERS, *rows)]
    print(title, *(line.rstrip() for line in lines), sep="\n", file=stream)


def _format_modules(modules: set[str]) -> str:
    names = sorted(modules)
    return ", ".join(names[:_MAX_MODULES]) + (
        f" and {len(names) - _MAX_MODULES} more" if len(names) > _MAX_MODULES else ""
    )
