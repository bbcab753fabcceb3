"""Several processes side by side: their sockets, and the terminal."""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import gevent.subprocess
import pytest
from gevent import socket
from gevent.server import StreamServer
from gevent.socket import wait_read

from gmongo import MongoClient, _clock
from gmongo.errors import ConfigurationError
from gmongo.status import StatusPage, process_state, publish, worker_states, workers
from gmongo.status.__main__ import main
from gmongo.testing import Deployment
from tests.status.test_page import request
from tests.support.wait import eventually

# What a worker does: it makes a client before it is forked, as under ``gunicorn --preload``.
_PROGRAM = """
import os
import sys
import gevent
import gevent.os
from gmongo import MongoClient
from gmongo.status import publish
publish(sys.argv[1])
client = MongoClient(sys.argv[2], appName="worker")
client.admin.command("ping")
while not os.path.exists(f"{sys.argv[1]}/{os.getpid()}.sock"):
    gevent.sleep(0.01)
if len(sys.argv) > 3:
    gevent.os.fork() and gevent.os.fork()
    client.admin.command("ping")
gevent.sleep(60)
"""


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with Deployment.standalone() as started:
        yield started


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def start(processes: Any, directory: Path, uri: str, *more: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(directory), uri, *more])
    processes.append(process)
    return process


def states(directory: Path) -> list[dict[str, Any]]:
    return [each for each in worker_states(directory) if each["clients"] and each["clients"][0]["servers"][0]["pool"]]


@pytest.mark.usefixtures("patient")
def test_workers_are_gathered_and_the_dead_are_forgotten(tmp_path: Path, deployment: Any, started: Any) -> None:
    processes = [start(started, tmp_path / "states", deployment.uri) for _ in range(2)]
    found = eventually(lambda: len(each := states(tmp_path / "states")) == 2 and each, 20)
    assert {each["process"] for each in found} == {process.pid for process in processes}
    assert [each["clients"][0]["application"] for each in found] == ["worker"] * 2
    processes[0].kill()
    processes[0].wait()
    assert [each["process"] for each in worker_states(tmp_path / "states")] == [processes[1].pid]
    assert [path.stem for path in (tmp_path / "states").iterdir()] == [str(processes[1].pid)]


def test_forked_workers_serve_themselves(tmp_path: Path, deployment: Any, started: Any) -> None:
    parent = start(started, tmp_path, deployment.uri, "fork")
    found = eventually(lambda: len(each := states(tmp_path)) == 3 and each, 20)
    processes = {each["process"] for each in found}
    assert len(processes) == 3
    assert parent.pid in processes
    for child in processes:
        os.kill(child, 9)


@pytest.mark.usefixtures("patient")
def test_only_the_user_gets_in(tmp_path: Path) -> None:
    directory = tmp_path / "states"
    publish(directory)
    publish(directory)  # once more changes nothing
    path = eventually(lambda: next(directory.glob("*.sock"), None))
    assert directory.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o177 == 0
    assert [each["process"] for each in worker_states(directory)] == [os.getpid()]
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for use in (publish, worker_states):
        with pytest.raises(ConfigurationError, match="writable by that user alone"):
            use(tmp_path / "open")


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = StatusPage(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    for use in (publish, worker_states):
        with pytest.raises(ConfigurationError, match="belong to this user"):
            use(tmp_path)
    assert main([str(tmp_path), "--once"]) == 1
    (process,) = json.loads(request(page, "format=json")[2])["processes"]
    assert "belong to this user" in process["error"]
    assert process["clients"] == []


def test_a_directory_that_has_gone_is_an_empty_page(tmp_path: Path) -> None:
    page = StatusPage(tmp_path / "states")
    eventually(lambda: list((tmp_path / "states").glob("*.sock")))
    shutil.rmtree(tmp_path / "states")
    assert json.loads(request(page, "format=json")[2])["processes"] == []


def number_of_a_dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_to_look_removes_nothing_but_sockets_of_processes_that_have_ended(tmp_path: Path) -> None:
    dead = number_of_a_dead_process()
    with ExitStack() as open_sockets:

        def bind(name: str) -> socket.socket:
            made = open_sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            made.bind(str(tmp_path / name))
            return made

        for name in ("notes.sock", f"{dead + 1}.sock", "1.sock"):
            (tmp_path / name).write_text("precious")
        (tmp_path / "2.sock").mkdir()
        (tmp_path / "elsewhere").write_text("precious")
        (tmp_path / "3.sock").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "4.sock").symlink_to(tmp_path / "nowhere")
        bind("php-fpm.sock")  # another program's, which does not listen yet
        bind(f"0{dead}.sock")
        bind(f"{os.getppid()}.sock")  # of a process that lives, and does not listen yet
        kept = set(os.listdir(tmp_path))
        bind(f"{dead}.sock")
        assert worker_states(tmp_path) == []
        assert set(os.listdir(tmp_path)) == kept


