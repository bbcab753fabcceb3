"""Reply with an error to clients that block the thread of the deployment.

A deployment serves its clients in greenlets of the thread that started the deployment. In a program
without monkey-patching, a client without gevent in this thread blocks the thread, and would wait
forever for a reply. A native thread detects the blocked thread, and replies with an error.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from gevent import monkey

from gmongo.testing.simulation.framing import (
    HEADER,
    MalformedCommand,
    MalformedMessage,
    read_message,
    receive_exactly,
    write_reply,
)  # fmt: skip
from gmongo.wire.message import HEADER_SIZE

if TYPE_CHECKING:
    from gmongo.testing.simulation.listener import Listener

MESSAGE = (
    "the greenlets that serve this simulated deployment cannot run, because a client blocks their thread: without "
    "monkey-patching only gmongo can use a Deployment in its own thread; other drivers need a DeploymentThread or a "
    "DeploymentProcess of gmongo.testing"
)
_log = logging.getLogger("gmongo.testing")
_OTHER_DRIVERS = frozenset({"pymongo", "motor"})
# The packages whose functions can block a thread.
_BLOCKERS = frozenset({"asyncio", "concurrent", "queue", "selectors", "socket", "ssl", "threading", *_OTHER_DRIVERS})
_CHECK_INTERVAL = 0.25  # seconds
_REQUIRED_CHECK_COUNT = 5  # A thread counts as blocked after this number of consecutive checks.
_REQUEST_TIMEOUT = 1.0  # seconds
_OPERATION_FAILED_CODE = 96

_watched_listeners: weakref.WeakSet[Listener] = weakref.WeakSet()
_watcher_thread: threading.Thread | None = None


def watch_listeners(*listeners: Listener) -> None:
    """Add listeners to the watcher. Start the watcher if an imported driver can block a thread."""
    global _watcher_thread
    _watched_listeners.update(listeners)
    if not _watched_listeners or monkey.is_module_patched("threading") or not _OTHER_DRIVERS & set(sys.modules):
        return
    if _watcher_thread is None or not _watcher_thread.is_alive():  # a forked process has no watcher
        _watcher_thread = threading.Thread(target=_run_watcher, name="gmongo.testing.stalled", daemon=True)
        _watcher_thread.start()


def _run_watcher() -> None:
    # A check finds a listener if a connection waits for the listener, and the thread of the listener
    # runs blocking code. `check_counts` is the number of consecutive checks that found a listener, by
    # port. One check is not enough: any thread may run blocking code for a moment. The watcher counts
    # checks and measures no time, because the system may suspend the process between checks.
    check_counts: dict[int, int] = {}
    while listeners := list(_watched_listeners):
        blocked_listeners = {
            candidate.port: candidate
            for candidate in listeners
            if candidate.has_waiting_connection() and _is_in_blocking_code(candidate.thread_id)
        }
        del listeners
        check_counts = {port: check_counts.get(port, 0) + 1 for port in blocked_listeners}
        for port, listener in blocked_listeners.items():
            if check_counts[port] >= _REQUIRED_CHECK_COUNT:
                _log.error(MESSAGE)
                for sock in listener.accept_waiting():
                    _reply_with_error(sock)
        blocked_listeners.clear()
        time.sleep(_CHECK_INTERVAL)


def _is_in_blocking_code(thread_id: int) -> bool:
    """Return True if the function that the thread runs belongs to a package in `_BLOCKERS`."""
    frame = sys._current_frames().get(thread_id)
    return frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BLOCKERS


def _reply_with_error(sock: Any) -> None:
    """Reply with an error to the first request of a client. A client that uses TLS cannot read the reply."""
    sock.settimeout(_REQUEST_TIMEOUT)
    try:
        length, request_id, _response_to, opcode = HEADER.unpack(receive_exactly(sock, HEADER_SIZE))
        message = read_message(opcode, receive_exactly(sock, length - HEADER_SIZE))
        error_reply = {"ok": 0.0, "errmsg": MESSAGE, "code": _OPERATION_FAILED_CODE, "codeName": "OperationFailed"}
        sock.sendall(write_reply(message.opcode, 1, request_id, 0, error_reply))
    except (OSError, MalformedMessage, MalformedCommand):
        pass
    finally:
        sock.close()
