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
_MAX_LISTED_MODULES = 5  # maximum number of modules in the error message
_IGNORED_PACKAGES = ROOTS | {"gmongo", "bson"}
ImportCallback = Callable[[str, ModuleType | None, bool], None]


class StandIn(MetaPathFinder):
    """Import finder that returns gmongo's modules for PyMongo's module names.

    In ``sys.meta_path``, this finder precedes the finder of PyMongo's own files. Finders that hook
    imports, such as New Relic's finder, precede this finder. At the import of a PyMongo module, this
    finder calls `on_import`, if not None. The arguments are the module name, the module or None, and
    a flag. The flag is False if gmongo loads the module together with a package.
    """

    def __init__(self) -> None:
        self.on_import: ImportCallback | None = None
        self._is_program_import = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the import spec for a PyMongo module name, or None for another package's module."""
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
        """Adapt a module that was loaded under a PyMongo name. For a package, load its modules in `LOADED_WITH`."""
        _adopt_loggers(module)
        for placeholder in ADDED_PLACEHOLDERS.get(name, ()):
            setattr(module, placeholder, getattr(asynchronous, placeholder))
            module.__dict__["__all__"].append(placeholder)
        if self.on_import is not None:
            self.on_import(name, module, self._is_program_import)
        submodules = LOADED_WITH.get(name)
        if submodules:
            is_program_import, self._is_program_import = self._is_program_import, False
            for submodule in submodules:
                _import_under_name(submodule)
            self._is_program_import = is_program_import


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
    """Replace each logger ``gmongo.*`` of a module by ``pymongo.*``, the logger that the application configures."""
    for name, value in list(vars(module).items()):
        if isinstance(value, logging.Logger) and root_of(value.name) == "gmongo":
            setattr(module, name, logging.getLogger(value.name.replace("gmongo", "pymongo", 1)))


def _import_under_name(name: str) -> None:
    """Import a module. New Relic's hooks require PyMongo's name in ``__name__`` during the import."""
    module = importlib.import_module(ALIASES[name])
    original, module.__name__ = module.__name__, name
    try:
        importlib.import_module(name)
    finally:
        module.__name__ = original


def install() -> StandIn:
    """Replace ``pymongo`` and ``gridfs`` in later imports. Return the new finder, or the finder of an earlier call.

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
    importers = [
        name
        for name, module in list(sys.modules.items())
        if root_of(name) not in _IGNORED_PACKAGES and _uses_pymongo(module)
    ]
    others = f" and {len(importers) - _MAX_LISTED_MODULES} more" if len(importers) > _MAX_LISTED_MODULES else ""
    names = ", ".join(importers[:_MAX_LISTED_MODULES]) or "a module that keeps no reference"
    raise RuntimeError(
        f"gmongo cannot stand in for PyMongo any more: {' and '.join(packages)} was imported before, by {names}"
        f"{others}. Let 'import gmongo.as_pymongo' be the first line of the program, or run it with 'python -m gmongo'"
    )


def _uses_pymongo(module: ModuleType) -> bool:
    """Return True if a global variable of the module holds an object that PyMongo defines."""
    values = list(getattr(module, "__dict__", {}).values())
    return any(root_of(_find_defining_module(value)) in ROOTS for value in values)


def _find_defining_module(value: object) -> str:
    """Return the name of `value` if it is a module, else of the module that defines `value` or its class."""
    if isinstance(value, ModuleType):
        name = value.__name__
    elif isinstance(value, type | FunctionType | BuiltinFunctionType):
        name = value.__module__
    else:
        name = type(value).__module__
    return name if isinstance(name, str) else ""
