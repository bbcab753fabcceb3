"""Forks in a soak: a child goes on with the client that it has inherited, while its parent does, too.

The servers live in the parent. The child closes its copies of their sockets before anything else can run in it; it is a
client of its parent's servers, on connections of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any

import gevent
import gevent.os
import gevent.socket
from bson.errors import BSONError
from gevent import GreenletExit
from gevent.util import format_run_info

from gmongo.errors import PyMongoError
from tests.hostile.witness import Commands, Violation

FORKS: tuple[Callable[[], int], ...] = (os.fork, gevent.os.fork)
_LONGEST = 90.0  # seconds that a child may live
_READY = b"."


class KnownCommands(Commands):
    """Knows besides which sessions and cursors commands were about, and so whether a child used its parent's."""

    def __init__(self) -> None:
        super().__init__()
        self._used: dict[Any, str] = {}  # by which command
        self._opened: set[Any] = set()
        self._of_parent: frozenset[Any] = frozenset()

    def mark_forked(self) -> None:
        """All that is known so far is the parent's."""
        self._of_parent = frozenset(self._used.keys() | self._opened)
        self._used = {}

    def faults_of_child(self) -> list[str]:
        """The parent's sessions and cursors that the child has used."""
        return [f"{self._used[each]} used {each}" for each in self._used.keys() & self._of_parent]

    def started(self, event: Any) -> None:
        super().started(event)
        command, name = event.command, event.command_name
        used: list[Any] = [bytes(each["id"]) for each in (command.get("lsid"), *command.get("endSessions", ())) if each]
        used += [command["getMore"]] if name == "getMore" else []
        used += command["cursors"] if name == "killCursors" else []
        self._used.update(dict.fromkeys(used, name))

    def succeeded(self, event: Any) -> None:
        super().succeeded(event)
        cursor = event.reply.get("cursor")
        if isinstance(cursor, dict) and cursor.get("id"):
            self._opened.add(cursor["id"])

    def failed(self, event: Any) -> None:
        super().succeeded(event)


class Child:
    """A forked child, as its parent sees it.

    :param fork: one of :data:`FORKS`.
    :param leave_servers: closes what belongs to the parent; it must not switch.
    :param live: what the child does; what it returns is told to the parent.
    """

    def __init__(self, fork: Callable[[], int], leave_servers: Callable[[], None], live: Callable[[], Any]) -> None:
        self._reads, writes = os.pipe()
        self._parent = os.getpid()
        self.pid = fork()
        if self.pid == 0:
            _be_child(writes, leave_servers, live)
        os.close(writes)
        # Until then a member that is restarted would find its port taken by the child's copy of its socket.
        select.select([self._reads], [], [], _LONGEST)
        os.read(self._reads, len(_READY))

    def end(self) -> dict[str, Any]:
        """Wait until it has ended; returns what it tells.

        :raises Violation: it found one, failed, or does not end.
        """
        text = b""
        too_late = gevent.Timeout(2 * _LONGEST, Violation("a forked child does not end"))
        try:
            with too_late:
                while piece := self._read():
                    text += piece
        except Violation:
            os.kill(self.pid, signal.SIGKILL)
            raise
        finally:
            os.close(self._reads)
            with contextlib.suppress(ChildProcessError):  # libev has reaped it
                gevent.os.waitpid(self.pid, 0)
        try:
            told: dict[str, Any] = json.loads(text)
        except ValueError:
            raise Violation(f"a forked child ended so: {text.decode() or 'without a word'}") from None
        return told

    def _read(self) -> bytes:
        gevent.socket.wait_read(self._reads)
        if os.getpid() != self._parent:
            # This greenlet is its copy in a child that was forked later. It is killed, but may have been due to run
            # before that, and what it read would be missing from its parent.
            raise GreenletExit
        return os.read(self._reads, 1 << 16)


def _be_child(writes: int, leave_servers: Callable[[], None], live: Callable[[], Any]) -> None:
    try:
        leave_servers()
        os.write(writes, _READY)
        gevent.reinit()  # type: ignore[no-untyped-call]
        printed = len(sys.stderr.getvalue())  # type: ignore[attr-defined]
        too_late = gevent.Timeout(_LONGEST)
        try:
            with too_late:
                told = live()
        except gevent.Timeout as timeout:
            if timeout is not too_late:
                raise
            where = "\n".join(format_run_info())[-6000:]
            raise Violation(f"it is not done within {_LONGEST} s: {where}") from None
        if text := sys.stderr.getvalue()[printed:]:  # type: ignore[attr-defined]
            raise Violation(f"printed on stderr: {text[-2000:]}")
        os.write(writes, json.dumps(told).encode())
    except BaseException as error:
        os.write(writes, f"{type(error).__name__}: {error}".encode()[-8000:])
    finally:
        os._exit(0)


def eventually(action: Callable[[], Any]) -> Any:
    """Do it again until it does not fail any more; the deployment may be in trouble meanwhile."""
    while True:
        try:
            return action()
        except (PyMongoError, BSONError):
            gevent.sleep(0.01)
