"""Several worker processes publish their states through sockets in a directory.

The tests cover the sockets, the permissions, malformed replies, and the terminal command.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import product
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
from tests.status.states import client as client_state
from tests.status.test_page import send_wsgi_request
from tests.support.wait import eventually

# The program of a worker process. With a third argument, the program forks two children after it has
# created a client, like ``gunicorn --preload``.
_WORKER_PROGRAM = """
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
    with Deployment.standalone() as deployment:
        yield deployment


@pytest.fixture
def worker_processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def start_worker(processes: Any, directory: Path, uri: str, *arguments: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", _WORKER_PROGRAM, str(directory), uri, *arguments])
    processes.append(process)
    return process


def states_with_pool(directory: Path) -> list[dict[str, Any]]:
    return [each for each in worker_states(directory) if each["clients"] and each["clients"][0]["servers"][0]["pool"]]


@pytest.mark.usefixtures("long_reply_timeout")
def test_only_states_of_running_workers_are_collected(tmp_path: Path, deployment: Any, worker_processes: Any) -> None:
    processes = [start_worker(worker_processes, tmp_path / "states", deployment.uri) for _ in range(2)]
    states = eventually(lambda: len(each := states_with_pool(tmp_path / "states")) == 2 and each, 20)
    assert {each["process"] for each in states} == {process.pid for process in processes}
    assert [each["clients"][0]["application"] for each in states] == ["worker"] * 2
    processes[0].kill()
    processes[0].wait()
    assert [each["process"] for each in worker_states(tmp_path / "states")] == [processes[1].pid]
    assert [path.stem for path in (tmp_path / "states").iterdir()] == [str(processes[1].pid)]


def test_each_forked_worker_publishes_own_state(tmp_path: Path, deployment: Any, worker_processes: Any) -> None:
    parent = start_worker(worker_processes, tmp_path, deployment.uri, "fork")
    states = eventually(lambda: len(each := states_with_pool(tmp_path)) == 3 and each, 20)
    process_ids = {each["process"] for each in states}
    assert len(process_ids) == 3
    assert parent.pid in process_ids
    for child in process_ids:
        os.kill(child, 9)


@pytest.mark.usefixtures("long_reply_timeout")
def test_socket_directory_is_accessible_only_to_user_of_process(tmp_path: Path) -> None:
    directory = tmp_path / "missing parent" / "states"
    publish(directory)
    publish(directory)  # a second call has no effect
    path = eventually(lambda: next(directory.glob("*.sock"), None))
    assert directory.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o177 == 0
    assert [each["process"] for each in worker_states(directory)] == [os.getpid()]
    (tmp_path / "open").mkdir()
    for mode, function in product((0o777, 0o720, 0o702), (publish, worker_states)):
        (tmp_path / "open").chmod(mode)
        with pytest.raises(ConfigurationError, match="other users must not have write access"):
            function(tmp_path / "open")


def test_directory_of_another_user_raises_configuration_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = StatusPage(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    for function in (publish, worker_states):
        with pytest.raises(ConfigurationError, match="belong to this user"):
            function(tmp_path)
    assert main([str(tmp_path), "--once"]) == 1
    (process,) = json.loads(send_wsgi_request(page, "format=json")[2])["processes"]
    assert "belong to this user" in process["error"]
    assert process["clients"] == []


def test_page_is_empty_if_socket_directory_was_removed(tmp_path: Path) -> None:
    page = StatusPage(tmp_path / "states")
    eventually(lambda: list((tmp_path / "states").glob("*.sock")))
    shutil.rmtree(tmp_path / "states")
    assert json.loads(send_wsgi_request(page, "format=json")[2])["processes"] == []


def id_of_ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_read_of_states_removes_only_sockets_of_ended_processes(tmp_path: Path) -> None:
    ended_id = id_of_ended_process()
    with ExitStack() as open_sockets:

        def bind(name: str) -> socket.socket:
            sock = open_sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            sock.bind(str(tmp_path / name))
            return sock

        for name in ("notes.sock", f"{ended_id + 1}.sock", "1.sock"):
            (tmp_path / name).write_text("precious")
        (tmp_path / "2.sock").mkdir()
        (tmp_path / "other file").write_text("precious")
        (tmp_path / "3.sock").symlink_to(tmp_path / "other file")
        (tmp_path / "4.sock").symlink_to(tmp_path / "missing file")
        bind("php-fpm.sock")  # Another program owns this socket, and does not listen yet.
        bind(f"0{ended_id}.sock")
        bind(f"{os.getppid()}.sock")  # A running process owns this socket, and does not listen yet.
        kept_names = set(os.listdir(tmp_path))
        bind(f"{ended_id}.sock")
        assert worker_states(tmp_path) == []
        assert set(os.listdir(tmp_path)) == kept_names


def test_socket_of_another_user_is_neither_read_nor_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"{id_of_ended_process()}.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        original_lstat = Path.lstat

        def lstat(self: Path) -> Any:
            status = original_lstat(self)
            return SimpleNamespace(st_mode=status.st_mode, st_uid=status.st_uid + 1) if self == path else status

        monkeypatch.setattr(Path, "lstat", lstat)
        assert worker_states(tmp_path) == []
        assert path.exists()


@pytest.mark.parametrize("suffix", ["sock", "new"])
def test_publish_overwrites_no_existing_file(tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / f"{os.getpid()}.{suffix}"
    path.write_text("precious")
    publish(tmp_path)
    eventually(lambda: "was interrupted" in caplog.text)
    assert path.read_text() == "precious"
    assert workers._publishers.pop(tmp_path)._server is None


@pytest.mark.usefixtures("long_reply_timeout")
@pytest.mark.parametrize("first_has_text", [True, False], ids=["with text first", "without text first"])
def test_worker_sends_query_text_only_on_request(tmp_path: Path, first_has_text: bool) -> None:
    publish(tmp_path, query_text=first_has_text)
    pages = {has_text: StatusPage(tmp_path, query_text=has_text) for has_text in (first_has_text, not first_has_text)}
    tracing = {"query_text_max_length": 1000}
    with (
        Deployment.standalone() as server,
        MongoClient(server.uri, slow_operation_ms=0, tracing=tracing) as client,
    ):
        client.app.users.insert_one({"name": "hunter2"})
        eventually(lambda: list(tmp_path.glob("*.sock")))
        for has_text, page in pages.items():
            assert (b"hunter2" in send_wsgi_request(page, "format=json")[2]) is has_text
            assert ("hunter2" in str(worker_states(tmp_path, has_text))) is has_text
        assert "hunter2" not in str(worker_states(tmp_path))


STATE = process_state()
CLIENT = client_state(application="", topology="", servers=[])


def state_with(client: Any) -> dict[str, Any]:
    return {**STATE, "process": 7, "clients": [client]}


MALFORMED_REPLIES: dict[str, bytes] = {
    "empty reply": b"",
    "invalid JSON": b"\xff\xfe{",
    "empty object": b"{}",
    "list": b"[]",
    "null": b"null",
    "number": b"7",
    "deeply nested": b"[" * 1_000_000,
    "deeply nested in a field": b'{"process": 7, "version": "", "clients": ' + b'[{"a":' * 100_000,
    "number with too many digits": b'{"process": ' + b"7" * 5000,
    "too large reply": b" " * 4_100_000,
    "without clients": json.dumps({"process": 7, "version": ""}).encode(),
    "state of another process": json.dumps(STATE).encode(),
    "empty client": json.dumps(state_with({})).encode(),
    "NaN": json.dumps(state_with({**CLIENT, "number": float("nan")})).encode(),
}


@contextmanager
def scripted_worker(path: Path, serve: Callable[[Any], None]) -> Iterator[None]:
    """Listen on the Unix socket `path`, as a worker does. Call `serve` for each connection."""

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


def test_connection_to_reader_that_does_not_read_is_closed_after_1_second(
    monkeypatch: pytest.MonkeyPatch, virtual_time: Any
) -> None:
    monkeypatch.setattr(workers, "process_state", lambda _query_text: "x" * 10_000_000)
    near, far = socket.socketpair()
    with far:
        before = _clock.monotonic()
        workers._send_state(near, False)
        assert _clock.monotonic() - before == pytest.approx(1)
        assert near.closed


def test_unresponsive_workers_do_not_delay_other_workers(tmp_path: Path, virtual_time: Any) -> None:
    """Check that the reader connects to all workers concurrently.

    One worker replies only after the reader has connected to two unresponsive workers.
    """
    with ExitStack() as stack:
        silent_sockets = [stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) for _ in range(2)]
        for sock, number in zip(silent_sockets, (6, 8), strict=True):
            sock.bind(str(tmp_path / f"{number}.sock"))
            sock.listen(1)

        def reply(reader: Any) -> None:
            for each in silent_sockets:
                wait_read(each.fileno())
            reader.sendall(json.dumps(state_with(CLIENT)).encode())

        stack.enter_context(scripted_worker(tmp_path / "7.sock", reply))
        stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)).bind(str(tmp_path / "9.sock"))
        states = worker_states(tmp_path)
    assert [(each["process"], each.get("error"), len(each["clients"])) for each in states] == [
        ("6", "does not answer within 1 s", 0),
        (7, None, 1),
        ("8", "does not answer within 1 s", 0),
        ("9", "does not answer (OSError)", 0),
    ]


