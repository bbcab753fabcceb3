"""Tests of the command ``python -m gmongo``, with and without ``--check``."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.programs import ROOT, run_python

PRINT_STATE = """
    import sys, threading, gmongo, pymongo
    from gevent import monkey
    print(__name__, sys.argv[1:], monkey.is_module_patched("socket"), pymongo.MongoClient is gmongo.MongoClient)
"""


@pytest.fixture
def write_program(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(dedent(text))
        return str(path)

    return write


@pytest.mark.parametrize(("options", "patched"), [((), True), (("--no-patch",), False)])
def test_command_runs_file_with_arguments(write_program, options, patched):
    completed = run_python("-W", "error", "-m", "gmongo", *options, write_program(PRINT_STATE), "-m", "--check", "x")
    assert completed.stderr == ""
    assert completed.stdout == f"__main__ ['-m', '--check', 'x'] {patched} True\n"
    assert completed.returncode == 0


def test_command_runs_module_with_arguments(write_program, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(write_program(PRINT_STATE)).parent))
    completed = run_python("-m", "gmongo", "-m", "program", "x")
    assert (completed.stdout, completed.stderr) == ("__main__ ['x'] True True\n", "")


@pytest.mark.parametrize("name", ["missing.py", "-"])
def test_missing_file_is_named_without_traceback(name):
    completed = run_python("-m", "gmongo", name)
    assert completed.returncode == 1
    assert completed.stderr == f"{sys.executable}: can't open file {str(ROOT / name)!r}: No such file\n"


def test_pytest_with_warnings_as_errors_passes(tmp_path):
    # pytest calls `register_assert_rewrite` for each package that has a plugin.
    (tmp_path / "conftest.py").write_text("import pytest\n\npytest.register_assert_rewrite('gmongo')\n")
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert True\n")
    # pytest-asyncio warns about its default settings.
    plugins = ("-p", "no:cacheprovider", "-p", "no:asyncio")
    completed = run_python("-m", "gmongo", "-m", "pytest", "-W", "error", *plugins, "-q", str(tmp_path))
    assert "1 passed" in completed.stdout, completed.stdout + completed.stderr


@pytest.mark.one_in(4)
@pytest.mark.parametrize("arguments", [(), ("-m",), ("--unknown", "x.py")])
def test_missing_program_or_unknown_option_prints_usage(arguments):
    completed = run_python("-m", "gmongo", *arguments)
    assert completed.returncode == 2
    assert "usage: python -m gmongo [--no-patch] [--check] (-m MODULE | PROGRAM) [ARGUMENT ...]" in completed.stderr


IMPORTS_PROGRAM = """
    import pymongo.errors
    from pymongo import MongoClient
    from pymongo.synchronous.collection import Collection
    import gridfs
    try:
        from pymongo.pool import Pool
    except ImportError:
        pass
    try:
        from pymongo.binary import Binary
    except ImportError:
        from bson.binary import Binary
    hasattr(pymongo, "Connection")
    pymongo.errors.PyMongoError, gridfs.GridFS
"""


@pytest.fixture(params=["rich", "plain"])
def rows_of(request, tmp_path, monkeypatch):
    """Return a function that reads the rows of the report.

    The form of the report depends on whether the package rich is installed.
    """
    if request.param == "plain":
        (tmp_path / "rich.py").write_text("raise ImportError")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    separator = "│" if request.param == "rich" else "  "

    def read(text: str) -> dict[str, list[str]]:
        rows = [
            [cell.strip() for cell in line.strip("│").split(separator) if cell.strip()] for line in text.splitlines()
        ]
        return {row[0]: row[1:] for row in rows if len(row) == 3}

    return read


@pytest.mark.one_in(4)
def test_check_reports_used_and_missing_names(write_program, rows_of):
    completed = run_python("-m", "gmongo", "--check", write_program(IMPORTS_PROGRAM))
    assert completed.returncode == 3
    rows = rows_of(completed.stderr)
    rows.pop("name", None)
    assert rows == {
        "pymongo.pool": ["no", "__main__"],
        "pymongo.Connection": ["not in PyMongo either", "__main__"],
        "pymongo.binary": ["not in PyMongo either", "__main__"],
        "gridfs": ["yes", "__main__"],
        "gridfs.GridFS": ["yes", "__main__"],
        "pymongo": ["yes", "__main__"],
        "pymongo.MongoClient": ["yes", "__main__"],
        "pymongo.collection.Collection": ["yes", "__main__"],
        "pymongo.errors": ["yes", "__main__"],
        "pymongo.errors.PyMongoError": ["yes", "__main__"],
    }
    assert "used 10 names of pymongo and gridfs; 1 missing" in completed.stderr


ATTRIBUTES_PROGRAM = """
    from pymongo import AsyncMongoClient, InsertOne, MongoClient
    with MongoClient(connect=False) as client:
        orders = client.shop.orders
        asked = [(client, "_kill_cursors"), (client, "_options"), (client.shop, "_retryable_read_command"),
                 (orders, "_nothing"), (orders.find(), "_refresh"), (InsertOne({}), "_namespace"),
                 (InsertOne({}), "_add_to_client_bulk"), (client.options, "_ClientOptions__pool_options")]
        print([hasattr(*each) for each in asked])
"""


@pytest.mark.one_in(4)
def test_check_reports_missing_attributes_of_objects(write_program, rows_of):
    completed = run_python("-m", "gmongo", "--check", write_program(ATTRIBUTES_PROGRAM))
    assert completed.stdout == "[False, True, False, False, False, True, False, False]\n"
    rows = {name: state for name, (state, _) in rows_of(completed.stderr).items() if state not in ("yes", "available")}
    assert rows == {
        "pymongo.AsyncMongoClient": "placeholder",
        "pymongo.MongoClient._kill_cursors": "no",
        "pymongo.database.Database._retryable_read_command": "no",
        "pymongo.collection.Collection._nothing": "not in PyMongo either",
        "pymongo.cursor.Cursor._refresh": "no",
        "pymongo.InsertOne._add_to_client_bulk": "no",
        "pymongo.client_options.ClientOptions._ClientOptions__pool_options": "no",
    }
    assert "5 missing" in completed.stderr
    assert "The check records the names that executed code reads from modules" in completed.stderr


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("ending", "status"),
    [("", 0), ("raise SystemExit(5)", 5), ("import pymongo.message", 1), ("raise KeyboardInterrupt", -2)],
)
def test_check_prints_report_after_any_end_of_program(write_program, ending, status):
    completed = run_python("-m", "gmongo", "--check", write_program(f"import pymongo\npymongo.MongoClient\n{ending}"))
    assert completed.returncode == status
    assert "pymongo.MongoClient" in completed.stderr


def test_alias_modules_are_plain_modules_without_check_option(write_program):
    completed = run_python(
        "-m", "gmongo", write_program("import pymongo, types\nprint(type(pymongo.errors) is types.ModuleType)")
    )
    assert (completed.stdout, completed.stderr) == ("True\n", "")
