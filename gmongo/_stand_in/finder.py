"""Import finder of ``pymongo`` and ``gridfs``."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType

from gmongo._stand_in.module_aliases import ADDED_PLACEHOLDERS, ALIASES, LOADED_WITH, PACKAGES, ROOTS
from gmongo._stand_in.pymongo import asynchronous

_FILES = Path(__file__).parent / "pymongo"
ImportCallback = Callable[[str, ModuleType | None, bool], None]


class StandIn(MetaPathFinder):
    """Import finder that returns gmongo's modules for PyMongo's module names.

    In ``sys.meta_path``, this finder precedes the finder of PyMongo's own files. Finders that hook imports, such as New
    Relic's finder, precede this finder. For each imported name, the finder calls `on_import`, if not None. Its
    arguments are the name, the module or None, and False if gmongo loads the module together with its package.
    """

    def __init__(self) -> None:
        self.on_import: ImportCallback | None = None
        self._by_program = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the import spec for a PyMongo module name, or None for another name. Refuse an unknown module."""
        if fullname.partition(".")[0] not in ROOTS:
            return None
        if fullname in ALIASES:
            return spec_from_loader(fullname, _AliasLoader(self), origin=ALIASES[fullname])
        if fullname in PACKAGES:
            file = _FILES / PACKAGES[fullname]
            return spec_from_file_location(
                fullname, file, loader=_FileLoader(self, fullname, str(file)), submodule_search_locations=[]
            )
        if self.on_import is not None:
            self.on_import(fullname, None, True)
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: gmongo stands in for PyMongo in this process. It has PyMongo's public "
            "modules and the few private ones that libraries use, but not this one",
            name=fullname,
        )

    def adapt_module(self, name: str, module: ModuleType) -> None:
        """Adapt a module that was loaded under a PyMongo name, and load the submodules of a package."""
        adopt_loggers(module)
        for placeholder in ADDED_PLACEHOLDERS.get(name, ()):
            setattr(module, placeholder, getattr(asynchronous, placeholder))
            module.__dict__["__all__"].append(placeholder)
        if self.on_import is not None:
            self.on_import(name, module, self._by_program)
        others = LOADED_WITH.get(name)
        if others:
            by_program, self._by_program = self._by_program, False
            for other in others:
                _load_under(other)
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


def adopt_loggers(module: ModuleType) -> None:
    """Replace the loggers of a gmongo module by PyMongo's loggers, with the application's levels and handlers."""
    for name, value in list(vars(module).items()):
        if isinstance(value, logging.Logger) and value.name.partition(".")[0] == "gmongo":
            setattr(module, name, logging.getLogger(value.name.replace("gmongo", "pymongo", 1)))


def _load_under(name: str) -> None:
    """Import a module. New Relic's hooks require that ``__name__`` is PyMongo's name during the import."""
    module = importlib.import_module(ALIASES[name])
    original, module.__name__ = module.__name__, name
    try:
        importlib.import_module(name)
    finally:
        module.__name__ = original
