"""Exchange of states between processes: each process publishes its state on a Unix socket in a common directory."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import gevent
from gevent import socket
from gevent.pool import Pool
from gevent.server import StreamServer

from gmongo._background import Wakeup, spawn_for
from gmongo._documents import DocumentDict
from gmongo._safe_log import printable
from gmongo.errors import ConfigurationError
from gmongo.status.schema import select_fields
from gmongo.status.state import process_state

_SOCKET_SUFFIX = ".sock"
_ID_PATTERN = re.compile("[1-9][0-9]{0,6}")
_REPLY_TIMEOUT = 1.0  # timeout in seconds for the state of a process
_CHECK_INTERVAL = 1.0  # seconds between two checks for a fork
_RETRY_INTERVAL = 0.05  # seconds between two attempts to read a state
_MAX_BYTES = 4_000_000  # maximum size of a state in bytes
_MAX_CONNECTIONS = 50  # maximum number of connections that a process reads or serves concurrently
_publishers: dict[Path, Publisher] = {}


def publish(directory: str | os.PathLike[str], query_text: bool = False) -> None:
    """Publish the states of this process and of its forked children in a directory.

    `StatusPage` and ``python -m gmongo.status DIRECTORY`` read the states. Call this function once,
    for example where the application creates the client. Later calls with the same directory can only
    enable `query_text`. Each process listens on its own Unix socket. Only processes of the same user
    can open the socket.

    :param directory: the directory (created if missing). Other users must not have write access.
    :param query_text: True to publish the text of slow operations; False by default. Readers omit the text by default.
    :raises ConfigurationError: the directory belongs to another user, or is writable for other users.
    """
    path = Path(directory)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = _checked_directory(path)
    if path in _publishers:
        _publishers[path].query_text |= query_text
    else:
        _publishers[path] = Publisher(path, query_text)


def _checked_directory(path: Path) -> Path:
    """Return the resolved path. Raise ConfigurationError if another user owns or can write it."""
    path = path.resolve()
    status = path.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigurationError(
            f"the directory {path} must belong to this user, and other users must not have write access"
        )
    return path


class _Server(StreamServer):  # type: ignore[misc]
    """Socket server that does not keep the event loop alive."""

    def start_accepting(self) -> None:
        super().start_accepting()
        self._watcher.ref = False


class Publisher:
    """Publisher of the state of this process. In a forked child, it publishes the child's state."""

    def __init__(self, directory: Path, query_text: bool) -> None:
        self._directory = directory
        self.query_text = query_text
        self._server: StreamServer | None = None
        self._process_id = 0
        # The greenlet also runs in forked children, where the greenlet detects the new process ID.
        self._background = spawn_for(self, Wakeup(), Publisher.publish_after_fork)

    def publish_after_fork(self) -> float:
        """Publish the state if this process has not yet published it. Return the seconds until the next fork check."""
        if self._process_id != os.getpid():
            self._process_id = os.getpid()
            self._open_state_socket()
        return _CHECK_INTERVAL

    def _open_state_socket(self) -> None:
        path = self._directory / f"{os.getpid()}{_SOCKET_SUFFIX}"
        temporary_path = path.with_suffix(".new")
        for each in (temporary_path, path):  # an earlier process with this process ID may have left these files
            if _is_own_socket(each):
                each.unlink()
        if os.path.lexists(path):
            raise FileExistsError(f"{path} is not a socket of this user")
        listener = socket.socket(socket.AF_UNIX)
        old_mask = os.umask(0o177)
        try:
            listener.bind(str(temporary_path))
        finally:
            os.umask(old_mask)
        listener.listen(_MAX_CONNECTIONS)
        # Rename after listen(), because a reader ignores a process if nothing listens on the socket.
        temporary_path.rename(path)
        if self._server is not None:
            self._server.close()  # in a forked child, the server belongs to the parent
        self._server = _Server(
            listener, lambda sock, _address: _send_state(sock, self.query_text), spawn=_MAX_CONNECTIONS
        )
        self._server.start()


def _send_state(sock: socket.socket, query_text: bool) -> None:
    with sock, gevent.Timeout(_REPLY_TIMEOUT, False):
        sock.sendall(json.dumps(process_state(query_text)).encode())


def worker_states(directory: str | os.PathLike[str], query_text: bool = False) -> list[DocumentDict]:
    """Return the states that processes publish in a directory, ordered by process ID.

    If a process sends no state within a second, or sends a malformed state, its item has the field ``error`` and no
    clients. This function removes the sockets of processes that have ended, and changes nothing else.

    :param directory: the directory of :func:`publish`. Without this directory, the list is empty.
    :param query_text: True to include the text of slow operations, if processes publish the text; False by default.
    :raises ConfigurationError: the directory belongs to another user, or is writable for other users.
    """
    try:
        socket_paths = _checked_directory(Path(directory)).glob(f"*{_SOCKET_SUFFIX}")
    except FileNotFoundError:
        return []
    paths = sorted((each for each in socket_paths if _is_own_socket(each)), key=lambda each: int(each.stem))
    states = Pool(_MAX_CONNECTIONS).map(lambda path: _fetch_state(path, query_text), paths)
    return [state for state in states if state is not None]


def _is_own_socket(path: Path) -> bool:
    """Return True if `path` is a socket that :func:`publish` may have created in a process of this user."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return bool(_ID_PATTERN.fullmatch(path.stem)) and stat.S_ISSOCK(status.st_mode) and status.st_uid == os.getuid()


def _has_ended(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except OSError as error:  # a PermissionError if the process belongs to another user
        return isinstance(error, ProcessLookupError)
    return False


def _fetch_state(path: Path, query_text: bool) -> DocumentDict | None:
    reply_timeout = gevent.Timeout(_REPLY_TIMEOUT)
    try:
        with reply_timeout:
            while True:
                state = select_fields(json.loads(_read_socket(path)), query_text)
                if str(state["process"]) == path.stem:
                    return state
                # Directly after a fork, the child may answer on the socket of the parent process.
                gevent.sleep(_RETRY_INTERVAL)
    except (ConnectionRefusedError, FileNotFoundError):
        if _has_ended(int(path.stem)):
            path.unlink(missing_ok=True)
        return None
    except gevent.Timeout as error:
        if error is not reply_timeout:
            raise
        return unavailable_state(path.stem, f"does not answer within {_REPLY_TIMEOUT:g} s")
    except OSError as error:
        return unavailable_state(path.stem, f"does not answer ({type(error).__name__})")
    except (ValueError, RecursionError) as error:
        text = printable(str(error)) if type(error) is ValueError else type(error).__name__
        return unavailable_state(path.stem, f"does not answer with its state: {text}")


def unavailable_state(process_id: str, reason: str) -> DocumentDict:
    """Return a placeholder for the state of a process that sends no state. The field ``error`` shows the reason."""
    return {"process": process_id, "error": reason, "clients": []}


def _read_socket(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        received = bytearray()
        while part := sock.recv(65536):
            received += part
            if len(received) > _MAX_BYTES:
                raise ValueError(f"the state has more than {_MAX_BYTES} bytes")
    return bytes(received)
