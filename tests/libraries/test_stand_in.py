"""``import gmongo.as_pymongo``: what PyMongo's names lead to afterwards. Each program runs in a process of its own."""

from __future__ import annotations

import json
import pkgutil
from pathlib import Path
from textwrap import dedent

import pytest

import gmongo
from gmongo._stand_in.module_aliases import ALIASES, PYMONGO_VERSION
from gmongo.testing import DeploymentProcess
from tests.support.programs import run_python
from tests.support.pymongo_version import since

STAND_IN = "import gmongo.as_pymongo\n"


def run(program: str, first: str = STAND_IN, uri: str | None = None) -> str:
    """What a program writes that has the one line in front."""
    done = run_python("-W", "error::ResourceWarning", "-c", first + dedent(program), uri=uri)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.fixture(scope="module")
def uri():
    with DeploymentProcess("--standalone") as deployment:
        yield deployment.uri


def test_names_lead_to_the_same_module_objects():
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


@since(".".join(PYMONGO_VERSION.split(".")[:2]))
def test_every_name_in_the_table_is_one_of_pymongos():
    """As PyMongo itself sees it, in a process without the stand-in."""
    program = f"""
        import importlib
        for name in {sorted(ALIASES)!r}:
            importlib.import_module(name)
    """
    run(program, first="")


def test_every_public_module_that_both_have_is_in_the_table():
    ours = [each.name for each in pkgutil.iter_modules(gmongo.__path__) if not each.name.startswith("_")]
    theirs = run("import pkgutil, pymongo; print(*(each.name for each in pkgutil.iter_modules(pymongo.__path__)))", "")
    both = [name for name in ours if name in theirs.split() and name != "auth"]  # which is PyMongo's own, not public
    assert [name for name in both if f"pymongo.{name}" not in ALIASES] == []


@since(".".join(PYMONGO_VERSION.split(".")[:2]))
def test_pymongos_public_names_are_there():
    """Each name that PyMongo's public modules export: in a process without the stand-in it lists them, and in one with
    it they are looked up."""
    listing = f"""
        import importlib, json
        modules = {{name: importlib.import_module(name) for name in {["pymongo", *ALIASES]!r}}}
        print(json.dumps({{name: list(getattr(module, "__all__", ())) for name, module in modules.items()}}))
    """
    public = json.loads(run(listing, first=""))
    looking_up = f"""
        import importlib
        missing = []
        for module, names in {public!r}.items():
            there = importlib.import_module(module)
            missing += [f"{{module}}.{{name}}" for name in names if not hasattr(there, name)]
        print(*missing)
    """
    missing = {name for name in run(looking_up).split() if not name.startswith("pymongo.typings._")}
    assert missing == set()


def test_all_names_of_the_packages_are_exported():
    """``from pymongo import *`` gives what there is, and nothing that is there by accident."""
    program = """
        import inspect, gridfs, pymongo, pymongo.encryption_options
        for package in pymongo, gridfs:
            there = {name for name, value in vars(package).items() if not inspect.ismodule(value)}
            print(*there - {name for name in there if name.startswith("_")} - {"annotations"} ^ {
                name for name in package.__all__ if not name.startswith("_")
            })
        assert "AsyncHTTPProxyKMSConnect" in pymongo.encryption_options.__all__
    """
    assert run(program).split() == []


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("pymongo.AsyncMongoClient", "asyncio"),
        ("pymongo.asynchronous.mongo_client.AsyncMongoClient", "asyncio"),
        ("gridfs.AsyncGridFS", "asyncio"),
        ("gridfs.asynchronous.AsyncGridFSBucket", "asyncio"),
        ("pymongo.asynchronous.encryption.AsyncClientEncryption", "asyncio"),
        ("pymongo.encryption_options.AsyncHTTPProxyKMSConnect", "asyncio"),
    ],
)
def test_what_is_lacking_can_be_imported_and_refuses_to_be_constructed(what, reason):
    module, _, name = what.rpartition(".")
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
    said = run(program)
    assert f"gmongo stands in for PyMongo and has no {name}: it" in said
    assert reason in said


@pytest.mark.parametrize("name", ["pymongo.pool", "pymongo.monitoring.command", "gridfs.bucket", "pymongo.refused"])
def test_any_other_module_is_not_found_and_the_error_says_why(name):
    program = f"""
        import importlib, importlib.util
        for way in (importlib.import_module, importlib.util.find_spec):
            try:
                way({name!r})
            except ModuleNotFoundError as error:
                print(error.name, error)
    """
    lines = run(program).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"{name} No module named {name!r}: gmongo stands in for PyMongo in this process")


