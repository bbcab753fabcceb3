"""Tests of PyMongo's names after ``import gmongo.as_pymongo``. Each program runs in a separate
process.
"""

from __future__ import annotations

import json
import pkgutil
from pathlib import Path
from textwrap import dedent

import pytest

import gmongo
from gmongo._stand_in.module_aliases import ALIASES, PYMONGO_VERSION
from gmongo.testing import DeploymentProcess
from tests.support.cases import with_cases
from tests.support.programs import run_python
from tests.support.pymongo_version import since

STAND_IN_IMPORT = "import gmongo.as_pymongo\n"


def run(program: str, first_line: str = STAND_IN_IMPORT, uri: str | None = None) -> str:
    """Run `first_line` and then `program` in a new process, and return the output."""
    completed = run_python("-W", "error::ResourceWarning", "-c", first_line + dedent(program), uri=uri)
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr == ""
    return completed.stdout.strip()


@pytest.fixture(scope="module")
def uri():
    with DeploymentProcess("--standalone") as deployment:
        yield deployment.uri


def test_module_aliases_are_identical_objects():
    program = f"""
        import importlib
        for name, target in {ALIASES!r}.items():
            module = importlib.import_module(name)
            assert module is importlib.import_module(target), name
            assert module.__name__ == module.__spec__.name == target, name
        import pymongo, gridfs, gmongo, gmongo.gridfs
        assert pymongo.errors is gmongo.errors and pymongo.MongoClient is gmongo.MongoClient
        assert pymongo.synchronous.collection is pymongo.collection is gmongo.collection
        assert gridfs is gmongo.gridfs and gridfs.errors is gmongo.gridfs.errors
    """
    run(program)


def test_each_public_module_of_both_drivers_has_alias():
    gmongo_modules = [each.name for each in pkgutil.iter_modules(gmongo.__path__) if not each.name.startswith("_")]
    pymongo_modules = run(
        "import pkgutil, pymongo; print(*(each.name for each in pkgutil.iter_modules(pymongo.__path__)))", ""
    )
    # PyMongo's module `auth` is private.
    common_names = {*gmongo_modules} & {*pymongo_modules.split()} - {"auth"}
    assert [name for name in common_names if f"pymongo.{name}" not in ALIASES] == []


@since(".".join(PYMONGO_VERSION.split(".")[:2]))
def test_stand_in_has_each_public_name_of_pymongo():
    listing = f"""
        import importlib, json
        modules = {{name: importlib.import_module(name) for name in {["pymongo", *ALIASES]!r}}}
        print(json.dumps({{name: list(getattr(module, "__all__", ())) for name, module in modules.items()}}))
    """
    public_names = json.loads(run(listing, first_line=""))
    lookup = f"""
        import importlib
        missing = []
        for module, names in {public_names!r}.items():
            found = importlib.import_module(module)
            missing += [f"{{module}}.{{name}}" for name in names if not hasattr(found, name)]
        print(*missing)
    """
    missing = {name for name in run(lookup).split() if not name.startswith("pymongo.typings._")}
    assert missing == set()


@pytest.mark.one_in(3)
@with_cases
def test_placeholder_is_importable_and_raises_configuration_error(target, reason):
    module, _, name = target.rpartition(".")
    program = f"""
        from {module} import {name} as Lacking
        def annotated(it: Lacking[dict]) -> bool:
            return isinstance(it, Lacking)
        assert not annotated(1)
        import pymongo.errors
        try:
            Lacking("mongodb://localhost", anything=1)
        except pymongo.errors.ConfigurationError as error:
            print(error)
    """
    message = run(program)
    assert f"gmongo stands in for PyMongo and has no {name}: it" in message
    assert reason in message


@pytest.mark.parametrize("name", ["pymongo.pool", "pymongo.monitoring.command", "gridfs.bucket", "pymongo.refused"])
def test_import_of_unsupported_module_raises_error_with_reason(name):
    program = f"""
        import importlib, importlib.util
        for function in (importlib.import_module, importlib.util.find_spec):
            try:
                function({name!r})
            except ModuleNotFoundError as error:
                print(error.name, error)
    """
    lines = run(program).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"{name} No module named {name!r}: gmongo stands in for PyMongo in this process")


# Tests of loggers


LOGGER_NAMES_PROGRAM = """
    from gevent import monkey
    monkey.patch_all()
    import logging, logging.config, os
    import pymongo
    class NameHandler(logging.Handler):
        names = set()
        def emit(self, record):
            self.names.add(record.name)
    {configuration}
    with pymongo.MongoClient(os.environ["MONGODB_URI"]) as client:
        client.test.command("ping")
    print(sorted(NameHandler.names))
"""


@pytest.mark.one_in(4)
@with_cases
def test_logger_names_equal_names_of_pymongo(configuration, expected, uri):
    program = LOGGER_NAMES_PROGRAM.format(configuration=configuration)
    assert run(program, uri=uri) == str(expected)
    assert run(program, first_line="", uri=uri) == str(expected)  # with PyMongo instead of the stand-in


def test_import_of_package_loads_modules_that_pymongo_also_loads():
    program = """
        import gridfs, pymongo, sys
        from gmongo._stand_in.module_aliases import LOADED_WITH
        print(*(name for names in LOADED_WITH.values() for name in names if name not in sys.modules))
    """
    assert run(program) == ""


def test_stand_in_renames_all_loggers_of_gmongo():
    program = """
        import importlib, logging, pkgutil, sys
        for each in pkgutil.walk_packages(gmongo.__path__, "gmongo."):
            if "testing" not in each.name and "__main__" not in each.name:
                try:
                    importlib.import_module(each.name)
                except ModuleNotFoundError as error:  # an extra is not installed
                    assert not error.name.startswith("gmongo"), error
        import pymongo, pymongo.event_loggers
        for name, module in sys.modules.items():
            for value in list(vars(module).values()):
                if isinstance(value, logging.Logger) and value.name.startswith("gmongo"):
                    print(name, value.name)
    """
    assert run(program) == ""


@pytest.mark.parametrize("call_at_import", ["ping()", "pass"], ids=["used at import", "not used at import"])
def test_client_of_unpatched_process_raises_invalid_operation_in_thread(call_at_import, uri):
    # The import must not warn, because an application server may import the application before the
    # fork and the monkey-patch.
    program = f"""
        import os, pymongo, threading
        client = pymongo.MongoClient(os.environ["MONGODB_URI"])
        def ping():
            try:
                print(client.test.command("ping"))
            except pymongo.errors.InvalidOperation as error:
                print(error)
        {call_at_import}
        thread = threading.Thread(target=ping)
        thread.start()
        thread.join()
    """
    *_, message = run(program, uri=uri).splitlines()
    assert message.startswith("a MongoClient belongs to the native thread that first used it")
    assert "call gevent.monkey.patch_all() before anything else" in message


def test_pytest_plugin_installs_stand_in(tmp_path: Path, uri):
    (tmp_path / "test_it.py").write_text(
        "import os, pymongo, gmongo\n"
        "def test_it():\n"
        "    with pymongo.MongoClient(os.environ['MONGODB_URI']) as client:\n"
        "        assert isinstance(client, gmongo.MongoClient)\n"
    )
    completed = run_python(
        "-m", "pytest", "-p", "gmongo.as_pymongo", str(tmp_path), "--rootdir", str(tmp_path), uri=uri
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert f"stands in for PyMongo {PYMONGO_VERSION}" in completed.stdout
    assert "1 passed" in completed.stdout
