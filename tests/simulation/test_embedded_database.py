from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

import gevent
import pytest
from gevent.server import StreamServer

from gmongo import MongoClient
from gmongo.testing import URI_VARIABLE, EmbeddedDatabase, EmbeddedDatabaseError, database_uri, embedded, nx_server
from tests.support.programs import ROOT, environment, run_python

pytest.importorskip("nx_27017", reason="the embedded database needs nx-27017")

PARENT_PROGRAM = """
{patch}
import time
from gmongo.testing import EmbeddedDatabase
database = EmbeddedDatabase(engine={engine!r}).start()
print(database.port, flush=True)
{then}
"""
PATCH_STATEMENT = "from gevent import monkey; monkey.patch_all()"
needs_mongod = pytest.mark.skipif(embedded.default_engine() != "mongod", reason="no mongod runs here")


@pytest.fixture
def temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set and return the directory in which this test and its child processes create temporary
    files.
    """
    directory = tmp_path / "temporary_directory"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    monkeypatch.setenv("TMPDIR", str(directory))
    return directory


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionError:  # no server listens on the port
        return False
    return True


def becomes_true(condition) -> bool:
    deadline = monotonic() + 20
    while not condition() and monotonic() < deadline:
        gevent.sleep(0.05)
    return condition()


def count_after_insert(uri: str) -> int:
    with MongoClient(uri) as client:
        client.test.things.insert_one({})
        return client.test.things.count_documents({})


def test_databases_start_in_parallel_while_other_greenlets_run(temporary_directory, monkeypatch):
    # The test delays the readiness of each database until this greenlet has run more than five times.
    find_process = nx_server.find_process_id
    monkeypatch.setattr(nx_server, "find_process_id", lambda *given: find_process(*given) if ticks > 5 else None)
    databases = [EmbeddedDatabase() for _ in range(3)]
    ticks = 0
    starting = [gevent.spawn(database.start) for database in databases]
    while not all(greenlet.ready() for greenlet in starting):
        ticks += 1
        gevent.sleep(0.01)
    try:
        assert ticks > 5
        assert len({database.port for database in databases}) == 3
        assert [count_after_insert(database.uri) for database in databases] == [1, 1, 1]
    finally:
        for database in databases:
            database.stop()
    assert list(temporary_directory.iterdir()) == []


def test_database_with_path_keeps_its_data(tmp_path, temporary_directory):
    path = tmp_path / "kept.db"
    for expected in (1, 2):
        with EmbeddedDatabase(path) as database:
            assert count_after_insert(database.uri) == expected
    assert path.exists()
    assert list(temporary_directory.iterdir()) == []


def test_restarted_database_is_empty():
    database = EmbeddedDatabase()
    for _ in range(2):
        with database:
            assert count_after_insert(database.uri) == 1
            with pytest.raises(EmbeddedDatabaseError, match="started already"):
                database.start()
        assert repr(database) == "<EmbeddedDatabase not running>"


def test_uri_of_database_before_start_raises_error():
    with pytest.raises(EmbeddedDatabaseError, match="not running"):
        _ = EmbeddedDatabase().uri


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", ["nx", pytest.param("mongod", marks=needs_mongod)])
@pytest.mark.parametrize("patch", ["", PATCH_STATEMENT], ids=["not patched", "patched"])
def test_server_ends_after_kill_of_parent(patch, engine, temporary_directory):
    program = PARENT_PROGRAM.format(patch=patch, engine=engine, then="time.sleep(60)")
    parent = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        assert is_listening(port)
        parent.send_signal(signal.SIGKILL)
    assert becomes_true(lambda: not is_listening(port))
    assert becomes_true(lambda: list(temporary_directory.iterdir()) == [])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("patch", ["", PATCH_STATEMENT], ids=["not patched", "patched"])
def test_server_ends_after_exit_of_parent_that_did_not_stop_database(patch, temporary_directory):
    done = run_python("-c", PARENT_PROGRAM.format(patch=patch, engine="nx", then=""))
    assert done.returncode == 0, done.stderr
    assert becomes_true(lambda: not is_listening(int(done.stdout)))
    assert becomes_true(lambda: list(temporary_directory.iterdir()) == [])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("patch", ["", PATCH_STATEMENT], ids=["not patched", "patched"])
def test_stop_after_server_crash_sends_no_signal(patch):
    # After the crash, another program may have the process group ID of the server, and must get no
    # signal.
    program = f"""
{patch}
import os, signal, time
import gevent
from gmongo.testing import EmbeddedDatabase
database = EmbeddedDatabase(engine="nx").start()
pid = database._server._process.pid
os.kill(pid, signal.SIGKILL)
while database._server._process.poll() is None:
    gevent.sleep(0.01)