def test_what_hooks_imports_is_asked_first():
    """As New Relic and wrapt do: their finder comes first and wraps the loader; New Relic looks for its hooks by the
    module's ``__name__``."""
    hook = """
        import sys
        from importlib.util import find_spec

        seen = []

        class Loader:
            def __init__(self, loader):
                self.loader = loader
            def create_module(self, spec):
                return self.loader.create_module(spec)
            def exec_module(self, module):
                self.loader.exec_module(module)
                seen.append(module.__name__)

        class Finder:
            busy = False
            def find_spec(self, name, path=None, target=None):
                if self.busy or not name.startswith("pymongo"):
                    return None
                self.busy = True
                try:
                    spec = find_spec(name)
                finally:
                    self.busy = False
                spec.loader = Loader(spec.loader)
                return spec

        sys.meta_path.insert(0, Finder())
    """
    program = """
        import pymongo
        import gmongo.collection
        assert gmongo.collection.__name__ == gmongo.collection.__spec__.name == "gmongo.collection"
        for each in ("collection", "mongo_client"):
            assert seen.index(f"pymongo.synchronous.{each}") < seen.index(f"pymongo.{each}")
        print(seen[-1])
    """
    before = dedent(hook) + STAND_IN
    after = STAND_IN + dedent(hook)
    assert run(program, first=before) == run(program, first=after) == "pymongo"


# Loggers


LOGGED = """
    from gevent import monkey
    monkey.patch_all()
    import logging, logging.config, os
    import pymongo
    class Kept(logging.Handler):
        names = set()
        def emit(self, record):
            self.names.add(record.name)
    {configured}
    with pymongo.MongoClient(os.environ["MONGODB_URI"]) as client:
        client.test.command("ping")
    print(sorted(Kept.names))
"""
CONFIGURED = "logging.config.dictConfig({'version': 1, 'loggers': {'pymongo': {'level': 'DEBUG'}}})"


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ("logging.root.addHandler(Kept())", []),
        (
            "logging.root.addHandler(Kept()); logging.getLogger('pymongo.command').setLevel('DEBUG')",
            ["pymongo.command"],
        ),
        (
            "logging.getLogger('pymongo').addHandler(Kept()); logging.getLogger('pymongo').setLevel('DEBUG')",
            ["pymongo.command", "pymongo.connection", "pymongo.serverSelection", "pymongo.topology"],
        ),
        (
            f"{CONFIGURED}; logging.root.addHandler(Kept())",
            ["pymongo.command", "pymongo.connection", "pymongo.serverSelection", "pymongo.topology"],
        ),
    ],
    ids=["nothing set", "one level", "all", "dictConfig, which disables the loggers that it does not name"],
)
def test_loggers_are_pymongos(configured, expected, uri):
    program = LOGGED.format(configured=configured)
    assert run(program, uri=uri) == str(expected)
    assert run(program, first="", uri=uri) == str(expected)  # PyMongo's own


def test_no_logger_of_gmongos_is_left():
    program = """
        import importlib, logging, pkgutil, sys
        for found in pkgutil.walk_packages(gmongo.__path__, "gmongo."):
            if "testing" not in found.name and "__main__" not in found.name:
                try:
                    importlib.import_module(found.name)
                except ModuleNotFoundError as error:  # an extra that is not installed
                    assert not error.name.startswith("gmongo"), error
        import pymongo, pymongo.event_loggers
        for name, module in sys.modules.items():
            for value in list(vars(module).values()):
                if isinstance(value, logging.Logger) and value.name.startswith("gmongo"):
                    print(name, value.name)
    """
    assert run(program) == ""


@pytest.mark.parametrize("used", ["ping()", "pass"], ids=["used at import", "not used at import"])
def test_a_client_of_an_unpatched_process_warns_of_nothing_and_says_in_a_thread_what_to_do(used, uri):
    """A server that loads the application before it forks and patches is such a process, and has nothing to mend."""
    program = f"""
        import os, pymongo, threading
        client = pymongo.MongoClient(os.environ["MONGODB_URI"])
        def ping():
            try:
                print(client.test.command("ping"))
            except pymongo.errors.InvalidOperation as error:
                print(error)
        {used}
        thread = threading.Thread(target=ping)
        thread.start()
        thread.join()
    """
    *_, said = run(program, uri=uri).splitlines()
    assert said.startswith("a MongoClient belongs to the native thread that first used it")
    assert "call gevent.monkey.patch_all() before anything else" in said


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_the_one_message_of_level_info_can_be_hidden(level, uri):
    program = f"""
        from gevent import monkey
        monkey.patch_all()
        import logging, os, sys, pymongo
        logging.basicConfig(level={level!r}, stream=sys.stdout, format="%(name)s %(levelname)s")
        {{hidden}}
        with pymongo.MongoClient(os.environ["MONGODB_URI"], connect=False) as client:
            client.test.command("ping")
    """
    shown = run(program.format(hidden=""), uri=uri).splitlines()
    assert [line for line in shown if "DEBUG" not in line] == ["pymongo.serverSelection INFO"]
    hiding = "logging.getLogger('pymongo.serverSelection').setLevel('WARNING')"
    hidden = run(program.format(hidden=hiding), uri=uri).splitlines()
    assert [line for line in hidden if "DEBUG" not in line or "serverSelection" in line] == []


def test_as_a_plugin_of_pytest(tmp_path: Path, uri):
    (tmp_path / "test_it.py").write_text(
        "import os, pymongo, gmongo\n"
        "def test_it():\n"
        "    with pymongo.MongoClient(os.environ['MONGODB_URI']) as client:\n"
        "        assert isinstance(client, gmongo.MongoClient)\n"
    )
    done = run_python("-m", "pytest", "-p", "gmongo.as_pymongo", str(tmp_path), "--rootdir", str(tmp_path), uri=uri)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"stands in for PyMongo {PYMONGO_VERSION}" in done.stdout
    assert "1 passed" in done.stdout
