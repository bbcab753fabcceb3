"""The finder that answers for ``pymongo`` and ``gridfs``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType

from gmongo._stand_in.loggers import adopt_loggers
from gmongo._stand_in.names import ALIASES, LACKING, LOADED_WITH, PACKAGES, ROOTS
from gmongo._stand_in.pymongo import asynchronous

_FILES = Path(__file__).parent / "pymongo"
Watch = Callable[[str, ModuleType | None, bool], None]


class StandIn(MetaPathFinder):
    """Finds gmongo's modules under PyMongo's names.

    It is asked after finders that hook imports, such as New Relic's, and before the one that would find
    PyMongo's own files.

    :ivar watch: is called with each name, its module, or None where there is none, and whether the program asked for it
        or it came with another one.
    """

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self._asked_for = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the module is, if its name is one of PyMongo's.

        :raises ModuleNotFoundError: gmongo has nothing for this name.
        """
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
        """A module is there under this name: give it what belongs to it."""
        adopt_loggers(module)
        for lacking in LACKING.get(name, ()):
            setattr(module, lacking, getattr(asynchronous, lacking))
            module.__dict__["__all__"].append(lacking)
        if self.watch is not None:
            self.watch(name, module, self._asked_for)
        others = LOADED_WITH.get(name)
        if others:
            asked_for, self._asked_for = self._asked_for, False
            for other in others:
                _load_under(other)
            self._asked_for = asked_for


class _Alias(Loader):
    """Gives an existing module to the import system, which takes it for new and replaces its ``__spec__``."""

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
    """Loads one of the files that stand for packages of PyMongo's."""

    def __init__(self, finder: StandIn, name: str, path: str) -> None:
        super().__init__(name, path)
        self._finder = finder

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self._finder.loaded(module.__name__, module)


def _load_under(name: str) -> None:
    """Import a module under PyMongo's name. It has that name meanwhile: New Relic finds its hooks by ``__name__``."""
    module = importlib.import_module(ALIASES[name])
    own, module.__name__ = module.__name__, name
    try:
        importlib.import_module(name)
    finally:
        module.__name__ = own
