"""Import finder of ``pymongo`` and ``gridfs``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType

from gmongo._stand_in.loggers import adopt_loggers
from gmongo._stand_in.module_aliases import ALIASES, LACKING, LOADED_WITH, PACKAGES, ROOTS
from gmongo._stand_in.pymongo import asynchronous

_FILES = Path(__file__).parent / "pymongo"
Watch = Callable[[str, ModuleType | None, bool], None]


class StandIn(MetaPathFinder):
    """Import finder that returns gmongo's modules for PyMongo's module names.

    In ``sys.meta_path``, this finder precedes the finder of PyMongo's own files. Finders that hook imports, such as New
    Relic's finder, precede this finder.

    :ivar watch: a function that is called for each imported name, or None. The arguments are the name, the module or
        None, and False if :meth:`loaded` imports the module together with its package.
    """

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self._by_program = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the import spec for a PyMongo module name, or None for another name. An unknown module is an error."""
        if fullname.partition(".")[0] not in ROOTS:
            return None
        if fullname in ALIASES:
            return spec_from_loader(fullname, _Alias(self), origin=ALIASES[fullname])
        if fullname in PACKAGES:
            file = _FILES / PACKAGES[fullname]
            return spec_from_file_location(
                fullname, file, loader=_File(self, fullname, str(file)), submodule_search_locations=[]
            )
        if self.watch is not None:
            self.watch(fullname, None, True)
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: gmongo stands in for PyMongo in this process. It has PyMongo's public "
            "modules and the few private ones that libraries use, but not this one",
            name=fullname,
        )

    def loaded(self, name: str, module: ModuleType) -> None:
        """Adapt a module that was loaded under a PyMongo name, and load the submodules of a package."""
        adopt_loggers(module)
        for lacking in LACKING.get(name, ()):
            setattr(module, lacking, getattr(asynchronous, lacking))
            module.__dict__["__all__"].append(lacking)
        if self.watch is not None:
            self.watch(name, module, self._by_program)
        others = LOADED_WITH.get(name)
        if others:
            by_program, self._by_program = self._by_program, False
            for other in others:
                _load_under(other)
            self._by_program = by_program


class _Alias(Loader):
    """Loader that returns a gmongo module with its original ``__spec__``, which the import system has replaced."""

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
        self._finder.loaded(spec.name, module)


class _File(SourceFileLoader):
    """Loader of a file that replaces a PyMongo package."""

    def __init__(self, finder: StandIn, name: str, path: str) -> None:
        super().__init__(name, path)
        self._finder = finder

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self._finder.loaded(module.__name__, module)


def _load_under(name: str) -> None:
    """Import a module. During the import, ``__name__`` is PyMongo's name, for New Relic's hooks."""
    module = importlib.import_module(ALIASES[name])
    original, module.__name__ = module.__name__, name
    try:
        importlib.import_module(name)
    finally:
        module.__name__ = original
