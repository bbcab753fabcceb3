"""Runs a host in a process of its own, beside a simulated deployment in this one, and looks at both."""

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

PATIENCE = 60  # a few seconds are enough, but not if others keep the machine busy
PYTHON = (sys.executable, "-u", "-W", "default")
TROUBLE = re.compile(r"warning|error|critical|traceback|exception", re.IGNORECASE)


class Host:
    """A program that runs the application.

    :ivar lines: what it has written.
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
    def trouble(self) -> list[str]:
        """The lines that speak of a warning or of worse."""
        return [line for line in self.lines if TROUBLE.search(line)]

    def said(self, pattern: str) -> list[str]:
        """The first group of the pattern, for every line that has it."""
        return re.findall(pattern, self._log.read_text())

    def port(self) -> int:
        """Where it listens; waits for that."""
        return int(until(lambda: self.said(r"Listening at: http://127\.0\.0\.1:(\d+)"))[0])

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> int:
        """Ask it to end; returns its status."""
        self.signal(signal.SIGTERM)
        return self.process.wait()

    def kill(self) -> None:
        """End whatever is left of it: the program leads a session of its own."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


@contextmanager
def hosted(
    deployment: Deployment, log: Path, *arguments: str, program: Sequence[str] = PYTHON, **environment: str
) -> Iterator[Host]:
    """Run ``program *arguments`` on the database; a failure shows the program's log."""
    host = Host([*program, *arguments], {"HOSTED_DATABASE": deployment.uri, **environment}, log)
    try:
        with gevent.Timeout(PATIENCE):
            yield host
    except BaseException:
        print(*host.lines, sep="\n")
        raise
    finally:
        host.kill()


def get(port: int, name: str, dropped: list[str] | None = None) -> tuple[int, str]:
    """The process that answered, and what it read from the database.

    A connection that ends without a byte of an answer is tried again, as any proxy does: a server that is being
    reloaded or killed drops those that it has not served yet.

    :param dropped: collects the name each time that this happens.
    """
    while True:
        try:
            answer = _ask(port, name)
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
    process, _, found = body.partition(" ")
    return int(process), found


def _ask(port: int, name: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as asking:
        asking.sendall(f"GET /{name} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        return b"".join(iter(lambda: asking.recv(65536), b""))


class Load:
    """Greenlets that ask for one name after the other, until the ``with`` ends; they raise what went wrong.

    :ivar answered_by: the processes, in the order of their answers.
    :ivar dropped: what had to be asked again, because the server ended the connection without an answer.
    """

    def __init__(self, port: int, width: int = 4) -> None:
        self.answered_by: list[int] = []
        self.dropped: list[str] = []
        self._port = port
        self._ends = False
        self._readers = [gevent.spawn(self._ask, f"visitor-{number}") for number in range(width)]

    def __enter__(self) -> Load:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._ends = True
        if kind is None:
            gevent.joinall(self._readers, raise_error=True)
        else:
            gevent.killall(self._readers)

    def _ask(self, visitor: str) -> None:
        number = 0
        while not self._ends:
            name = f"{visitor}-{(number := number + 1)}-{os.urandom(4).hex()}"
            process, found = get(self._port, name, self.dropped)
            if found != name:
                raise AssertionError(f"asked for {name}, got {found}")
            self.answered_by.append(process)

    def lately(self, count: int = 20) -> set[int]:
        """The processes that answered the last requests; empty while there are too few."""
        return set(self.answered_by[-count:]) if len(self.answered_by) >= count else set()


def connections(deployment: Deployment) -> dict[int, Any]:
    """Those that are open at the server, by the port of the client's end."""
    return {each.peer_port: each for member in deployment.members for each in member.connections.values()}


def assert_ends_with_requests_under_way(deployment: Deployment, host: Host, port: int) -> None:
    """Three requests are under way when the host is asked to end: it answers them, ends, and leaves no connection."""
    fail(deployment, "find", times=3, blockConnection=True, blockTimeMS=500)
    deployment.commands.clear()
    under_way = [gevent.spawn(get, port, f"late-{number}") for number in range(3)]
    until(lambda: len(deployment.commands.named("find")) >= 3)
    assert host.end() == 0
    assert [each.get()[1] for each in under_way] == ["late-0", "late-1", "late-2"]
    until(lambda: not connections(deployment))


def owners(deployment: Deployment, processes: set[int]) -> list[set[int]]:
    """For each connection that is open at the server, which of these processes hold its other end."""
    sockets = {process: _sockets(process) for process in processes}
    ends = _ends({member.port for member in deployment.members})
    return [
        {process for process, held in sockets.items() if ends.get(port) in held} for port in connections(deployment)
    ]


def _ends(servers: set[int]) -> dict[int, str]:
    """Local port -> inode, of this machine's established TCP connections to these ports; see proc(5). A connection to
    another server may have the same local port.
    """
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {_port(row[1]): row[9] for row in rows if row[3] == "01" and _port(row[2]) in servers}


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _sockets(process: int) -> set[str]:
    """The inodes of the sockets that a process holds; none if it is gone."""
    held = set()
    try:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            held.add(_target(descriptor).removeprefix("socket:[").rstrip("]"))
    except OSError:
        pass
    return held


def _target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except OSError:
        return ""
