from __future__ import annotations

import importlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from bson import ObjectId

from gmongo import MongoClient
from gmongo.testing import URI_VARIABLE
from tests.support.cases import with_cases
from tests.support.programs import ROOT, TIMEOUT, environment, run_python

pytestmark = pytest.mark.long

UNREACHABLE_URI = "mongodb://127.0.0.1:1/"
# The program restores the handler of SIGINT: if a shell runs the tests as a background job, all child
# processes ignore SIGINT.
INTERRUPTIBLE_MAIN_JOB = """
import signal, sys
from examples.main_job import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


@pytest.mark.parametrize(
    "arguments", [("-m", "examples.quickstart"), ("examples/quickstart.py",)], ids=["module", "file"]
)
def test_quickstart_prints_results_of_embedded_database(arguments):
    result = run_python(*arguments)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    for line in (
        "find_one: {'name': 'Mars', 'moons': 2, 'rocky': True}",
        "find, sorted: ['Earth', 'Mars', 'Venus']",
        "create_index: name_1",
        "DuplicateKeyError: Earth exists already, code 11000",
        "update_one: matched 1 modified 1",
        "bulk_write: inserted 1 modified 1",
        "aggregate: 3 giant planets with 397 moons",
        "100 inserts, 20 at a time: now 106 documents",
    ):
        assert line in result.stdout.splitlines()


def test_quickstart_removes_its_collections_from_existing_database(mongodb_uri, client):
    result = run_python("-m", "examples.quickstart", uri=mongodb_uri)
    assert result.returncode == 0, result.stderr
    remaining_names = client.gmongo_examples.list_collection_names()
    assert not [name for name in remaining_names if name.startswith("planets_")]


@pytest.mark.parametrize(
    ("options", "server_note", "process_count", "patch_note"),
    [
        ((), "gunicorn, 2 gevent workers,", 2, "(patched)"),
        (("--preload",), "gunicorn, 2 gevent workers, preloaded,", 2, "(patched)"),
        (("--server", "pywsgi"), "gevent.pywsgi, not patched,", 1, "(not patched)"),
    ],
    ids=["gunicorn", "preload", "pywsgi"],
)
def test_main_job_stores_every_document(options, server_note, process_count, patch_note):
    result = run_python("-m", "examples.main_job", "--requests", "60", "--concurrency", "10", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    table = dict(row for row in map(table_cells, result.stdout.splitlines()) if row is not None)
    assert server_note in result.stdout
    assert result.stdout.count(patch_note) == process_count
    assert table["requests"] == "60"
    assert table["failures"] == "0"
    assert table["documents stored"] == "30 of 30 posted"
    assert result.stdout.splitlines()[-1] == "all is well"


def test_main_job_removes_its_notes_from_existing_database(mongodb_uri, client):
    result = run_python("-m", "examples.main_job", "--requests", "20", "--server", "pywsgi", uri=mongodb_uri)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(rf"^database: MONGODB_URI, version \S+, {re.escape(mongodb_uri)}$", result.stdout, re.MULTILINE)
    assert client.gmongo_examples.notes.count_documents({"topic": {"$regex": "^main job"}}) == 0


def test_main_job_without_database_prints_selection_error():
    result = run_python("-m", "examples.main_job", uri=UNREACHABLE_URI)
    assert result.returncode == 1
    assert "ServerSelectionTimeoutError" in result.stdout
    assert "topology_type: Unknown" in " ".join(result.stdout.split())


def test_main_job_stops_at_its_time_limit():
    result = run_python("-m", "examples.main_job", "--requests", "100000", "--time-limit", "3")
    assert result.returncode == 1
    assert "not finished after 3 seconds" in result.stdout
    assert "Traceback" not in result.stderr


def test_interrupted_main_job_stops_its_processes_and_removes_its_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-c", INTERRUPTIBLE_MAIN_JOB, "--requests", "100000"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert "mongodb://" in job.stdout.readline()
        assert "gunicorn" in job.stdout.readline()
        job.send_signal(signal.SIGINT)
        try:
            rest, _ = job.communicate(timeout=TIMEOUT)
        finally:
            job.kill()
    assert job.returncode == 130
    assert "interrupted" in rest
    assert list(tmp_path.iterdir()) == []


def table_cells(line: str) -> tuple[str, str] | None:
    """Return the name and the value in a line of the result table, or None if the line is no table
    row.
    """
    parts = [part.strip() for part in line.strip("│").split("│")]
    return (parts[0], parts[1]) if len(parts) == 2 else None


@pytest.fixture(scope="module")
def wsgi_app(mongodb_uri: str) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(URI_VARIABLE, mongodb_uri)
        patch.delitem(sys.modules, "examples.wsgi_app", raising=False)
        module = importlib.import_module("examples.wsgi_app")
        yield module
        module.client.close()
        sys.modules.pop("examples.wsgi_app", None)


@pytest.fixture
def http_client(wsgi_app: ModuleType) -> Any:
    return wsgi_app.app.test_client()


def test_application_stores_and_returns_note(http_client):
    posted = http_client.post("/notes", json={"text": "hello", "topic": "greetings"})
    assert posted.status_code == 201
    response = http_client.get(posted.headers["Location"])
    assert response.status_code == 200
    assert {**response.json, "created": None} == {
        "_id": posted.json["id"],
        "text": "hello",
        "topic": "greetings",
        "created": None,
    }


def test_application_lists_newest_notes_of_topic(http_client):
    topic = str(ObjectId())
    ids = [http_client.post("/notes", json={"text": str(n), "topic": topic}).json["id"] for n in range(4)]
    http_client.post("/notes", json={"text": "other topic"})
    listed = http_client.get(f"/notes?topic={topic}&limit=3").json["notes"]
    assert [note["_id"] for note in listed] == [ids[3], ids[2], ids[1]]


@with_cases
def test_application_rejects_invalid_note_with_400(http_client, invalid_note, message):
    response = http_client.post("/notes", json=invalid_note)
    assert (response.status_code, response.json) == (400, {"error": message})


@pytest.mark.parametrize("note_id", ["nonsense", "0123456789abcdef01234567"])
def test_application_returns_404_for_missing_note(http_client, note_id):
    missing = http_client.get(f"/notes/{note_id}")
    assert (missing.status_code, missing.json) == (
        404,
        {"error": f"the note {note_id} does not exist"},
    )


def test_health_page_shows_topology_and_pools(http_client, wsgi_app):
    health = http_client.get("/health")
    assert health.status_code == 200
    assert health.json["status"] == "ok"
    assert health.json["topology"] == wsgi_app.client.topology_description.topology_type_name
    assert health.json["patched"] is False
    known_servers = {server["address"]: server for server in health.json["servers"]}
    assert known_servers and all(server["type"] != "Unknown" for server in known_servers.values())
    for pool in health.json["pools"]:
        assert pool["address"] in known_servers
        assert pool["total"] == pool["available"] + pool["in_use"] + pool["pending"] >= 1
        assert pool["state"] == "ready"
        assert pool["waiting"] == 0


def test_application_returns_503_without_database(http_client, wsgi_app, monkeypatch):
    with MongoClient(UNREACHABLE_URI, serverSelectionTimeoutMS=50) as disconnected:
        monkeypatch.setattr(wsgi_app, "client", disconnected)
        monkeypatch.setattr(wsgi_app, "notes", disconnected.gmongo_examples.notes)
        for response in (
            http_client.get("/health"),
            http_client.post("/notes", json={"text": "x"}),
            http_client.get("/notes"),
        ):
            assert (response.status_code, response.json) == (
                503,
                {"error": "the database is not available"},
            )
