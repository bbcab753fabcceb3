"""Forks during a soak test, after which the child and the parent continue to use the client.

The parent runs the servers. A child closes its copies of the server sockets, and connects to the
servers.
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
from tests.hostile.invariants import CommandEventChecker, Violation

FORK_FUNCTIONS: tuple[Callable[[], int], ...] = (os.fork, gevent.os.fork)
_TIME_LIMIT = 90.0  # Time limit of a child in seconds.
_READY_MESSAGE = b"."


class InheritedUseDetector(CommandEventChecker):
    """Listener that records the sessions and cursors in commands.

    In a child, the listener detects the use of sessions and cursors of the parent.
    """

    def __init__(self) -> None:
        super().__init__()
        # Session ID or cursor ID -> name of the last command that used the ID.
        self._used_ids: dict[Any, str] = {}
        self._opened_cursor_ids: set[Any] = set()
        self._ids_of_parent: frozenset[Any] = frozenset()

    def mark_forked(self) -> None:
        """After the fork, record in the child that all known sessions and cursors belong to the
        parent.
        """
        self._ids_of_parent = frozenset(self._used_ids.keys() | self._opened_cursor_ids)
        self._used_ids = {}

    def faults_of_child(self) -> list[str]:
        """Return a text for each session and cursor of the parent that the child has used."""
        return [f"{self._used_ids[each]} used {each}" for each in self._used_ids.keys() & self._ids_of_parent]

    def started(self, event: Any) -> None:
        super().started(event)
        command, name = event.command, event.command_name
        ids: list[Any] = [bytes(each["id"]) for each in (command.get("lsid"), *command.get("endSessions", ())) if each]
        ids += [command["getMore"]] if name == "getMore" else []
        ids += command["cursors"] if name == "killCursors" else []
        self._used_ids.update(dict.fromkeys(ids, name))

    def succeeded(self, event: Any) -> None:
        super().succeeded(event)
        cursor = event.reply.get("cursor")
        if isinstance(cursor, dict) and cursor.get("id"):
            self._opened_cursor_ids.add(cursor["id"])

    def failed(self, event: Any) -> None:
        super().succeeded(event)


class Child:
    """A forked child process, as an object in the parent.

    :param fork: a function in :data:`FORK_FUNCTIONS`.
    :param close_server_sockets: function that closes the child's copies of the servers' sockets,
        without a switch to the hub.
    :param run: function that runs in the child. The child sends the result of the function to
        the parent as JSON.
    """

    def __init__(
        self,
        fork: Callable[[], int],
        close_server_sockets: Callable[[], None],
        run: Callable[[], Any],
    ) -> None:
        self._read_end, write_end = os.pipe()
        self._parent_pid = os.getpid()
        self.pid = fork()
        if self.pid == 0:
            _run_in_child(write_end, close_server_sockets, run)
        os.close(write_end)
        # Wait until the child has closed its copies of server sockets. An open copy could block the
        # port of a restarted member.
        select.select([self._read_end], [], [], _TIME_LIMIT)
        os.read(self._read_end, len(_READY_MESSAGE))

    def end(self) -> dict[str, Any]:
        """Wait for the end of the child, and return the result of `run`.

        :raises Violation: the child reports an error or a violation, or does not end in time.
        """
        text = b""
        timeout_error = gevent.Timeout(2 * _TIME_LIMIT, Violation("a forked child does not end"))
        try:
            with timeout_error:
                while piece := self._read():
                    text += piece
        except Violation:
            os.kill(self.pid, signal.SIGKILL)
            raise
        finally:
            os.close(self._read_end)
            # The SIGCHLD handler of the event loop may have reaped the child.
            with contextlib.suppress(ChildProcessError):
                gevent.os.waitpid(self.pid, 0)
        try:
            result: dict[str, Any] = json.loads(text)
        except ValueError:
            raise Violation(f"the output of a forked child is {text.decode() or 'empty'}") from None
        return result

    def _read(self) -> bytes:
        gevent.socket.wait_read(self._read_end)
        if os.getpid() != self._parent_pid:
            # A child of a later fork has a copy of this greenlet. The copy must not read the pipe.
            raise GreenletExit
        return os.read(self._read_end, 1 << 16)


def _run_in_child(write_end: int, close_server_sockets: Callable[[], None], run: Callable[[], Any]) -> None:
    try:
        close_server_sockets()
        os.write(write_end, _READY_MESSAGE)
        gevent.reinit()  # type: ignore[no-untyped-call]
        printed_length = len(sys.stderr.getvalue())  # type: ignore[attr-defined]
        timeout_error = gevent.Timeout(_TIME_LIMIT)
        try:
            with timeout_error:
                result = run()
        except gevent.Timeout as timeout:
            if timeout is not timeout_error:
                raise
            stacks = "\n".join(format_run_info())[-6000:]
            raise Violation(f"the child does not end within {_TIME_LIMIT} s: {stacks}") from None
        if text := sys.stderr.getvalue()[printed_length:]:  # type: ignore[attr-defined]
            raise Violation(f"the child has printed on stderr: {text[-2000:]}")
        os.write(write_end, json.dumps(result).encode())
    except BaseException as error:
        os.write(write_end, f"{type(error).__name__}: {error}".encode()[-8000:])
    finally:
        os._exit(0)


def repeat_until_success(action: Callable[[], Any]) -> Any:
    """Repeat an action until the action raises no PyMongoError or BSONError. Return the result."""
    while True:
        try:
            return action()
        except (PyMongoError, BSONError):
            gevent.sleep(0.01)