signalled = []
os.killpg = lambda *arguments: signalled.append(arguments)
database.stop()
print(signalled)
"""
    assert run_python("-c", program).stdout == "[]\n"


def test_stop_in_forked_child_does_not_end_server():
    with EmbeddedDatabase() as database:
        if (child := os.fork()) == 0:
            database.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert count_after_insert(database.uri) == 1


def test_database_runs_in_native_thread():
    def insert_and_count() -> int:
        with EmbeddedDatabase() as database:
            return count_after_insert(database.uri)

    assert gevent.get_hub().threadpool.apply(insert_and_count) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["closes", "http"])
def test_database_uses_second_port_if_first_port_is_in_use(answer, monkeypatch):
    free_port = nx_server._find_free_port

    def reply(connection, _peer):
        connection.recv(100)
        connection.sendall(answer)
        connection.close()

    other_server = StreamServer(("127.0.0.1", 0), reply)
    other_server.start()
    ports = [other_server.server_port]
    monkeypatch.setattr(nx_server, "_find_free_port", lambda: ports.pop() if ports else free_port())
    try:
        with EmbeddedDatabase() as database:
            assert database.port != other_server.server_port
            assert count_after_insert(database.uri) == 1
    finally:
        other_server.stop()


def test_start_error_contains_output_of_server(tmp_path, temporary_directory):
    with pytest.raises(EmbeddedDatabaseError, match="unable to open database file"):
        EmbeddedDatabase(tmp_path / "missing" / "data.db").start()
    assert list(temporary_directory.iterdir()) == []


def test_start_of_slow_server_raises_error_after_timeout(temporary_directory):
    database = EmbeddedDatabase(start_timeout=0.01)
    with pytest.raises(EmbeddedDatabaseError, match=r"did not reply in time"):
        database.start()
    assert list(temporary_directory.iterdir()) == []


def test_gevent_timeout_during_start_leaves_no_temporary_files(temporary_directory):
    database = EmbeddedDatabase()
    timeout = gevent.Timeout(0.1)
    with pytest.raises(gevent.Timeout) as raised, timeout:
        database.start()
    assert raised.value is timeout
    assert list(temporary_directory.iterdir()) == []
    with database:
        assert count_after_insert(database.uri) == 1


def test_start_without_package_nx_raises_error_with_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nx_27017", None)
    with pytest.raises(EmbeddedDatabaseError, match=r"pip install 'gmongo\[testing\]'"):
        EmbeddedDatabase().start()


def test_database_uri_uses_environment_variable(monkeypatch):
    monkeypatch.setenv(URI_VARIABLE, "mongodb://db.example.com/")
    with database_uri() as uri:
        assert uri == "mongodb://db.example.com/"
    monkeypatch.delenv(URI_VARIABLE)
    with database_uri() as uri:
        assert count_after_insert(uri) == 1


@pytest.mark.parametrize("engine", ["secantus", None])
def test_unknown_engine_raises_value_error(engine):
    with pytest.raises(ValueError, match=r"engine must be 'mongod' or 'nx'"):
        EmbeddedDatabase(engine=engine)
