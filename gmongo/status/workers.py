"""The states of several processes side by side: each serves its own on a Unix socket in one directory."""

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
from gmongo.status.shape import picked
from gmongo.status.state import process_state

_SUFFIX = ".sock"
_NUMBER = re.compile("[1-9][0-9]{0,6}")
_PATIENCE = 1.0  # seconds that a worker has to answer
_LOOKS = 1.0  # seconds between two looks whether this is a forked child
_PAUSE = 0.05  # seconds
_MOST = 4_000_000  # bytes of one state
_AT_A_TIME = 50
_published: dict[Path, Publisher] = {}


def publish(directory: str | os.PathLike[str], query_text: bool = False) -> None:
    """Have this process, and those forked from it, serve their states in a directory, for the page and for
    ``python -m gmongo.status DIRECTORY``. Call it once, such as where the application makes its client; it may be
    called again.

    Each process serves on a Unix socket of its own, which only the same user can open.

    :param directory: it is made if it is not there, and must belong to the user and be writable by that user alone.
    :param query_text: whether the text of slow operations is served, too; False by default. If any call says so, it is
        served, and each reader is shown it only on request.
    :raises ConfigurationError: the directory belongs to another user, or others may write there.
    """
    path = Path(directory)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = _checked(path)
    if path in _published:
        _published[path].query_text |= query_text
    else:
        _published[path] = Publisher(path, query_text)


def _checked(path: Path) -> Path:
    """The directory, if what is in it can only be this user's."""
    path = path.resolve()
    found = path.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigurationError(
            f"the directory of states must belong to this user and be writable by that user alone, but {path} does not"
        )
    return path


class _Server(StreamServer):  # type: ignore[misc]
    """A server that does not keep the hub running."""

    def start_accepting(self) -> None:
        super().start_accepting()
        self._watcher.ref = False


class Publisher:
    """Serves the state of the process that it finds itself in.

    :param directory: where the socket is.
    :param query_text: whether the text of slow operations is served; it may be changed.
    """

    def __init__(self, directory: Path, query_text: bool) -> None:
        self._directory = directory
        self.query_text = query_text
        self._server: StreamServer | None = None
        self._process = 0
        # It goes on in forked children, and notices there that it is in another process.
        self._background = spawn_for(self, Wakeup(), Publisher.look)

    def look(self) -> float:
        """Begin to serve in a process that is new. Returns when to look again, in seconds."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._serve()
        return _LOOKS

    def _serve(self) -> None:
        path = self._directory / f"{os.getpid()}{_SUFFIX}"
        unfinished = path.with_suffix(".new")
        for each in (unfinished, path):  # of a process that had the same number
            if _is_own_socket(each):
                each.unlink()
        if os.path.lexists(path):
            raise FileExistsError(f"{path} is not a socket of this user")
        listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listener.bind(str(unfinished))
        finally:
            os.umask(before)
        listener.listen(_AT_A_TIME)
        unfinished.rename(path)  # whoever finds it there can connect: else it would be taken for that of a dead process
        if self._server is not None:
            self._server.close()  # this process's copy of its parent's
        self._server = _Server(listener, lambda sock, _address: _answer(sock, self.query_text), spawn=_AT_A_TIME)
        self._server.start()


def _answer(sock: socket.socket, query_text: bool) -> None:
    with sock, gevent.Timeout(_PATIENCE, False):
        sock.sendall(json.dumps(process_state(query_text)).encode())


def worker_states(directory: str | os.PathLike[str], query_text: bool = False) -> list[DocumentDict]:
    """The states of all processes that serve theirs in a directory, in the order of their numbers.

    A process that does not answer within a second, or answers anything else, is there with ``error`` in place of its
    clients. What is left of processes that have ended is removed: sockets that :func:`publish` has made. All else is
    left as it is.

    :param directory: the one that was given to :func:`publish`; if it is not there, no process serves its state.
    :param query_text: whether the text of slow operations is in them, as far as processes serve it; False by default.
    :raises ConfigurationError: the directory belongs to another user, or others may write there.
    """
    try:
        found_here = _checked(Path(directory)).glob(f"*{_SUFFIX}")
    except FileNotFoundError:
        return []
    paths = sorted((each for each in found_here if _is_own_socket(each)), key=lambda each: int(each.stem))
    found = Pool(_AT_A_TIME).map(lambda path: _ask(path, query_text), paths)
    return [state for state in found if state is not None]


def _is_own_socket(path: Path) -> bool:
    """Whether it may be what a process of this user serves its state on."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return bool(_NUMBER.fullmatch(path.stem)) and stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


def _has_ended(process: int) -> bool:
    """Whether there is no process with this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is another user's now
        return False
    return False


def _ask(path: Path, query_text: bool) -> DocumentDict | None:
    limit = gevent.Timeout(_PATIENCE)
    try:
        with limit:
            while True:
                state = picked(json.loads(_read(path)), query_text)
                if str(state["process"]) == path.stem:
                    return state
                gevent.sleep(_PAUSE)  # a child that was forked just now still has its parent's socket
    except (ConnectionRefusedError, FileNotFoundError):
        if _has_ended(int(path.stem)):
            path.unlink(missing_ok=True)
        return None
    except gevent.Timeout as error:
        if error is not limit:
            raise
        return unknown(path.stem, f"does not answer within {_PATIENCE:g} s")
    except OSError as error:
        return unknown(path.stem, f"does not answer ({type(error).__name__})")
    except (ValueError, RecursionError) as error:
        return unknown(path.stem, f"does not answer with its state: {_reason(error)}")


def _reason(error: Exception) -> str:
    return printable(str(error)) if type(error) is ValueError else type(error).__name__


def unknown(process: str, reason: str) -> DocumentDict:
    """What is shown in the place of a state that cannot be had."""
    return {"process": process, "error": reason, "clients": []}


def _read(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        found = bytearray()
        while part := sock.recv(65536):
            found += part
            if len(found) > _MOST:
                raise ValueError(f"it has more than {_MOST} bytes")
    return bytes(found)
