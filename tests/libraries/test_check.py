"""``python -m gmongo --check`` is right about every name that PyMongo has: it is there, or it is said to be missing."""

from __future__ import annotations

import json

import pytest

from gmongo._stand_in.import_audit import _all_names
from tests.support.programs import run_python

pytestmark = pytest.mark.long

# What PyMongo has: modules, names in them, and attributes of classes and their objects. Without the stand-in.
LIST = """
import importlib, json, pkgutil, types
from gmongo._stand_in.pymongo_introspection import _instance_attributes

modules, classes = {}, {}
for root in ("pymongo", "gridfs", "bson"):
    package = importlib.import_module(root)
    for name in [root, *(each.name for each in pkgutil.walk_packages(package.__path__, f"{root}."))]:
        modules[name] = []
        try:
            module = importlib.import_module(name)
        except ImportError:  # of what is not installed
            continue
        modules[name] = [each for each in dir(module) if not hasattr(types.ModuleType("any"), each)]
        for each, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == name and root != "bson":
                attributes = {*dir(value), *_instance_attributes(value)}
                classes[f"{name}.{each}"] = sorted(name for name in attributes if name[:2] != "__")
print(json.dumps([modules, classes]))
"""
# A program that asks for them all, and what the command would say of each. Objects are hollow: they have what their
# class has.
ASK = """
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
        hollow = kind.__new__(kind)
    except (ImportError, AttributeError, TypeError, ValueError, ConfigurationError):
        continue
    for attribute in attributes:
        try:
            getattr(hollow, attribute)
        except AttributeError:
            absent.add(f"{name}.{attribute}")
        except Exception:
            pass
'''
from gmongo.errors import ConfigurationError

asked = ImportAudit()
install().watch = asked.module
modules, classes = json.load(open(sys.argv[1]))
program = {"__name__": "program", "modules": modules, "classes": classes, "ConfigurationError": ConfigurationError}
exec(PROGRAM, program)
missing = asked.missing()
print(json.dumps({
    "absent": sorted(program["absent"]),
    "said to be missing": sorted(missing),
    "in PyMongo as": sorted(missing.values()),
    "said to be in neither": sorted(asked.absent - set(missing)),
}))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    listed = run_python("-W", "ignore", "-c", LIST)
    assert listed.returncode == 0, listed.stderr
    path = tmp_path_factory.mktemp("check") / "names.json"
    path.write_text(listed.stdout)
    done = run_python("-W", "ignore", "-c", ASK, str(path))
    assert done.returncode == 0, done.stderr
    modules, classes = json.loads(listed.stdout)
    return {"modules": modules, "classes": classes, **json.loads(done.stdout)}


def short(name: str) -> str:
    """Of an attribute, the class and the attribute: a class has several names."""
    return ".".join(name.split(".")[-2:])


def test_no_name_that_pymongo_has_is_reported_as_unknown_to_pymongo(said):
    names = {f"{module}.{name}" for module, names in said["modules"].items() for name in names} | {*said["modules"]}
    attributes = {short(f"{kind}.{name}") for kind, names in said["classes"].items() for name in names}
    assert (len(said["modules"]) > 100, len(names) > 3000, len(attributes) > 2000) == (True, True, True)
    neither = said["said to be in neither"]
    assert [name for name in neither if short(name) in attributes or not names.isdisjoint(_all_names(name))] == []


def test_each_name_that_is_not_there_is_reported(said):
    assert len(said["absent"]) > 500
    assert "pymongo.client_session._TxnState" in said["said to be missing"]
    assert "pymongo.synchronous.client_session._TxnState" in said["in PyMongo as"]
    known = {*said["said to be missing"], *said["in PyMongo as"]}
    known |= {short(name) for name in known if name.rpartition(".")[0] not in said["modules"]}
    assert [name for name in said["absent"] if short(name) not in known and known.isdisjoint(_all_names(name))] == []
