"""Provide the private modules and names of PyMongo that its tests import.

For each name that gmongo has, the tests receive the object of gmongo. For any other name, the tests
receive the object of a renamed copy of PyMongo. Therefore all imports of a test file succeed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from gmongo._stand_in.module_aliases import ALIASES, PACKAGES, ROOTS
from gmongo.engines import transaction
from gmongo.gridfs import grid_in
from gmongo.options import rules
from gmongo.sdam import monitor
from gmongo.sdam.settings import TopologySettings
from tests.pymongo_suite.sources import PREFIX
from tests.pymongo_suite.substitutes import install_substitutes


class _Finder(MetaPathFinder, Loader):
    """Import finder for modules of PyMongo that :mod:`gmongo.as_pymongo` does not provide."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in ROOTS or fullname in ALIASES or fullname in PACKAGES:
            return None
        return spec_from_loader(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(PREFIX + spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state
        module.__class__ = _NumberModule


class _NumberModule(ModuleType):
    """Module with numbers that tests change.

    If a test changes a number, the equivalent number of gmongo changes too.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        for module, attribute in _NUMBER_ATTRIBUTES.get(name, ()):
            setattr(module, attribute, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        for module, attribute in _NUMBER_ATTRIBUTES.get(name, ()):
            setattr(module, attribute, _INITIAL_VALUES[module, attribute])
        super().__delattr__(name)


class _ExtendedModule(_NumberModule):
    """Module of gmongo that, for code outside of gmongo, also has the names of a PyMongo module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or _is_called_by_gmongo():
            raise AttributeError(name)
        for module_name in self.__dict__["_module_names"]:
            try:
                value = getattr(importlib.import_module(PREFIX + module_name), name)
            except (ImportError, AttributeError):
                continue
            return _replacement_in_stand_in(value)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


# Name of a number in PyMongo -> the equivalent attributes of gmongo.
_NUMBER_ATTRIBUTES: dict[str, tuple[tuple[Any, str], ...]] = {
    "HEARTBEAT_FREQUENCY": ((TopologySettings, "heartbeat_frequency"),),
    "MIN_HEARTBEAT_INTERVAL": (
        (monitor, "MIN_HEARTBEAT_FREQUENCY"),
        (rules, "MIN_HEARTBEAT_SECONDS"),
    ),
    "_UPLOAD_BUFFER_SIZE": ((grid_in, "_BUFFER_SIZE"),),
    "_WITH_TRANSACTION_RETRY_TIME_LIMIT": ((transaction, "_TIME_LIMIT"),),
}
_INITIAL_VALUES = {place: getattr(*place) for places in _NUMBER_ATTRIBUTES.values() for place in places}


def _is_called_by_gmongo() -> bool:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return bool(frame.f_globals.get("__name__", "").partition(".")[0] == "gmongo")


def _replacement_in_stand_in(value: Any) -> Any:
    """Return the module or class of the stand-in that replaces `value`, a module or class of the
    copy.

    If the stand-in has no replacement, return `value`.
    """
    if isinstance(value, ModuleType) and value.__name__.startswith(PREFIX):
        return importlib.import_module(value.__name__.removeprefix(PREFIX))
    if isinstance(value, type) and value.__module__.startswith(PREFIX):
        module = sys.modules.get(value.__module__.removeprefix(PREFIX))
        return getattr(module, "__dict__", {}).get(value.__name__, value)
    return value


def install_private_names() -> None:
    """Make the private modules and names of PyMongo importable.

    The caller must first install the stand-in :mod:`gmongo.as_pymongo`.
    """
    sys.meta_path.insert(0, _Finder())
    module_names: dict[int, list[str]] = {}
    for module_name in sorted((*ALIASES, *PACKAGES), key=lambda each: "synchronous" not in each):
        if "asynchronous" not in module_name:
            module_names.setdefault(id(importlib.import_module(module_name)), []).append(module_name)
    for module in [importlib.import_module(names[0]) for names in module_names.values()]:
        module.__dict__["_module_names"] = module_names[id(module)]
        module.__class__ = _ExtendedModule
    install_substitutes()