def test_a_socket_of_another_user_is_neither_asked_nor_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"{number_of_a_dead_process()}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        real = Path.lstat

        def lstat(self: Path) -> Any:
            found = real(self)
            return SimpleNamespace(st_mode=found.st_mode, st_uid=found.st_uid + 1) if self == path else found

        monkeypatch.setattr(Path, "lstat", lstat)
        assert worker_states(tmp_path) == []
        assert path.exists()


@pytest.mark.parametrize("suffix", ["sock", "new"])
def test_to_publish_overwrites_nothing(tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / f"{os.getpid()}.{suffix}"
    path.write_text("precious")
    publish(tmp_path)
    eventually(lambda: "was interrupted" in caplog.text)
    assert path.read_text() == "precious"
    assert workers._published.pop(tmp_path)._server is None


@pytest.mark.usefixtures("patient")
def test_the_page_gathers_and_the_query_text_is_not_served(tmp_path: Path) -> None:
    page = StatusPage(tmp_path)
    eventually(lambda: list(tmp_path.glob("*.sock")))
    (process,) = json.loads(request(page, "format=json")[2])["processes"]
    assert process["process"] == os.getpid()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("first", [True, False], ids=["the text is asked for first", "the text is asked for later"])
def test_each_reader_is_shown_the_text_of_operations_only_on_request(tmp_path: Path, first: bool) -> None:
    """One directory has several readers, each of which is told by itself what to show."""
    publish(tmp_path, query_text=first)
    pages = {shown: StatusPage(tmp_path, query_text=shown) for shown in (first, not first)}
    tracing = {"query_text_max_length": 1000}
    with Deployment.standalone() as server, MongoClient(server.uri, slow_operation_ms=0, tracing=tracing) as client:
        client.app.users.insert_one({"name": "hunter2"})
        eventually(lambda: list(tmp_path.glob("*.sock")))
        for shown, page in pages.items():
            assert (b"hunter2" in request(page, "format=json")[2]) is shown
            assert ("hunter2" in str(worker_states(tmp_path, shown))) is shown
        assert "hunter2" not in str(worker_states(tmp_path))


STATE = process_state()
CLIENT: dict[str, Any] = {
    "number": 1, "application": "", "topology": "", "replicaSet": "", "servers": [], "operations": [], "slow": [],
    "history": [], "retries": {"tokens": 1, "retries": 0, "slept": 0, "exhausted": 0, "others": 0, "errors": 0},
}  # fmt: skip
POOL = dict.fromkeys(
    ("generation", "total", "available", "pending", "waiting", "inUse", "minPoolSize", "maxPoolSize"), 0
) | {"state": "ready", "inUseBy": {"cursor": 1}, "oldestWaitMS": None}
TIMES = {"sinceMS": 1, "connection": 1}
SERVER = {"address": "h:1", "type": "Mongos", "roundTripMS": 1, "minRoundTripMS": 1, "error": "", "pool": POOL}


def state_with(client: Any) -> dict[str, Any]:
    return {**STATE, "process": 7, "clients": [client]}


WRONG: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"\xff\xfe{",
    "an empty object": b"{}",
    "a list": b"[]",
    "null": b"null",
    "a number": b"7",
    "deeply nested": b"[" * 1_000_000,
    "deeply nested in a field": b'{"process": 7, "version": "", "clients": ' + b'[{"a":' * 100_000,
    "too many digits": b'{"process": ' + b"7" * 5000,
    "too much": b" " * 4_100_000,
    "without clients": json.dumps({"process": 7, "version": ""}).encode(),
    "another process": json.dumps(STATE).encode(),
    "clients that are none": json.dumps(state_with(None)).encode(),
    "an empty client": json.dumps(state_with({})).encode(),
    "a server without a pool": json.dumps(state_with({**CLIENT, "servers": [{**SERVER, "pool": 5}]})).encode(),
    "a number that is none": json.dumps(state_with({**CLIENT, "number": float("nan")})).encode(),
    "a number without end": json.dumps(state_with(CLIENT)).replace('"slept": 0', '"slept": 1e999').encode(),
    "a huge number": json.dumps(state_with({**CLIENT, "number": 10**300})).encode(),
    "a flag for a number": json.dumps(state_with({**CLIENT, "number": True})).encode(),
    "an operation without a time": json.dumps(state_with({**CLIENT, "operations": [{"phase": "x"}]})).encode(),
}


