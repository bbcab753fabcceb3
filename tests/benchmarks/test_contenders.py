"""The contenders as programs, and the load that they are put under."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from math import inf
from threading import Thread

import pytest

from benchmarks import contest, latency, programs, service
from benchmarks.__main__ import main
from benchmarks.load import Exchange, arrivals, put
from benchmarks.processes import WorkerFailed

pytestmark = pytest.mark.long

PING = Exchange(b"ping", b"pong", 4)
OF_PYTHON = [
    name for name, contender in programs.CONTENDERS.items() if not contender.tools and not programs.missing(name)
]


@pytest.fixture
def streams():
    """Three streams that answer until they are closed."""

    def answer(peer):
        while request := peer.recv(4):
            peer.sendall(b"pong" if request == b"ping" else b"what")

    ours, theirs = zip(*(socket.socketpair() for _ in range(3)), strict=True)
    threads = [Thread(target=answer, args=(peer,)) for peer in theirs]
    for thread in threads:
        thread.start()
    yield ours
    for stream in ours:
        stream.shutdown(socket.SHUT_WR)
    for thread in threads:
        thread.join()
    for stream in (*ours, *theirs):
        stream.close()


def test_arrivals_are_the_same_each_time_at_the_wanted_rate():
    times = list(arrivals(100, 1000))
    assert times == list(arrivals(100, 1000)) == sorted(times)
    assert 8 < times[-1] < 12
    assert list(arrivals(inf, 3)) == [0, 0, 0]


def test_each_request_has_a_latency_from_when_it_was_due(streams):
    found = put(streams, PING, 50)
    assert len(found.latencies) == 50
    # All were due at the start: the last one, which waited for a stream, took as long as all together.
    assert max(found.latencies) <= found.clock
    assert sum(found.latencies) > found.clock
    assert len(put(streams, PING, 20, rate=2000).latencies) == 20


def test_another_stream_is_kept_busy_and_not_measured(streams):
    found = put(streams[:2], PING, 20, rate=2000, beside=(streams[2], PING))
    assert len(found.latencies) == 20
    assert len(put(streams, PING, 20).latencies) == 20  # its last answer is not left over


def test_a_wrong_answer_and_an_end_are_failures(streams):
    with pytest.raises(WorkerFailed, match="answered b'what', not b'pong'"):
        put(streams, PING._replace(request=b"????"), 5)
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        with pytest.raises(WorkerFailed, match="ended: "):
            put([ours], PING, 1)


def test_a_number_says_what_and_how_often():
    assert programs.exchange("find_100", 5) == (b"\x03\x00\x00\x05", (500).to_bytes(4, "big"), 4)


def run(arguments, file):
    status = main(["--rounds", "1", "--operations", "10", *arguments, "--json", str(file)])
    tables = json.loads(file.read_text())["tables"]
    return status, {name: {row["name"]: row for row in rows} for name, rows in tables.items() if rows}


def test_every_contender_of_python_runs_every_operation(tmp_path):
    status, tables = run(["--only", "contenders", "--contenders", ",".join(OF_PYTHON)], tmp_path / "run.json")
    assert (status, set(tables)) == (0, {"contenders"})
    assert set(tables["contenders"]) == {contest.name(kind) for kind in contest.SHARES}
    for row in tables["contenders"].values():
        assert set(row["numbers"]) == set(OF_PYTHON)
        assert all(number > 0 for numbers in row["numbers"].values() for number in numbers)


def test_latency_at_each_load(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(latency, "SCENES", [latency.Scene(4, 1), latency.Scene(4, 2)])
    arguments = ["--only", "latency", "--contenders", "gmongo,asyncio", "--docs", str(tmp_path)]
    status, tables = run(arguments, tmp_path / "run.json")
    assert status == 0
    assert (tmp_path / "contenders.svg").exists()
    expected = {(load, count) for load in latency.LOADS for count in (1, 2)} - {(latency.BESIDE, 2)}
    places = {
        latency.name(load, latency.Scene(4, count), quantile)
        for load, count in expected
        for quantile in latency.QUANTILES
    }
    saturations = {latency.name(latency.SATURATION, scene) for scene in latency.SCENES}
    assert set(tables["latency"]) == places | saturations
    for count in (1, 2):
        few, most = (
            tables["latency"][f"80 %, {count} processes, {each}"]["numbers"]["gmongo"] for each in ("p50", "p99.9")
        )
        assert 0 < few[0] <= most[0]
    assert "4 callers, processes: 2" in capsys.readouterr().out


def test_a_contender_whose_tools_are_not_there_is_left_out_by_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(programs.CONTENDERS, "go", programs.CONTENDERS["go"]._replace(tools=("no-such-tool",)))
    status, tables = run(["--only", "contenders", "--contenders", "floor,go"], tmp_path / "run.json")
    assert status == 0
    assert "left out: Go, `bson.M` (there is no no-such-tool)" in capsys.readouterr().err
    assert all(set(row["numbers"]) == {"floor"} for row in tables["contenders"].values())


def test_one_that_cannot_be_built_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(programs, "BUILT", tmp_path)
    broken = programs.CONTENDERS["node"]._replace(tools=("ls",), build=("ls no-such-file",))
    monkeypatch.setitem(programs.CONTENDERS, "node", broken)
    status, _tables = run(["--only", "contenders", "--contenders", "floor,node"], tmp_path / "run.json")
    assert status == 1
    assert "Node.js, objects: ls: " in capsys.readouterr().out


def test_one_that_does_not_start_says_why(monkeypatch):
    monkeypatch.setattr(programs, "command", lambda _name: [sys.executable, "-c", "raise SystemExit('no luck')"])
    with pytest.raises(WorkerFailed, match="no luck"), programs.running("gmongo", 1, 1):
        pass


def test_the_time_of_another_process_counts_all_its_threads():
    code = (
        "import threading, time\nt = threading.Thread(target=lambda: sum(range(10**6)))\nt.start()\nt.join()\ninput()"
    )
    command = [sys.executable, "-c", f"{code}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        program = programs.Program([process], [])
        while not (seconds := program.processor_seconds):
            pass
        assert program.processor_seconds >= seconds > 0


def test_the_service_on_each_kind_of_concurrency(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(service, "CALLERS", 4)
    monkeypatch.setattr(service, "ROUTES", {"/hundred": 0.2})
    available = {name for name in service.SERVICES if service.missing(name) is None}
    status, tables = run(["--only", "service", "--contenders", "gmongo"], tmp_path / "run.json")
    assert status == 0
    for route in service.ROUTES:
        for quantity in (service.COST, service.SATURATION, service.MEMORY, f"{service.HALF}, p99"):
            numbers = tables["service"][f"{route}: {quantity}"]["numbers"]
            assert set(numbers) == available
            assert all(found > 0 for (found,) in numbers.values())
    assert "The service, /hundred" in capsys.readouterr().out


def test_a_service_that_lacks_a_package_is_left_out_by_its_name(tmp_path, monkeypatch, capsys):
    lacking = service.SERVICES["Starlette, uvicorn/uvloop, PyMongo"]._replace(packages=("no_such_package",))
    monkeypatch.setattr(service, "SERVICES", {"Starlette": lacking})
    status, tables = run(["--only", "service", "--contenders", "gmongo"], tmp_path / "run.json")
    assert (status, tables) == (0, {})
    assert "left out: Starlette (there is no no_such_package)" in capsys.readouterr().err
