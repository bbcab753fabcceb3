"""``python -m gmongo``: patch, stand in, run; and ``--check``."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.programs import run_python

WHAT_IT_SEES = """
    import sys, threading, gmongo, pymongo
    from gevent import monkey
    print(__name__, sys.argv[1:], monkey.is_module_patched("socket"), pymongo.MongoClient is gmongo.MongoClient)
"""


@pytest.fixture
def program(tmp_path: Path):
    """Writes a program to a file."""

    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(dedent(text))
        return str(path)

    return write


@pytest.mark.parametrize(("options", "patched"), [((), True), (("--no-patch",), False)])
def test_the_command_runs_a_file(program, options, patched):
    done = run_python("-W", "error", "-m", "gmongo", *options, program(WHAT_IT_SEES), "-m", "--check", "x")
    assert done.stderr == ""
    assert done.stdout == f"__main__ ['-m', '--check', 'x'] {patched} True\n"
    assert done.returncode == 0


def test_the_command_runs_a_module(program, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(program(WHAT_IT_SEES)).parent))
    done = run_python("-m", "gmongo", "-m", "program", "x")
    assert (done.stdout, done.stderr) == ("__main__ ['x'] True True\n", "")


@pytest.mark.parametrize(
    ("ending", "status", "says"),
    [
        ("raise SystemExit(5)", 5, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('no luck')", 1, "no luck"),
        ("raise ValueError('unlucky')", 1, "ValueError: unlucky"),
    ],
)
def test_the_exit_status_is_the_programs(program, ending, status, says):
    done = run_python("-m", "gmongo", program(ending))
    assert done.returncode == status
    assert says in done.stderr


@pytest.mark.parametrize("arguments", [(), ("-m",), ("--unknown", "x.py")])
def test_nothing_to_run_is_a_usage_error(arguments):
    done = run_python("-m", "gmongo", *arguments)
    assert done.returncode == 2
    assert "usage: python -m gmongo [--no-patch] [--check] (-m MODULE | PROGRAM) [ARGUMENT ...]" in done.stderr


ASKS = """
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
def table(request, tmp_path, monkeypatch):
    """Reads the rows of the report, with and without rich."""
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


def test_check_tells_what_was_asked_for_and_what_is_missing(program, table):
    done = run_python("-m", "gmongo", "--check", program(ASKS))
    assert done.returncode == 3
    rows = table(done.stderr)
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
    assert "used 10 names of pymongo and gridfs; 1 missing" in done.stderr


ASKS_OBJECTS = """
    from pymongo import AsyncMongoClient, InsertOne, MongoClient
    with MongoClient(connect=False) as client:
        orders = client.shop.orders
        asked = [(client, "_kill_cursors"), (client, "_options"), (client.shop, "_retryable_read_command"),
                 (orders, "_nothing"), (orders.find(), "_refresh"), (InsertOne({}), "_namespace"),
                 (InsertOne({}), "_add_to_client_bulk"), (client.options, "_ClientOptions__pool_options")]
        print([hasattr(*each) for each in asked])
"""


def test_check_sees_attributes_that_objects_do_not_have(program, table):
    done = run_python("-m", "gmongo", "--check", program(ASKS_OBJECTS))
    assert done.stdout == "[False, True, False, False, False, True, False, False]\n"
    rows = {name: there for name, (there, _) in table(done.stderr).items() if there not in ("yes", "available")}
    assert rows == {
        "pymongo.AsyncMongoClient": "placeholder",
        "pymongo.MongoClient._kill_cursors": "no",
        "pymongo.database.Database._retryable_read_command": "no",
        "pymongo.collection.Collection._nothing": "not in PyMongo either",
        "pymongo.cursor.Cursor._refresh": "no",
        "pymongo.InsertOne._add_to_client_bulk": "no",
        "pymongo.client_options.ClientOptions._ClientOptions__pool_options": "no",
    }
    assert "5 missing" in done.stderr
    assert "The check records names of modules, and absent attributes of gmongo's objects" in done.stderr


def test_check_knows_that_a_module_has_several_names(program):
    done = run_python("-m", "gmongo", "--check", program("from pymongo.synchronous.client_session import _TxnState"))
    assert done.returncode == 1
    assert "pymongo.synchronous.client_session._TxnState" in done.stderr
    assert "1 missing" in done.stderr


@pytest.mark.parametrize(
    ("ending", "status"),
    [("", 0), ("raise SystemExit(5)", 5), ("import pymongo.message", 1), ("raise KeyboardInterrupt", -2)],
)
def test_check_tells_it_however_the_program_ends(program, ending, status):
    done = run_python("-m", "gmongo", "--check", program(f"import pymongo\npymongo.MongoClient\n{ending}"))
    assert done.returncode == status
    assert "pymongo.MongoClient" in done.stderr


def test_without_check_nothing_is_watched(program):
    done = run_python("-m", "gmongo", program("import pymongo, types\nprint(type(pymongo.errors) is types.ModuleType)"))
    assert (done.stdout, done.stderr) == ("True\n", "")