@contextmanager
def answering(path: Path, serve: Callable[[Any], None]) -> Iterator[None]:
    """A worker that answers what it likes."""

    def handle(sock: Any, _address: Any) -> None:
        with sock, suppress(OSError):
            serve(sock)

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen(5)
        server = StreamServer(listener, handle)
        server.start()
        yield
        server.stop(timeout=0)


def test_who_asks_and_does_not_read_is_left_after_a_second(monkeypatch: pytest.MonkeyPatch, virtual_time: Any) -> None:
    monkeypatch.setattr(workers, "process_state", lambda _query_text: "x" * 10_000_000)
    ours, theirs = socket.socketpair()
    with theirs:
        before = _clock.monotonic()
        workers._answer(ours, False)
        assert _clock.monotonic() - before == pytest.approx(1)
        assert ours.closed


def test_a_worker_that_does_not_answer_holds_up_no_other(tmp_path: Path, virtual_time: Any) -> None:
    """All are asked at once: the one between two that are deaf answers when both have been asked."""
    with ExitStack() as stack:
        deaf = [stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) for _ in range(2)]
        for sock, number in zip(deaf, (6, 8), strict=True):
            sock.bind(str(tmp_path / f"{number}.sock"))
            sock.listen(1)

        def answer(asker: Any) -> None:
            for each in deaf:
                wait_read(each.fileno())
            asker.sendall(json.dumps(state_with(CLIENT)).encode())

        stack.enter_context(answering(tmp_path / "7.sock", answer))
        found = worker_states(tmp_path)
    assert [(each["process"], each.get("error"), len(each["clients"])) for each in found] == [
        ("6", "does not answer within 1 s", 0),
        (7, None, 1),
        ("8", "does not answer within 1 s", 0),
    ]


def shown(directory: Path) -> tuple[list[dict[str, Any]], str]:
    """What the page shows, and what a terminal does."""
    page = json.loads(request(StatusPage(directory), "format=json")[2], parse_constant=pytest.fail)["processes"]
    terminal = io.StringIO()
    console = pytest.importorskip("rich.console").Console(file=terminal, force_terminal=True, width=300)
    console.print(importlib.import_module("gmongo.status.terminal").Tables(worker_states(directory)))
    workers._published.pop(directory, None)
    return page, terminal.getvalue()


def drip(sock: Any) -> None:
    for byte in json.dumps(STATE).encode():
        sock.sendall(bytes([byte]))
        gevent.sleep(0.05)


