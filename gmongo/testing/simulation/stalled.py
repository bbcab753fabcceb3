"""Answers clients that keep their own deployment from answering.

A deployment is served by greenlets of the thread that started it. In a program that is not monkey-patched, a client
that does not run on gevent blocks that thread, and so waits for ever. A native thread notices, and says so in place of
the greenlets.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from gevent import monkey

from gmongo.testing.simulation.framing import HEADER, MalformedCommand, MalformedMessage, read_message, write_reply
from gmongo.wire.message import HEADER_SIZE

if TYPE_CHECKING:
    from gmongo.testing.simulation.listener import Listener

MESSAGE = (
    "the greenlets that serve this simulated deployment cannot run, because their thread waits for them: without "
    "monkey-patching only gmongo can use a Deployment of its own thread; other drivers need a DeploymentThread or a "
    "DeploymentProcess of gmongo.testing"
)
_log = logging.getLogger("gmongo.testing")
_OTHER_DRIVERS = frozenset({"pymongo", "motor"})
# Packages in whose code a thread stands that waits natively.
_WAITS = frozenset({"asyncio", "concurrent", "queue", "selectors", "socket", "ssl", "threading", *_OTHER_DRIVERS})
_LOOK_EVERY = 0.25  # seconds
_LOOKS = 5  # in a row that must find a thread waiting
_PATIENCE = 1.0  # seconds that a client is given to send its request
_OPERATION_FAILED = 96

_watched: weakref.WeakSet[Listener] = weakref.WeakSet()
_watcher: threading.Thread | None = None


def watch(*listeners: Listener) -> None:
    """Look after these listeners too, if another driver is loaded, and could block the thread."""
    global _watcher
    _watched.update(listeners)
    if not _watched or monkey.is_module_patched("threading") or not _OTHER_DRIVERS & set(sys.modules):
        return
    if _watcher is None or not _watcher.is_alive():  # in a fork it is not
        _watcher = threading.Thread(target=_watch, name="gmongo.testing.stalled", daemon=True)
        _watcher.start()


def _watch() -> None:
    # How many looks in a row have seen a thread wait while a connection waits at its port: one that is only busy may
    # happen to be in the code of a socket once. Looks are counted, and not seconds, in which the process may have had
    # no processor.
    seen: dict[int, int] = {}
    while listeners := list(_watched):
        waiting = {each.port: each for each in listeners if each.is_waited_for() and _waits(each.thread)}
        del listeners
        seen = {port: seen.get(port, 0) + 1 for port in waiting}
        for port, listener in waiting.items():
            if seen[port] >= _LOOKS:
                _log.error(MESSAGE)
                for sock in listener.take_waiting():
                    _explain(sock)
        waiting.clear()
        time.sleep(_LOOK_EVERY)


def _waits(thread: int) -> bool:
    frame = sys._current_frames().get(thread)
    return frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _WAITS


def _explain(sock: Any) -> None:
    """Answer the one request that a client sends first; without TLS it will understand."""
    sock.settimeout(_PATIENCE)
    try:
        length, number, _response_to, opcode = HEADER.unpack(_read(sock, HEADER_SIZE))
        message = read_message(opcode, _read(sock, length - HEADER_SIZE))
        problem = {"ok": 0.0, "errmsg": MESSAGE, "code": _OPERATION_FAILED, "codeName": "OperationFailed"}
        sock.sendall(write_reply(message.opcode, 1, number, 0, problem))
    except (OSError, MalformedMessage, MalformedCommand):
        pass
    finally:
        sock.close()


def _read(sock: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk: bytes = sock.recv(size - len(data))
        if not chunk:
            raise ConnectionResetError
        data += chunk
    return data
