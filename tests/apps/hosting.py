"""Run and observe a separate process of gunicorn, or of another program that uses a client.

The simulated deployment runs in the process of the test.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gevent
import gevent.subprocess
from gevent import socket

from gmongo.testing import Deployment
from tests.support.fail_points import fail
from tests.support.programs import ROOT
from tests.support.wait import until

TIME_LIMIT = 60  # the time limit of a test in seconds, long enough for a busy machine
PYTHON_COMMAND = (sys.executable, "-u", "-W", "default")
WARNING_OR_ERROR_PATTERN = re.compile(r"warning|error|critical|traceback|exception", re.IGNORECASE)


class Host:
    """A running program that uses the deployment.

    :ivar lines: the lines of the program's output.
    """

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        with log.open("wb") as output:
            self.process = gevent.subprocess.Popen(
                arguments,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": path, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def lines(self) -> list[str]:
        return self._log.read_text().splitlines()

    @property
    def warnings_and_errors(self) -> list[str]:
        """The output lines that contain a warning or an error."""
        return [line for line in self.lines if WARNING_OR_ERROR_PATTERN.search(line)]

    def matches(self, pattern: str) -> list[str]:
        """Return the text of the first group for each match of a pattern in the output."""
        return re.findall(pattern, self._log.read_text())

    def port(self) -> int:
        """Wait for the port on which the host listens, and return the port."""
        return int(until(lambda: self.matches(r"Listening at: http://127\.0\.0\.1:(\d+)"))[0])

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> int:
        """Send SIGTERM, wait for the end of the program, and return the exit status."""
        self.signal(signal.SIGTERM)
        return self.process.wait()

    def kill(self) -> None:
        """Kill the program and its child processes, which share the process group of the program."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


@contextmanager
def hosted(
    deployment: Deployment, log: Path, *arguments: str, program: Sequence[str] = PYTHON_COMMAND, **environment: str
) -> Iterator[Host]:
    """Run ``program *arguments``, and pass the URI of the deployment in an environment variable.

    If the block fails, print the program's output.
    """
    host = Host([*program, *arguments], {"HOSTED_DATABASE": deployment.uri, **environment}, log)
    try:
        with gevent.Timeout(TIME_LIMIT):
            yield host
    except BaseException:
        print(*host.lines, sep="\n")
        raise
    finally:
        host.kill()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def request_document(port: int, name: str, dropped: list[str] | None = None) -> tuple[int, str]:
    """Send a request. Return the ID of the process that answered, and the ID of the document that the
    process read.

    A server that reloads drops waiting connections. Therefore, like a proxy, the function repeats the
    request if the connection ends without an answer.

    :param dropped: the list to which the function appends the name of each dropped request.
    """
    while True:
        try:
            answer = _request(port, name)
        except ConnectionError:
            answer = b""
        if answer:
            break
        if dropped is not None:
            dropped.append(name)
        gevent.sleep(0.01)
    head, _, body = answer.decode().partition("\r\n\r\n")
    if " 200 " not in head.splitlines()[0]:
        raise AssertionError(f"{name}: {answer!r}")
    process_id, _, document_id = body.partition(" ")
    return int(process_id), document_id


def _request(port: int, name: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET /{name} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


class Load:
    """Greenlets that send requests until the ``with`` block ends. Each request has a new name.

    The end of the block raises the first error of a greenlet.

    :ivar answered_by: for each answer, in order, the ID of the process that sent the answer.
    :ivar dropped: the names of requests whose connection ended without an answer.
    """

    def __init__(self, port: int) -> None:
        self.answered_by: list[int] = []
        self.dropped: list[str] = []
        self._port = port
        self._block_has_ended = False
        self._visitors = [gevent.spawn(self._request, f"visitor-{number}") for number in range(4)]

    def __enter__(self) -> Load:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._block_has_ended = True
        if kind is None:
            gevent.joinall(self._visitors, raise_error=True)
        else:
            gevent.killall(self._visitors)

    def _request(self, visitor: str) -> None:
        number = 0
        while not self._block_has_ended:
            name = f"{visitor}-{(number := number + 1)}-{os.urandom(4).hex()}"
            process_id, document_id = request_document(self._port, name, self.dropped)
            if document_id != name:
                raise AssertionError(f"requested the document {name!r}, but got {document_id!r}")
            self.answered_by.append(process_id)

    def recent_process_ids(self, count: int = 20) -> set[int]:
        """Return the IDs of the processes that sent the last `count` answers.

        Return an empty set until `count` answers have arrived.
        """
        return set(self.answered_by[-count:]) if len(self.answered_by) >= count else set()


def open_connections(deployment: Deployment) -> dict[int, Any]:
    """Return the open connections of the deployment's servers, by the local port of the client."""
    return {each.peer_port: each for member in deployment.members for each in member.connections.values()}


def assert_pending_requests_are_answered_at_end(deployment: Deployment, host: Host, port: int) -> None:
    """Send SIGTERM to the host during three requests.

    Assert that the host answers the requests, exits with 0, and leaves no connection.
    """
    fail(deployment, "find", times=3, blockConnection=True, blockTimeMS=500)
    deployment.commands.clear()
    pending = [gevent.spawn(request_document, port, f"late-{number}") for number in range(3)]
    until(lambda: len(deployment.commands.named("find")) >= 3)
    assert host.end() == 0
    assert [each.get()[1] for each in pending] == ["late-0", "late-1", "late-2"]
    until(lambda: not open_connections(deployment))


def owners_of_connections(deployment: Deployment, process_ids: set[int]) -> list[set[int]]:
    """For each connection of the servers, return those of the `process_ids` whose process has the
    client's socket open.
    """
    inodes_by_process_id = {each: _socket_inodes(each) for each in process_ids}
    inode_by_local_port = _inode_by_local_port({member.port for member in deployment.members})
    return [
        {each for each, inodes in inodes_by_process_id.items() if inode_by_local_port.get(port) in inodes}
        for port in open_connections(deployment)
    ]


def _inode_by_local_port(server_ports: set[int]) -> dict[int, str]:
    """Return the socket inode of each TCP connection to `server_ports`, by local port.

    Omit connections to other servers, because connections to different servers may share a local port.
    The manual page ``man 5 proc`` describes ``/proc/net/tcp``.
    """
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {_port(row[1]): row[9] for row in rows if row[3] == "01" and _port(row[2]) in server_ports}


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _socket_inodes(process_id: int) -> set[str]:
    """Return a set that contains the inode of each socket of a process. Return an empty set for a
    process that has ended.
    """
    inodes = set()
    try:
        for descriptor in Path(f"/proc/{process_id}/fd").iterdir():
            inodes.add(_link_target(descriptor).removeprefix("socket:[").rstrip("]"))
    except OSError:
        pass
    return inodes


def _link_target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except OSError:
        return ""
