"""Tests of real servers that ``gmongo.testing`` starts.

Several tests check that no file of a server remains, and that the error of a failed start says how to
correct the cause.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import gevent
import pytest

from gmongo import MongoClient
from gmongo.errors import OperationFailure, ServerSelectionTimeoutError
from gmongo.server_api import ServerApi
from gmongo.testing import EmbeddedDatabase, EmbeddedDatabaseError, EmbeddedReplicaSet
from gmongo.testing.__main__ import main
from gmongo.testing.embedded import default_engine
from gmongo.testing.mongod import program, server
from tests.support.programs import ROOT, environment

needs_mongod = pytest.mark.skipif(default_engine() != "mongod", reason="no mongod runs here")


@pytest.fixture
def temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set and return the directory in which this test creates temporary files."""
    directory = tmp_path / "temporary_directory"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def write_script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@needs_mongod
def test_standalone_with_users_accepts_fail_points_and_refuses_anonymous_read(temporary_directory):
    with EmbeddedDatabase(engine="mongod", users={"ada": "p@ss,=w"}) as database:
        with MongoClient(database.uri) as client:
            client.test.things.insert_one({"_id": 1})
            client.admin.command("configureFailPoint", "failCommand", mode="off")
        with (
            MongoClient("127.0.0.1", database.port) as stranger,
            pytest.raises(OperationFailure, match="requires auth"),
        ):
            stranger.test.things.find_one()
        database.server.restart()
        with MongoClient(database.uri) as client:
            assert client.test.things.find_one() == {"_id": 1}
    assert list(temporary_directory.iterdir()) == []


@needs_mongod
def test_all_threads_are_suspended_after_stop():
    with EmbeddedDatabase(engine="mongod") as database:
        for _ in range(20):
            database.server.stop()
            threads = Path(f"/proc/{database.server.pid}/task").glob("*/stat")
            assert {thread.read_text().rpartition(") ")[2][0] for thread in threads} == {"T"}
            database.server.resume()


@needs_mongod
def test_stop_returns_if_another_greenlet_resumes_the_server(monkeypatch):
    monkeypatch.setattr(server, "_is_suspended", lambda _thread: False)
    with EmbeddedDatabase(engine="mongod") as database:
        stopping = gevent.spawn(database.server.stop)
        gevent.sleep(0)
        database.server.resume()
        stopping.get(timeout=5)


@needs_mongod
@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"tls": True, "users": {"ada": "secret"}}], ids=["plain", "TLS and users"])
def test_writes_succeed_while_members_are_killed_stopped_and_stepped_down(settings, temporary_directory):
    with EmbeddedReplicaSet(**settings) as replica_set, MongoClient(replica_set.uri) as client:
        things = client.test.things
        killed = replica_set.primary
        killed.kill()
        things.insert_one({"_id": "killed"})
        killed.restart()
        stopped = replica_set.primary
        stopped.stop()
        things.insert_one({"_id": "stopped"})
        stopped.resume()
        replica_set.await_members()
        replica_set.primary.step_down(1)
        things.insert_one({"_id": "stepped down"})
        assert things.count_documents({}) == 3
    assert [each for each in temporary_directory.iterdir() if not each.name.startswith("gmongo-tls-")] == []


@needs_mongod
def test_server_requires_stable_api_version_after_restart_and_step_down():
    with EmbeddedReplicaSet(1, require_api_version=True, users={"ada": "lovelace"}) as replica_set:
        replica_set.primary.restart()
        replica_set.primary.step_down(1)
        unversioned_client = MongoClient(replica_set.uri, serverSelectionTimeoutMS=1000)
        with unversioned_client, pytest.raises(ServerSelectionTimeoutError, match="apiVersion parameter is required"):
            unversioned_client.test.things.insert_one({})
        with MongoClient(replica_set.uri, server_api=ServerApi("1")) as client:
            client.test.things.insert_one({})


@pytest.mark.parametrize("port", [-1, 65536, "27017", True])
def test_invalid_port_is_refused(port):
    with pytest.raises(ValueError, match="port must be a number from 0 to 65535"):
        EmbeddedReplicaSet(1, port=port)


def test_replica_set_that_requires_api_version_without_users_is_refused():
    with pytest.raises(ValueError, match="require_api_version needs users in a replica set"):
        EmbeddedReplicaSet(1, require_api_version=True)


@pytest.mark.parametrize("kind", [EmbeddedDatabase, EmbeddedReplicaSet])
def test_unknown_setting_is_refused_with_nearest_name(kind):
    with pytest.raises(TypeError, match=rf"{kind.__name__} has no setting 'prot' \(did you mean 'port'\?\)"):
        kind(prot=27017)


@needs_mongod
def test_members_of_replica_set_listen_on_port_of_setting_and_next_ports():
    with EmbeddedReplicaSet(2, port=27413) as replica_set:
        assert [member.port for member in replica_set.members] == [27413, 27414]


