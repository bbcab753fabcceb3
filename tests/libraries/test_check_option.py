"""Tests that ``python -m gmongo --check`` reports each name of PyMongo that gmongo does not have."""

from __future__ import annotations

import json

import pytest

from gmongo._stand_in.import_audit import _all_names
from tests.support.programs import run_python

pytestmark = pytest.mark.long

# Program that runs with PyMongo, and prints the modules, names and attributes of PyMongo.
LIST_PROGRAM = """
import importlib, json, pkgutil, types
from gmongo._stand_in.pymongo_introspection import _instance_attributes

modules, classes = {}, {}
for root in ("pymongo", "gridfs", "bson"):
    package = importlib.import_module(root)
    for name in [root, *(each.name for each in pkgutil.walk_packages(package.__path__, f"{root}."))]:
        modules[name] = []
        try:
            module = importlib.import_module(name)
        except ImportError:  # an optional package is not installed
            continue
        modules[name] = [each for each in dir(module) if not hasattr(types.ModuleType("any"), each)]
        for each, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == name and root != "bson":
                attributes = {*dir(value), *_instance_attributes(value)}
                classes[f"{name}.{each}"] = sorted(name for name in attributes if name[:2] != "__")
print(json.dumps([modules, classes]))
"""
# Program that runs with the stand-in for PyMongo, reads all names of PyMongo, and prints the absent
# names and the names that ``--check`` reports. The program creates objects without a call of
# `__init__`, so the objects have only the attributes of their classes.
AUDIT_PROGRAM = """
import json, sys
from gmongo._stand_in import install
from gmongo._stand_in.import_audit import ImportAudit

PROGRAM = '''
import importlib
absent = set()
for name, attributes in modules.items():
    try:
        module = importlib.import_module(name)
    except ImportError:
        absent.add(name)
        continue
    for attribute in attributes:
        if not hasattr(module, attribute) and f"{name}.{attribute}" not in modules:
            absent.add(f"{name}.{attribute}")
for name, attributes in classes.items():
    module, _, kind = name.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), kind)
        uninitialized = kind.__new__(kind)
    except (ImportError, AttributeError, TypeError, ValueError, ConfigurationError):
        continue
    for attribute in attributes:
        try:
            getattr(uninitialized, attribute)
        except AttributeError:
            absent.add(f"{name}.{attribute}")
        except Exception:
            pass
'''
from gmongo.errors import ConfigurationError

audit = ImportAudit()
install().on_import = audit.record_import
modules, classes = json.load(open(sys.argv[1]))
program = {"__name__": "program", "modules": modules, "classes": classes, "ConfigurationError": ConfigurationError}
exec(PROGRAM, program)
missing = audit.find_missing()
print(json.dumps({
    "absent": sorted(program["absent"]),
    "reported as missing": sorted(missing),
    "in PyMongo as": sorted(missing.values()),
    "reported as unknown": sorted(audit.absent - set(missing)),
}))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    listing = run_python("-W", "ignore", "-c", LIST_PROGRAM)
    assert listing.returncode == 0, listing.stderr
    path = tmp_path_factory.mktemp("check") / "names.json"
    path.write_text(listing.stdout)
    completed = run_python("-W", "ignore", "-c", AUDIT_PROGRAM, str(path))
    assert completed.returncode == 0, completed.stderr
    modules, classes = json.loads(listing.stdout)
    return {"modules": modules, "classes": classes, **json.loads(completed.stdout)}


def without_module(name: str) -> str:
    """Return the last two parts of a name: for an attribute, the class and the attribute.

    The tests compare names without modules, because several modules can export the same class.
    """
    return ".".join(name.split(".")[-2:])


def test_existing_pymongo_name_is_not_reported_as_unknown(report):
    names = {f"{module}.{name}" for module, names in report["modules"].items() for name in names} | {*report["modules"]}
    attributes = {without_module(f"{kind}.{name}") for kind, names in report["classes"].items() for name in names}
    assert (len(report["modules"]) > 100, len(names) > 3000, len(attributes) > 2000) == (True, True, True)
    unknown_names = report["reported as unknown"]
    assert [
        name for name in unknown_names if without_module(name) in attributes or not names.isdisjoint(_all_names(name))
    ] == []


def test_each_missing_pymongo_name_is_reported(report):
    assert len(report["absent"]) > 500
    assert "pymongo.client_session._TxnState" in report["reported as missing"]
    assert "pymongo.synchronous.client_session._TxnState" in report["in PyMongo as"]
    known = {*report["reported as missing"], *report["in PyMongo as"]}
    known |= {without_module(name) for name in known if name.rpartition(".")[0] not in report["modules"]}
    assert [
        name for name in report["absent"] if without_module(name) not in known and known.isdisjoint(_all_names(name))
    ] == []
