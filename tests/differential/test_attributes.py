"""gmongo has the attributes, signatures and constants of PyMongo.

The table of calls (folder `calls`) compares the values of attributes.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import gridfs.errors
import pymongo.common
import pymongo.cursor
import pymongo.cursor_shared
import pymongo.errors
import pymongo.results
import pytest

import gmongo.collection
import gmongo.errors
import gmongo.gridfs.errors
import gmongo.results
from tests.support.cases import rows
from tests.support.pymongo_version import since

MODULE_PAIRS: list[tuple[ModuleType, ModuleType]] = [
    (pymongo.errors, gmongo.errors),
    (pymongo.results, gmongo.results),
    (gridfs.errors, gmongo.gridfs.errors),
]
MODULE_NAMES = [row["name"] for row in rows(__file__, "modules")]
MODULES = [*(importlib.import_module(f"gmongo.{name}") for name in MODULE_NAMES), gmongo]
CLASSES = [
    pytest.param(value, ours, id=name)
    for theirs, ours in MODULE_PAIRS
    for name, value in vars(theirs).items()
    if inspect.isclass(value) and value.__module__ == theirs.__name__ and not name.startswith("_")
]


@pytest.mark.parametrize(("theirs", "module"), CLASSES)
def test_class_has_attributes_and_bases_of_pymongo(theirs: type[Any], module: ModuleType) -> None:
    ours = getattr(module, theirs.__name__)
    assert {name for name in dir(theirs) if not name.startswith("_")} <= set(dir(ours))
    bases = {base.__name__ for base in theirs.__mro__ if not base.__name__.startswith("_")}
    assert bases <= {base.__name__ for base in ours.__mro__}


def test_more_than_thirty_classes_are_compared() -> None:
    assert len(CLASSES) > 30


# Tests of default values of arguments

DIFFERENT_DEFAULTS = {
    "ClientBulkWriteException(verbose)",  # PyMongo requires this argument
    "ClientSession(implicit)",
    # None, the default of gmongo, means PyMongo's default: the primary.
    "TopologyDescription.has_readable_server(read_preference)",
    "WaitQueueTimeoutError(message)",
}


def _pymongo_module(module: ModuleType) -> ModuleType:
    return importlib.import_module(module.__name__.replace("gmongo.gridfs", "gridfs").replace("gmongo", "pymongo"))


def _common_callables() -> Iterator[tuple[str, Any, Any]]:
    """For each callable that both drivers have, yield its name, PyMongo's callable, and gmongo's
    callable.
    """
    yield "find", pymongo.cursor.Cursor.__init__, gmongo.collection.Collection.find
    for ours in MODULES:
        theirs = _pymongo_module(ours)
        for name in theirs.__dict__.keys() & ours.__dict__.keys():
            one, other = getattr(theirs, name), getattr(ours, name)
            if inspect.isclass(one) and not name.startswith("_"):
                yield name, one.__init__, other.__init__
                methods = (each for each in dir(one) if not each.startswith("_") and hasattr(other, each))
                yield from ((f"{name}.{each}", getattr(one, each), getattr(other, each)) for each in methods)
            elif inspect.isfunction(one):
                yield name, one, other


@since("4.12")
def test_arguments_have_defaults_of_pymongo() -> None:
    compared_count, different = 0, set()
    for name, one, other in _common_callables():
        if all(inspect.isfunction(each) or inspect.ismethod(each) for each in (one, other)):
            theirs, ours = inspect.signature(one).parameters, inspect.signature(other).parameters
            for parameter in theirs.keys() & ours.keys():
                compared_count += 1
                if theirs[parameter].default != ours[parameter].default:
                    different.add(f"{name}({parameter})")
    assert different == DIFFERENT_DEFAULTS
    assert compared_count > 2000


# Tests of the names of modules, members of classes, and parameters

MISSING_NAMES = {
    "gmongo.encryption_options.check_min_pymongocrypt",
    "gmongo.pool_options.get_container_env_info",
    "gmongo.read_preferences.MovingAverage",
    "gmongo.topology_description.updated_topology_description",
    "gmongo.write_concern.validate_boolean",
}
DIFFERENT_PARAMETERS = {"ClientOptions", "WaitQueueTimeoutError", "find", "split_options", "validate_options"}


def _is_missing(theirs: Any, ours: Any) -> bool:
    """Return True if gmongo lacks a name of PyMongo, or if gmongo's class of this name lacks a public
    member.
    """
    public = {name for name in dir(theirs) if not name.startswith("_")} if inspect.isclass(theirs) else set()
    return ours is None or not public <= set(dir(ours))


@since("4.18")
def test_modules_and_classes_have_all_public_names_of_pymongo() -> None:
    missing = {
        f"{ours.__name__}.{name}"
        for ours, theirs in ((each, _pymongo_module(each)) for each in MODULES)
        for name, thing in vars(theirs).items()
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and not name.startswith(("_", "Async"))
        if name in getattr(theirs, "__all__", ())
        or thing.__module__.rpartition(".")[2] == theirs.__name__.rpartition(".")[2]
        if _is_missing(thing, getattr(ours, name, None))
    }
    assert missing == MISSING_NAMES


def _parameters(function: Any) -> tuple[list[str], bool]:
    """Return the names of a function's parameters, and True if the function accepts any further
    arguments.
    """
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.kind not in rest], any(each.kind in rest for each in parameters)


@since("4.18")
def test_parameters_have_names_and_order_of_pymongo() -> None:
    compared_count, different = 0, set()
    for name, one, other in _common_callables():
        if not name.startswith("Topology") and all(inspect.isfunction(each) for each in (one, other)):
            (theirs, _), (ours, accepts_more) = _parameters(one), _parameters(other)
            common = [each for each in theirs if each in ours]
            compared_count += 1
            if ours[: len(common)] != common or (common != theirs and not accepts_more):
                different.add(name)
    assert different == DIFFERENT_PARAMETERS
    assert compared_count > 500


# Tests of constants

DIFFERENT_CONSTANTS = {"gmongo.version", "gmongo.version_tuple", "gmongo.MIN_SUPPORTED_WIRE_VERSION"}


def _common_constants(theirs: object, ours: object, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and both values of each constant that the drivers share in a module or class."""
    for name in {name for name in dir(theirs) if not name.startswith("_")} & set(dir(ours)):
        one, other = getattr(theirs, name), getattr(ours, name)
        if isinstance(one, int | float | str | tuple | frozenset):
            yield f"{path}.{name}", one, other
        elif inspect.isclass(one) and not inspect.isclass(theirs):
            yield from _common_constants(one, other, f"{path}.{name}")


@since("4.18")
def test_constants_equal_constants_of_pymongo() -> None:
    constants = [each for ours in MODULES for each in _common_constants(_pymongo_module(ours), ours, ours.__name__)]
    assert {name for name, one, other in constants if one != other} == DIFFERENT_CONSTANTS
    assert len(constants) > 70


# Tests of numbers and tables in private modules that libraries import
PRIVATE_MODULES = [
    (pymongo.common, "gmongo._stand_in.pymongo.common", {"MIN_SUPPORTED_WIRE_VERSION"}),
    (pymongo.cursor_shared, "gmongo._stand_in.pymongo.cursor_shared", set()),
]


@since("4.18")
@pytest.mark.parametrize(("theirs", "name", "different_names"), PRIVATE_MODULES)
def test_private_constants_equal_constants_of_pymongo(theirs: ModuleType, name: str, different_names: set[str]) -> None:
    ours = importlib.import_module(name)
    value_pairs = {
        each: (getattr(theirs, each), value)
        for each, value in vars(ours).items()
        if hasattr(theirs, each) and not each.startswith("__") and isinstance(value, int | float | dict)
    }
    assert {each for each, (one, other) in value_pairs.items() if one != other} == different_names
    assert value_pairs