@needs_mongod
def test_command_line_starts_replica_set_on_port_until_signal():
    command = [sys.executable, "-m", "gmongo.testing", "--mongod", "1", "--port", "27415", "--user", "ada:secret"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        uri = process.stdout.readline().strip()
        assert uri == "mongodb://ada:secret@127.0.0.1:27415/?replicaSet=rs0"
        with MongoClient(uri) as client:
            client.test.things.insert_one({})
        process.terminate()
    assert process.returncode == 0


def test_command_line_refuses_option_of_simulation_with_mongod(capsys):
    with pytest.raises(SystemExit):
        main(["--mongod", "1", "--arbiters", "1"])
    assert "--mongod cannot be combined with --arbiters" in capsys.readouterr().err


def test_setting_that_engine_does_not_have_is_refused():
    with pytest.raises(ValueError, match="the engine 'nx' has no setting 'tls'"):
        EmbeddedDatabase(engine="nx", tls=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo 'db version v4.0.28'", "has version 4.0.28; gmongo needs 4.2 or newer"),
        ("echo 'error while loading shared libraries: libssl.so.3' >&2; exit 127", "needs OpenSSL 3, libcurl 4"),
        ("exit 1", "does not run here"),
    ],
)
def test_error_of_unusable_server_program_contains_remedy(text, expected, tmp_path):
    with pytest.raises(EmbeddedDatabaseError, match=expected):
        EmbeddedDatabase(engine="mongod", program=write_script(tmp_path / "mongod", text)).start()


def test_error_of_missing_server_program_names_extra_to_install(tmp_path, monkeypatch):
    with pytest.raises(EmbeddedDatabaseError, match=r"is not a file\. `program` or GMONGO_MONGOD must name mongod"):
        EmbeddedDatabase(engine="mongod", program=tmp_path / "missing").start()
    monkeypatch.delenv(program.PROGRAM_VARIABLE, raising=False)
    monkeypatch.setattr(program, "_find_in_wheel", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedDatabaseError, match=r"pip install 'gmongo\[mongod\]'"):
        EmbeddedReplicaSet(1).start()


def test_program_of_environment_variable_has_priority_over_path(tmp_path, monkeypatch):
    variable_program = write_script(tmp_path / "named", "echo 'db version v7.0.1'")
    (tmp_path / "path").mkdir()
    path_program = write_script(tmp_path / "path" / "mongod", "echo 'db version v6.0.1'")
    argument_program = write_script(tmp_path / "given", "echo 'db version v5.0.1'")
    monkeypatch.setattr(program, "_find_in_wheel", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=os.pathsep)
    monkeypatch.setenv(program.PROGRAM_VARIABLE, str(variable_program))
    assert [program.find_program(each).version[0] for each in (argument_program, None)] == [5, 7]
    monkeypatch.delenv(program.PROGRAM_VARIABLE)
    assert program.find_program().path == path_program


@needs_mongod
def test_error_of_port_in_use_contains_server_log_and_no_file_remains(temporary_directory, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other_socket:
        replica_set = EmbeddedReplicaSet(1, port=other_socket.getsockname()[1])
        with pytest.raises(EmbeddedDatabaseError, match=r"(?s)Another program uses the port.*log of mongod ends with"):
            replica_set.start()
    assert list(temporary_directory.iterdir()) == []
    assert capsys.readouterr().err == "", "no greenlet prints a traceback"


@needs_mongod
def test_data_path_that_is_no_folder_is_refused_and_no_file_remains(tmp_path, temporary_directory):
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedDatabaseError, match="Let `path`"):
        EmbeddedDatabase(tmp_path / "file" / "data", engine="mongod").start()
    assert list(temporary_directory.iterdir()) == []


TEST_MODULE = """
import pytest

@pytest.mark.parametrize("number", range(6))
def test_database_is_empty(number, mongodb_database, mongodb_server):
    assert mongodb_database.list_collection_names() == []
    mongodb_database.things.insert_one({"number": number})
    with open("ports.txt", "a") as file:
        print(mongodb_server.uri, file=file)
"""


@needs_mongod
@pytest.mark.long
@pytest.mark.parametrize(("options", "server_count"), [((), 1), (("-n", "2"), 2), (("-n", "2", "--mongodb-shared"), 1)])
def test_plugin_starts_one_server_for_each_process_or_one_shared_server(options, server_count, tmp_path):
    (tmp_path / "test_users.py").write_text(TEST_MODULE)
    plugin = "gmongo.testing.pytest_plugin"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin, *options]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert "6 passed" in done.stdout, done.stdout + done.stderr
    assert len(set((tmp_path / "ports.txt").read_text().split())) == server_count


def test_unreachable_server_of_mongodb_uri_ends_each_test_before_start(tmp_path):
    (tmp_path / "test_users.py").write_text(TEST_MODULE)
    variables = {**environment(), "MONGODB_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "gmongo.testing.pytest_plugin"]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert "6 errors in" in done.stdout, done.stdout + done.stderr
    assert "failed" not in done.stdout
    assert "the server of MONGODB_URI is not ready: 127.0.0.1:1: [Errno" in done.stdout


def test_pytest_plugin_imports_no_driver():
    source = "import sys, gmongo.testing.pytest_plugin; print('gevent' in sys.modules, 'bson' in sys.modules)"
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_command_with_mongod_requires_no_package_of_the_simulation():
    missing = "import sys; sys.modules.update(pcre2=None, sortedcontainers=None, trustme=None)"
    source = f"{missing}; import gmongo.testing.__main__ as program"
    command = [sys.executable, "-c", f"{source}; program.main(['--mongod', '1', '--version', '8.0.1'])"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("error: --mongod cannot be combined with --version")