def outputs_of(directory: Path) -> tuple[list[dict[str, Any]], str]:
    """Return the states that the page shows, and the text that the terminal command prints."""
    page_states = json.loads(send_wsgi_request(StatusPage(directory), "format=json")[2], parse_constant=pytest.fail)[
        "processes"
    ]
    terminal = io.StringIO()
    console = pytest.importorskip("rich.console").Console(file=terminal, force_terminal=True, width=300)
    console.print(importlib.import_module("gmongo.status.terminal").overview(worker_states(directory), 300))
    workers._publishers.pop(directory, None)
    return page_states, terminal.getvalue()


def send_slowly(sock: Any) -> None:
    for byte in json.dumps(STATE).encode():
        sock.sendall(bytes([byte]))
        gevent.sleep(0.05)


@pytest.mark.parametrize("reply", [*MALFORMED_REPLIES.values(), send_slowly], ids=[*MALFORMED_REPLIES, "slow reply"])
def test_malformed_reply_of_worker_becomes_one_row_with_error(tmp_path: Path, virtual_time: Any, reply: Any) -> None:
    with scripted_worker(tmp_path / "7.sock", reply if callable(reply) else lambda sock: sock.sendall(reply)):
        page_states, terminal_text = outputs_of(tmp_path)
    (row,) = [each for each in page_states if each["process"] == "7"]
    # Directly after a fork, a child may reply on the socket of its parent. Therefore the reader
    # ignores the state of another process, and requests the state again until the timeout.
    is_late = reply in (send_slowly, MALFORMED_REPLIES["state of another process"])
    assert row["error"].startswith(f"does not answer {'within 1 s' if is_late else 'with its state: '}")
    assert ("the state has more than 4000000 bytes" in row["error"]) is (reply is MALFORMED_REPLIES["too large reply"])
    assert row["clients"] == []
    assert "does not answer" in terminal_text
    assert [each["process"] for each in page_states if "error" not in each] in ([], [os.getpid()])


def test_publisher_does_not_keep_the_event_loop_alive(tmp_path: Path) -> None:
    publish_statements = f"from gmongo.status import publish; publish({str(tmp_path)!r})"
    program = f"import gevent; {publish_statements}; gevent.sleep(0.1); gevent.get_hub().join()"
    subprocess.run([sys.executable, "-c", program], timeout=20, check=True)


def test_terminal_command_prints_all_tables_or_an_error(tmp_path: Path, deployment: Any, worker_processes: Any) -> None:
    start_worker(worker_processes, tmp_path, deployment.uri)
    eventually(lambda: states_with_pool(tmp_path), 20)
    words = ("Servers", "Standalone", deployment.members[0].address, "Operations", "worker")

    def output_contains_words() -> bool:
        result = run(str(tmp_path), "--once")
        assert result.returncode == 0
        return all(word in result.stdout for word in words)

    # If a worker replies after the timeout, the output contains only an error, so the test repeats
    # the command.
    eventually(output_contains_words)
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