@pytest.mark.parametrize("answer", [*WRONG.values(), drip], ids=[*WRONG, "slowly"])
def test_a_worker_that_answers_anything_else_is_one_row_that_says_so(
    tmp_path: Path, virtual_time: Any, answer: Any
) -> None:
    with answering(tmp_path / "7.sock", answer if callable(answer) else lambda sock: sock.sendall(answer)):
        page, terminal = shown(tmp_path)
    (row,) = [each for each in page if each["process"] == "7"]
    is_late = answer in (drip, WRONG["another process"])  # a forked child has its parent's socket for a moment
    assert row["error"].startswith(f"does not answer {'within 1 s' if is_late else 'with its state: '}")
    assert ("it has more than 4000000 bytes" in row["error"]) is (answer is WRONG["too much"])
    assert row["clients"] == []
    assert "does not answer" in terminal
    assert [each["process"] for each in page if "error" not in each] in ([], [os.getpid()])


def test_of_what_a_worker_answers_only_what_is_known_is_shown_as_text(tmp_path: Path, virtual_time: Any) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\nforged\ud800"
    client = {
        **{name: evil if value == "" else value for name, value in CLIENT.items()},
        "servers": [{**SERVER, "address": evil, "error": evil, evil: evil, "pool": {**POOL, "inUseBy": {evil: 1}}}],
        "operations": [{**dict.fromkeys(("phase", "operation", "server", "greenlet"), evil), **TIMES}],
        "history": [{**dict.fromkeys(("what", "server", "error"), evil), "times": 1, "agoMS": 1, "sinceMS": 1}],
    }  # fmt: skip
    state = {**state_with(client), "error": "another", "secret": "hunter2"}
    with answering(tmp_path / "7.sock", lambda sock: sock.sendall(json.dumps(state).encode())):
        page, terminal = shown(tmp_path)
    (row,) = [each for each in page if each["process"] == 7]
    assert row.keys() == {"process", "version", "requests", "clients"}
    assert "hunter2" not in json.dumps(page)
    assert repr(evil)[1:-1] == row["clients"][0]["servers"][0]["address"]
    assert "\x1b" not in row["clients"][0]["application"]
    assert "\x1b]" not in terminal
    assert "\x1b[2J" not in terminal
    assert "owned" in terminal


def test_a_worker_that_holds_its_loop_cannot_hold_up_the_page(tmp_path: Path, deployment: Any, started: Any) -> None:
    held, live = [start(started, tmp_path, deployment.uri) for _ in range(2)]
    eventually(lambda: len(states(tmp_path)) == 2)
    held.send_signal(signal.SIGSTOP)

    def errors() -> dict[str, str | None]:
        return {str(each["process"]): each.get("error") for each in worker_states(tmp_path)}

    expected = {str(held.pid): "does not answer within 1 s", str(live.pid): None}
    eventually(lambda: errors() == expected)


def test_the_server_of_states_lets_the_program_end(tmp_path: Path) -> None:
    publishing = f"from gmongo.status import publish; publish({str(tmp_path)!r})"
    program = f"import gevent; {publishing}; gevent.sleep(0.1); gevent.get_hub().join()"
    subprocess.run([sys.executable, "-c", program], timeout=20, check=True)


def test_the_terminal(tmp_path: Path, deployment: Any, started: Any) -> None:
    start(started, tmp_path, deployment.uri)
    eventually(lambda: states(tmp_path), 20)
    words = ("Servers", "Standalone", deployment.members[0].address, "Operations", "worker")

    def has_all() -> bool:
        shown = run(str(tmp_path), "--once")
        assert shown.returncode == 0
        return all(word in shown.stdout for word in words)

    eventually(has_all)  # of a worker that does not answer within a second it says so, and shows no more
    missing = run(str(tmp_path / "nothing"))
    assert missing.returncode == 1
    assert "does not exist" in missing.stderr


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gmongo.status", *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    result: subprocess.CompletedProcess[str] = gevent.subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment
    )
    return result


def test_the_help_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out.startswith("usage: python -m gmongo.status [-h] [--once] directory")
