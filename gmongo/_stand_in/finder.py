"""Import finder that replaces ``pymongo`` and ``gridfs`` by gmongo in this process."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType

from gmongo._stand_in.module_aliases import ADDED_PLACEHOLDERS, ALIASES, LOADED_WITH, PACKAGES, ROOTS, root_of
from gmongo._stand_in.pymongo import asynchronous

_FOLDER = Path(__file__).parent / "pymongo"
_MAX_USERS = 5  # maximum number of modules in the error message
_NOT_USERS = ROOTS | {"gmongo", "bson"}
ImportCallback = Callable[[str, ModuleType | None, bool], None]


class StandIn(MetaPathFinder):
    """Import finder that returns gmongo's modules for PyMongo's module names.

    In ``sys.meta_path``, this finder precedes the finder of PyMongo's own files. Finders that hook
    imports, such as New Relic's finder, precede this finder. For each PyMongo name, this finder
    calls `on_import`, if not None. The arguments of `on_import` are the name, the module or None,
    and False if gmongo loads the module together with its package.
    """

    def __init__(self) -> None:
        self.on_import: ImportCallback | None = None
        self._by_program = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the import spec for a PyMongo module name, or None for a module of another package."""
        if root_of(fullname) not in ROOTS:
            return None
        if fullname in ALIASES:
            return spec_from_loader(fullname, _AliasLoader(self), origin=ALIASES[fullname])
        if fullname in PACKAGES:
            file = _FOLDER / PACKAGES[fullname]
            return spec_from_file_location(
                fullname, file, loader=_FileLoader(self, fullname, str(file)), submodule_search_locations=[]
            )
        if self.on_import is not None:
            self.on_import(fullname, None, True)
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: gmongo stands in for PyMongo in this process. It has PyMongo's public "
            "modules and the few private modules that libraries use, but not this module",
            name=fullname,
        )

    def adapt_module(self, name: str, module: ModuleType) -> None:
        """Adapt a module that was loaded under a PyMongo name, and load the submodules of a package."""
        _adopt_loggers(module)
        for placeholder in ADDED_PLACEHOLDERS.get(name, ()):
            setattr(module, placeholder, getattr(asynchronous, placeholder))
            module.__dict__["__all__"].append(placeholder)
        if self.on_import is not None:
            self.on_import(name, module, self._by_program)
        others = LOADED_WITH.get(name)
        if others:
            by_program, self._by_program = self._by_program, False
            for other in others:
                _import_under_name(other)
            self._by_program = by_program


class _AliasLoader(Loader):
    """Loader that returns a gmongo module, and restores the ``__spec__`` that the import system has replaced."""

    def __init__(self, finder: StandIn) -> None:
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(ALIASES[spec.name])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state
        self._finder.adapt_module(spec.name, module)


class _FileLoader(SourceFileLoader):
    """Loader of a file that replaces a PyMongo package."""

    def __init__(self, finder: StandIn, name: str, path: str) -> None:
        super().__init__(name, path)
        self._finder = finder

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self._finder.adapt_module(module.__name__, module)


def _adopt_loggers(module: ModuleType) -> None:
    """Replace the loggers of a gmongo module by PyMongo's loggers, with the application's levels and handlers."""
    for name, value in list(vars(module).items()):
        if isinstance(value, logging.Logger) and root_of(value.name) == "gmongo":
            setattr(module, name, logging.getLogger(value.name.replace("gmongo", "pymongo", 1)))


def _import_under_name(name: str) -> None:
    """Import a module. New Relic's hooks require that ``__name__`` is PyMongo's name during the import."""
    module = importlib.import_module(ALIASES[name])
    original, module.__name__ = module.__name__, name
    try:
        importlib.import_module(name)
    finally:
        module.__name__ = original


def install() -> StandIn:
    """Replace ``pymongo`` and ``gridfs`` by gmongo in later imports, and return the finder.

    A second call only returns the finder.

    :raises RuntimeError: PyMongo itself is already imported.
    """
    for finder in sys.meta_path:
        if isinstance(finder, StandIn):
            return finder
    _refuse_if_pymongo_is_imported()
    importlib.import_module("gmongo")
    stand_in = StandIn()
    finders: list[object] = [*sys.meta_path]
    sys.meta_path.insert(finders.index(PathFinder) if PathFinder in finders else len(finders), stand_in)
    for name, module in list(sys.modules.items()):
        if root_of(name) == "gmongo":
            _adopt_loggers(module)
    return stand_in


def _refuse_if_pymongo_is_imported() -> None:
    packages = [name for name in sys.modules if name in ROOTS]
    if not packages:
        return
    users = [
        name for name, module in list(sys.modules.items()) if root_of(name) not in _NOT_USERS and _uses_pymongo(module)
    ]
    others = f" and {len(users) - _MAX_USERS} more" if len(users) > _MAX_USERS else ""
    importers = f"by {', '.join(users[:_MAX_USERS])}{others}" if users else "by a module that keeps no reference"
    raise RuntimeError(
        f"gmongo cannot stand in for PyMongo any more: {' and '.join(packages)} was imported before, {importers}. Let "
        "'import gmongo.as_pymongo' be the first line of the program, or run it with 'python -m gmongo'"
    )


def _uses_pymongo(module: ModuleType) -> bool:
    """Return True if PyMongo defines the value of a global variable of the module."""
    values = list(getattr(module, "__dict__", {}).values())
    return any(root_of(_find_defining_module(value)) in ROOTS for value in values)


def _find_defining_module(value: object) -> str:
    """Return the name of the module that defines `value` or the class of `value`."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, type | FunctionType | BuiltinFunctionType):
        name = value.__module__
    else:
        name = type(value).__module__
    return name if isinstance(name, str) else ""
