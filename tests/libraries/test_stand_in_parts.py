"""Tests of the parts of the stand-in for PyMongo. The tests do not install the stand-in in this process."""

from __future__ import annotations

import importlib
import logging
import sys
from importlib.machinery import PathFinder
from io import StringIO
from types import ModuleType, SimpleNamespace
from typing import Any

import pymongo
import pytest

import gmongo
from gmongo._stand_in import import_audit, pymongo_introspection, report
from gmongo._stand_in.finder import StandIn
from gmongo._stand_in.import_audit import ImportAudit
from gmongo._stand_in.module_aliases import ADDED_PLACEHOLDERS, ALIASES, LOADED_WITH, PYMONGO_VERSION
from gmongo._stand_in.placeholders import Placeholder
from gmongo._stand_in.pymongo import grid_file
from gmongo._stand_in.pymongo.common import validate_read_preference
from gmongo._stand_in.pymongo.typings import strip_optional
from gmongo.read_preferences import ReadPreference
from tests.support.cases import with_cases

installing: Any = importlib.import_module("gmongo._stand_in.install")


def module(name: str, **content: object) -> ModuleType:
    created = ModuleType(name)
    vars(created).update(content)
    return created


# Tests of the installation of the stand-in


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return a replacement of ``sys`` whose modules and import finders `install` changes."""
    hook, last = object(), object()
    interpreter = SimpleNamespace(modules={}, meta_path=[hook, PathFinder, last], hook=hook, last=last)
    monkeypatch.setattr(installing, "sys", interpreter)
    return interpreter


def test_install_inserts_one_finder_before_path_finder(interpreter: SimpleNamespace) -> None:
    stand_in = installing.install()
    assert interpreter.meta_path == [interpreter.hook, stand_in, PathFinder, interpreter.last]
    assert installing.install() is stand_in
    assert len(interpreter.meta_path) == 4


def test_install_appends_finder_if_path_finder_is_missing(interpreter: SimpleNamespace) -> None:
    interpreter.meta_path.remove(PathFinder)
    assert interpreter.meta_path[-1] is not installing.install()
    assert isinstance(interpreter.meta_path[-1], StandIn)


def test_install_replaces_loggers_of_gmongo_modules_only(interpreter: SimpleNamespace) -> None:
    loggers = {name: logging.getLogger(name) for name in ("gmongo.topology", "other")}
    sdam = module("gmongo.sdam", _log=loggers["gmongo.topology"], other=loggers["other"])
    app = module("app", log=loggers["gmongo.topology"])
    interpreter.modules.update({"gmongo.sdam": sdam, "app": app})
    installing.install()
    assert vars(sdam)["_log"].name == "pymongo.topology" and vars(sdam)["other"] is loggers["other"]
    assert vars(app)["log"] is loggers["gmongo.topology"]


USED = {
    "module": module("pymongo.x"),
    "class": type("C", (), {"__module__": "pymongo.x"}),
    "object": type("C", (), {"__module__": "gridfs"})(),
    "function": type(lambda: None)(compile("0", "", "eval"), {"__name__": "pymongo.x"}),
}


@pytest.mark.parametrize("value", USED.values(), ids=USED)
def test_install_after_import_raises_error_with_users_of_pymongo(interpreter: SimpleNamespace, value: object) -> None:
    users = {f"user{number}": module(f"user{number}", it=value) for number in range(7)}
    own = {name: module(name, it=value) for name in ("pymongo", "gmongo.x", "bson.x", "gridfs")}
    for number, others in ((1, ""), (5, ""), (6, " and 1 more"), (7, " and 2 more")):
        interpreter.modules = {**own, **dict([*users.items()][:number]), "none": None}
        names = ", ".join([*users][: min(number, 5)])
        with pytest.raises(RuntimeError) as caught:
            installing.install()
        assert f": pymongo and gridfs was imported before, by {names}{others}. Let 'import" in str(caught.value)


def test_install_after_import_without_reference_raises_error(interpreter: SimpleNamespace) -> None:
    interpreter.modules = {"pymongo": module("pymongo"), "app": module("app", number=5)}
    with pytest.raises(RuntimeError, match=r"pymongo was imported before, by a module that keeps no reference\."):
        installing.install()
    assert not [each for each in interpreter.meta_path if isinstance(each, StandIn)]


# Tests of the import finder of the stand-in


def test_import_of_missing_module_raises_error_with_module_name() -> None:
    finder, watched = StandIn(), []
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'pymongo\.nothing': gmongo stands in") as caught:
        finder.find_spec("pymongo.nothing")
    assert caught.value.name == "pymongo.nothing"
    finder.on_import = lambda *arguments: watched.append(arguments)
    with pytest.raises(ModuleNotFoundError):
        finder.find_spec("gridfs.nothing")
    assert watched == [("gridfs.nothing", None, True)]
    assert finder.find_spec("bson") is None


# Tests of the audit, which records the names that a program uses


class Program:
    """A module of an audited program.

    A call of the object reads an attribute, as if code of the module read the attribute.
    """

    def __init__(self, name: str = "app") -> None:
        self._globals = {"__name__": name, "getattr": getattr}

    def __call__(self, target: object, name: str) -> object:
        return eval(
            compile("getattr(target, name, None)", "app.py", "eval"), {**self._globals, "target": target, "name": name}
        )


def test_audit_records_names_and_the_modules_that_read_them() -> None:
    audit, watched = ImportAudit(), module("pymongo.errors", Known=5, Gone=type("Gone", (Placeholder,), {"why": "x"}))
    audit.record_import("pymongo.errors", watched, by_program=False)
    audit.record_import("pymongo.other", watched, by_program=False)  # an alias of the same module object
    app, library = Program(), Program("library.part")
    assert app(watched, "Known") == 5 and app(watched, "Unknown") is None
    assert library(watched, "Known") == 5 and library(watched, "Gone") is vars(watched)["Gone"]
    assert Program("gmongo.x")(watched, "Known") == 5 and Program("pymongo.y")(watched, "Else") is None
    app(watched, "__name__")
    app(watched, "__version__")
    assert audit.names == {
        "pymongo.errors.Known": {"app", "library.part"},
        "pymongo.errors.Unknown": {"app"},
        "pymongo.errors.Gone": {"library.part"},
        "pymongo.errors.__version__": {"app"},
    }
    assert audit.absent == {"pymongo.errors.Unknown", "pymongo.errors.__version__"}
    assert audit.refused == {"pymongo.errors.Gone"}


def test_audit_records_missing_attributes_of_objects() -> None:
    class Parent:
        __module__ = "gmongo.x"

    class Child(Parent):
        __module__ = "gmongo.x"
        known = 5

        def __getattr__(self, name: str) -> object:
            if name == "made":
                return 6
            raise AttributeError(name)

    Foreign = type("Foreign", (), {"__module__": "elsewhere"})
    audit, app = ImportAudit(), Program()
    classes = {"Parent": Parent, "Child": Child, "Foreign": Foreign}
    audit.record_import("pymongo.x", module("pymongo.x", __all__=[*classes], **classes), by_program=True)
    assert app(Child(), "known") == 5 and app(Child(), "made") == 6
    assert app(Child(), "lacking") is None and app(Parent(), "lacking") is None and app(Foreign(), "lacking") is None
    app(Child(), "__lacking")
    assert audit.absent == {"pymongo.x.Child.lacking", "pymongo.x.Parent.lacking"}


def test_audit_records_module_imported_by_program(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = ImportAudit()
    monkeypatch.setattr(import_audit, "_user_module", lambda passing: f"app, by {passing}")
    audit.record_import("pymongo.nothing", None, by_program=True)
    audit.record_import("pymongo.some", None, by_program=False)
    assert audit.names == {"pymongo.nothing": {"app, by gmongo._stand_in.finder"}} and audit.absent == {
        "pymongo.nothing"
    }


# Tests of the report of the audit


def test_report_lists_missing_names_first(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = ImportAudit()
    audit.names = {"b": {"app"}, "a": {"m1", "m2", "m3", "m4", "m5"}, "gone": {"app"}, "old": {"app"}, "named": {"x"}}
    audit.absent, audit.refused = {"gone", "old"}, {"named"}
    stream = StringIO()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(report.os, "getpid", lambda: 77)
    report.write_report(audit, {"gone": "pymongo.gone"}, stream)
    title, *lines = stream.getvalue().splitlines()
    assert title == "process 77 used 5 names of pymongo and gridfs; 1 missing"
    assert lines[:6] == [
        "name          available              used by",
        "pymongo.gone  no                     app",
        "old           not in PyMongo either  app",
        "a             yes                    m1, m2, m3 and 2 more",
        "b             yes                    app",
        "named         placeholder            x",
    ]
    assert lines[6].startswith("The check records names of modules")


def test_report_on_terminal_has_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    for name, value in (("COLUMNS", "200"), ("TERM", "xterm"), ("FORCE_COLOR", "1")):
        monkeypatch.setenv(name, value)
    audit = ImportAudit()
    audit.names = {"there": {"app"}, "gone": {"app"}, "old": {"app"}}
    audit.absent = {"gone", "old"}
    stream = StringIO()
    report.write_report(audit, {"gone": "gone"}, stream)
    lines = stream.getvalue().splitlines()
    styles = {
        word: next(line for line in lines if word in line).partition(word)[0] for word in ("there ", "gone", "old")
    }
    assert "1;31m" in styles["gone"] and "2m" in styles["old"]


# Tests of the search for names in the installed PyMongo


@with_cases
def test_search_finds_name_if_pymongo_has_module_or_attribute(name: str, exists: bool) -> None:
    assert pymongo_introspection._exists(name) is exists


def test_search_finds_module_whose_import_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ModuleType:
        if name == "pymongo.daemon":
            raise OSError("not on this system")
        return importlib.import_module(name)

    monkeypatch.setattr(pymongo_introspection, "importlib", SimpleNamespace(import_module=refuse))
    assert pymongo_introspection._exists("pymongo.daemon") and pymongo_introspection._exists("pymongo.daemon.anything")
    assert not pymongo_introspection._exists("pymongo.nothing.anything")


def test_search_returns_only_names_that_exist_in_pymongo() -> None:
    assert pymongo_introspection.existing_in_pymongo([]) == set()
    assert pymongo_introspection.existing_in_pymongo(["pymongo.errors", "pymongo.nothing"]) == {"pymongo.errors"}


def test_search_returns_all_names_if_search_process_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pymongo_introspection.sys, "executable", "/bin/false")
    assert pymongo_introspection.existing_in_pymongo(["a", "b"]) == {"a", "b"}


def test_class_without_source_file_has_empty_source() -> None:
    assert pymongo_introspection._source(type("Made", (), {"__module__": __name__})) == ""
    assert pymongo_introspection._source(int) == ""


# Tests of private modules of PyMongo in the stand-in


@pytest.mark.parametrize(
    ("name", "users"),
    [("Collection", ["storage"]), ("Database", ["bucket", "grid_fs"]), ("GridOutCursor", ["bucket", "grid_fs"])],
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


def test_invalid_read_preference_raises_type_error() -> None:
    assert validate_read_preference("x", ReadPreference.NEAREST) is ReadPreference.NEAREST
    with pytest.raises(TypeError, match=r"^'nearest' is not a read preference$"):
        validate_read_preference("x", "nearest")


def test_strip_optional_of_none_raises_error() -> None:
    assert strip_optional(5) == 5
    with pytest.raises(AssertionError):
        strip_optional(None)


# Tests of the tables of names


needs_pymongo_of_api = pytest.mark.skipif(
    pymongo.version.split(".")[:2] != PYMONGO_VERSION.split(".")[:2],
    reason="the names belong to another version of PyMongo",
)


@needs_pymongo_of_api
@pytest.mark.parametrize("name", ADDED_PLACEHOLDERS)
def test_names_in_table_of_lacking_names_exist_in_pymongo(name: str) -> None:
    existing = vars(importlib.import_module(name))
    assert {*ADDED_PLACEHOLDERS[name]} <= existing.keys()


@needs_pymongo_of_api
@pytest.mark.parametrize("name", sorted({*ALIASES, *(each for names in LOADED_WITH.values() for each in names)}))
def test_alias_names_module_of_pymongo_and_of_gmongo(name: str) -> None:
    importlib.import_module(name)
    importlib.import_module(ALIASES[name])


@with_cases
def test_dunder_all_contains_aliases_of_module(name: str, names: list[str]) -> None:
    assert import_audit._all_names(name) == names
