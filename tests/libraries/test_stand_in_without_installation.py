"""Tests of components of the stand-in for PyMongo. The tests do not install the stand-in in this
process.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gmongo
from gmongo._stand_in.import_audit import ImportAudit, write_report
from gmongo._stand_in.module_aliases import PYMONGO_VERSION
from gmongo._stand_in.pymongo import grid_file, typings
from gmongo._stand_in.pymongo_introspection import existing_in_pymongo

finder: Any = importlib.import_module("gmongo._stand_in.finder")


def module(name: str, **content: object) -> ModuleType:
    created = ModuleType(name)
    vars(created).update(content)
    return created


# Tests of the installation of the stand-in, and of the report of used names


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Replace ``sys`` in the module that contains `install`, and return the replacement."""
    hook, last = object(), object()
    interpreter = SimpleNamespace(modules={}, meta_path=[hook, PathFinder, last], hook=hook, last=last)
    monkeypatch.setattr(finder, "sys", interpreter)
    return interpreter


def test_install_inserts_one_finder_before_path_finder(interpreter: SimpleNamespace) -> None:
    stand_in = finder.install()
    assert interpreter.meta_path == [interpreter.hook, stand_in, PathFinder, interpreter.last]
    assert finder.install() is stand_in
    assert len(interpreter.meta_path) == 4
    interpreter.meta_path = [interpreter.hook]
    assert interpreter.meta_path == [interpreter.hook, finder.install()]


def test_finder_has_specs_only_of_supported_modules_of_pymongo() -> None:
    stand_in, imports = finder.StandIn(), []
    stand_in.on_import = lambda *arguments: imports.append(arguments)
    assert stand_in.find_spec("pymongox.errors") is None
    assert stand_in.find_spec("gridfs.errors").origin == "gmongo.gridfs.errors"
    package = stand_in.find_spec("pymongo.synchronous")
    assert package.origin == f"{package.submodule_search_locations[0]}/synchronous.py"
    with pytest.raises(ModuleNotFoundError, match=r"^No module named .gridfs.bucket.: gmongo stands in") as caught:
        stand_in.find_spec("gridfs.bucket")
    assert caught.value.name == "gridfs.bucket" and imports == [("gridfs.bucket", None, True)]


USED_OBJECTS = {
    "module": module("pymongo.x"),
    "class": type("C", (), {"__module__": "pymongo.x"}),
    "object": type("C", (), {"__module__": "gridfs"})(),
    "function": type(lambda: None)(compile("0", "", "eval"), {"__name__": "pymongo.x"}),
}


@pytest.mark.parametrize("value", USED_OBJECTS.values(), ids=USED_OBJECTS)
def test_install_after_import_raises_error_with_users_of_pymongo(interpreter: SimpleNamespace, value: object) -> None:
    users = {f"user{number}": module(f"user{number}", it=value) for number in range(7)}
    own = {name: module(name, it=value) for name in ("pymongo", "gmongo.x", "bson.x", "gridfs")}
    for number, others in ((0, ""), (1, ""), (5, ""), (6, " and 1 more"), (7, " and 2 more")):
        interpreter.modules = {**own, **dict([*users.items()][:number]), "none": None}
        names = ", ".join([*users][: min(number, 5)]) or "a module that keeps no reference"
        with pytest.raises(RuntimeError) as caught:
            finder.install()
        assert f": pymongo and gridfs was imported before, by {names}{others}. Let 'import" in str(caught.value)


def test_plain_report_lists_missing_names_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    audit, stream = ImportAudit(), io.StringIO()
    audit.names = {"pymongo.d": {*"b"}, "pymongo.a": {*"dcba"}, "pymongo.b": {*"cba"}, "pymongo.c": {"app"}}
    audit.absent, audit.placeholders = {"pymongo.b", "pymongo.c"}, {"pymongo.d"}
    write_report(audit, {"pymongo.c": "pymongo.long.c"}, stream)
    assert stream.getvalue().splitlines()[:-1] == [
        f"process {os.getpid()} used 4 names of pymongo and gridfs; 1 missing",
        "name            available              used by",
        "pymongo.long.c  no                     app",
        "pymongo.b       not in PyMongo either  a, b, c",
        "pymongo.a       yes                    a, b, c and 1 more",
        "pymongo.d       placeholder            b",
    ]


def test_module_whose_import_fails_exists_if_it_has_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_of_missing_package.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    names = ("module_of_missing_package", "module_without_file")
    assert existing_in_pymongo(names) == {"module_of_missing_package"}


# Tests of modules with which the stand-in replaces modules of PyMongo


@pytest.mark.parametrize(
    ("name", "users"),
    [("Collection", ["storage"]), ("Database", ["bucket", "grid_fs"]), ("GridOutCursor", ["bucket"])],
)
def test_patch_of_gridfs_class_applies_to_modules_that_use_class(
    name: str, users: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = [importlib.import_module(f"gmongo.gridfs.{user}") for user in users]
    before = [getattr(each, name) for each in modules]
    fake = type(name, (), {})
    with monkeypatch.context() as patch:
        patch.setattr(grid_file, name, fake)
        assert [getattr(each, name) for each in (grid_file, *modules)] == [fake] * (1 + len(modules))
    assert [getattr(each, name) for each in modules] == before


def test_stand_in_version_is_version_of_implemented_pymongo_api() -> None:
    package = importlib.import_module("gmongo._stand_in.pymongo")
    assert package.version == package.__version__ == package.get_version_string() == PYMONGO_VERSION
    assert ".".join(map(str, package.version_tuple)) == PYMONGO_VERSION
    assert all(isinstance(each, int) for each in package.version_tuple)
    assert {*gmongo.__all__, "AsyncMongoClient"} == {*package.__all__}


def test_strip_optional_returns_value_and_rejects_none() -> None:
    assert typings.strip_optional(0) == 0
    with pytest.raises(AssertionError):
        typings.strip_optional(None)
